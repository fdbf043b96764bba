// RUN: lowtide-execute %s
// Three updates; the values are PyTorch's and ONNX's (Inputs/optimizers.py).

func.func @plain(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[1.2900135517120361, -1.6608487367630005, 0.4583745300769806, 2.7469143867492676]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[1025.0, 1250.0, 208.25, 4850.0]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01 = train.adagrad %w0 gradient %g0 lr %lr step %t0 state %s00
      {lr_scale = 1.0, lr_decay = 0.0, initial_accumulator_value = 0.0, eps = 1.0e-10, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02 = train.adagrad %w1 gradient %g1 lr %lr step %t1 state %s01
      {lr_scale = 1.0, lr_decay = 0.0, initial_accumulator_value = 0.0, eps = 1.0e-10, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03 = train.adagrad %w2 gradient %g2 lr %lr step %t2 state %s02
      {lr_scale = 1.0, lr_decay = 0.0, initial_accumulator_value = 0.0, eps = 1.0e-10, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03 : tensor<4xf32>, tensor<4xf32>
}

func.func @options(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[1.2875388860702515, -1.6599700450897217, 0.5390687584877014, 2.733924388885498]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[1033.376220703125, 1262.62744140625, 208.90345764160156, 4870.58056640625]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.5> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01 = train.adagrad %w0 gradient %g0 lr %lr step %t0 state %s00
      {lr_scale = 1.0, lr_decay = 0.1, initial_accumulator_value = 0.5, eps = 0.001, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02 = train.adagrad %w1 gradient %g1 lr %lr step %t1 state %s01
      {lr_scale = 1.0, lr_decay = 0.1, initial_accumulator_value = 0.5, eps = 0.001, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03 = train.adagrad %w2 gradient %g2 lr %lr step %t2 state %s02
      {lr_scale = 1.0, lr_decay = 0.1, initial_accumulator_value = 0.5, eps = 0.001, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03 : tensor<4xf32>, tensor<4xf32>
}

func.func @onnx(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[1.2874726057052612, -1.6597765684127808, 0.44605594873428345, 2.733872890472412]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[1032.876220703125, 1262.1270751953125, 208.4779510498047, 4870.080078125]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01 = train.adagrad %w0 gradient %g0 lr %lr step %t0 state %s00
      {lr_scale = 1.0, lr_decay = 0.1, initial_accumulator_value = 0.0, eps = 1.0e-06, weight_decay = 0.1, onnx_convention} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02 = train.adagrad %w1 gradient %g1 lr %lr step %t1 state %s01
      {lr_scale = 1.0, lr_decay = 0.1, initial_accumulator_value = 0.0, eps = 1.0e-06, weight_decay = 0.1, onnx_convention} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03 = train.adagrad %w2 gradient %g2 lr %lr step %t2 state %s02
      {lr_scale = 1.0, lr_decay = 0.1, initial_accumulator_value = 0.0, eps = 1.0e-06, weight_decay = 0.1, onnx_convention} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03 : tensor<4xf32>, tensor<4xf32>
}
