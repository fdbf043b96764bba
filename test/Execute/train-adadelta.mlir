// RUN: lowtide-execute %s
// Three updates; the values are PyTorch's and ONNX's (Inputs/optimizers.py).

func.func @plain(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[1.4993818998336792, -1.998952031135559, 0.7494110465049744, 2.999349594116211]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[84.4000015258789, 111.14999389648438, 20.18025016784668, 442.3499755859375]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[1.0705920203690766e-06, 2.5936374186130706e-06, 5.381489700084785e-06, 2.9280295166245196e-06]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.adadelta %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, rho = 0.9, eps = 1.0e-06, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.adadelta %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, rho = 0.9, eps = 1.0e-06, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.adadelta %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, rho = 0.9, eps = 1.0e-06, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func @decay(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[1.277071475982666, -1.6501531600952148, 0.6932626366615295, 2.7819695472717285]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[164.87423706054688, 299.1748352050781, 72.9424057006836, 1333.751953125]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[0.3312712013721466, 1.0585439205169678, 1.2928966283798218, 1.3327722549438477]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.adadelta %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, rho = 0.6, eps = 0.5, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.adadelta %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, rho = 0.6, eps = 0.5, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.adadelta %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, rho = 0.6, eps = 0.5, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
