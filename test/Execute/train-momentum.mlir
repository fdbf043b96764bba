// RUN: lowtide-execute %s
// Three updates; the values are PyTorch's and ONNX's (Inputs/optimizers.py).

func.func @plain(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[-15.324999809265137, 19.674999237060547, -0.3887498378753662, -29.474998474121094]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[20.299999237060547, -23.700000762939453, -4.395000457763672, 18.89999771118164]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01 = train.momentum %w0 gradient %g0 lr %lr step %t0 state %s00
      {lr_scale = 1.0, momentum = 0.9, dampening = 0.0, nesterov = 0.0, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02 = train.momentum %w1 gradient %g1 lr %lr step %t1 state %s01
      {lr_scale = 1.0, momentum = 0.9, dampening = 0.0, nesterov = 0.0, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03 = train.momentum %w2 gradient %g2 lr %lr step %t2 state %s02
      {lr_scale = 1.0, momentum = 0.9, dampening = 0.0, nesterov = 0.0, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03 : tensor<4xf32>, tensor<4xf32>
}

func.func @dampening(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[-17.075000762939453, 15.612499237060547, 0.011250138282775879, -26.787498474121094]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[22.299999237060547, -19.94999885559082, -1.9950003623962402, 25.64999771118164]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01 = train.momentum %w0 gradient %g0 lr %lr step %t0 state %s00
      {lr_scale = 1.0, momentum = 0.9, dampening = 0.5, nesterov = 0.0, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02 = train.momentum %w1 gradient %g1 lr %lr step %t1 state %s01
      {lr_scale = 1.0, momentum = 0.9, dampening = 0.5, nesterov = 0.0, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03 = train.momentum %w2 gradient %g2 lr %lr step %t2 state %s02
      {lr_scale = 1.0, momentum = 0.9, dampening = 0.5, nesterov = 0.0, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03 : tensor<4xf32>, tensor<4xf32>
}

func.func @nesterov(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[-19.19559097290039, 24.284107208251953, 0.6324918270111084, -32.351478576660156]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[19.094287872314453, -22.275686264038086, -4.5136590003967285, 16.276042938232422]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01 = train.momentum %w0 gradient %g0 lr %lr step %t0 state %s00
      {lr_scale = 1.0, momentum = 0.9, dampening = 0.0, nesterov = 1.0, weight_decay = 0.05} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02 = train.momentum %w1 gradient %g1 lr %lr step %t1 state %s01
      {lr_scale = 1.0, momentum = 0.9, dampening = 0.0, nesterov = 1.0, weight_decay = 0.05} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03 = train.momentum %w2 gradient %g2 lr %lr step %t2 state %s02
      {lr_scale = 1.0, momentum = 0.9, dampening = 0.0, nesterov = 1.0, weight_decay = 0.05} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03 : tensor<4xf32>, tensor<4xf32>
}

func.func @onnx(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[-16.041845321655273, 17.54317855834961, -0.21564269065856934, -27.895946502685547]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[20.750585556030273, -21.34615707397461, -3.181764602661133, 21.31269073486328]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01 = train.momentum %w0 gradient %g0 lr %lr step %t0 state %s00
      {lr_scale = 1.0, momentum = 0.9, dampening = 0.25, nesterov = 0.0, weight_decay = 0.05, onnx_convention} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02 = train.momentum %w1 gradient %g1 lr %lr step %t1 state %s01
      {lr_scale = 1.0, momentum = 0.9, dampening = 0.25, nesterov = 0.0, weight_decay = 0.05, onnx_convention} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03 = train.momentum %w2 gradient %g2 lr %lr step %t2 state %s02
      {lr_scale = 1.0, momentum = 0.9, dampening = 0.25, nesterov = 0.0, weight_decay = 0.05, onnx_convention} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03 : tensor<4xf32>, tensor<4xf32>
}

func.func @onnx_nesterov(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[-19.892499923706055, 25.00749969482422, 0.6001253128051758, -33.72749710083008]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[20.299999237060547, -23.700000762939453, -4.395000457763672, 18.89999771118164]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01 = train.momentum %w0 gradient %g0 lr %lr step %t0 state %s00
      {lr_scale = 1.0, momentum = 0.9, dampening = 0.0, nesterov = 1.0, weight_decay = 0.0, onnx_convention} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02 = train.momentum %w1 gradient %g1 lr %lr step %t1 state %s01
      {lr_scale = 1.0, momentum = 0.9, dampening = 0.0, nesterov = 1.0, weight_decay = 0.0, onnx_convention} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03 = train.momentum %w2 gradient %g2 lr %lr step %t2 state %s02
      {lr_scale = 1.0, momentum = 0.9, dampening = 0.0, nesterov = 1.0, weight_decay = 0.0, onnx_convention} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03 : tensor<4xf32>, tensor<4xf32>
}
