// RUN: lowtide-execute %s
// Three updates; the values are PyTorch's and ONNX's (Inputs/optimizers.py).

func.func @plain(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[1.0388656854629517, -1.3798842430114746, 0.3486575484275818, 2.437485456466675]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[2.0299999713897705, -2.370000123977661, -0.4395000636577606, 1.8899999856948853]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[1.0231009721755981, 1.2485754489898682, 0.20818550884723663, 4.845576763153076]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.adamw %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-08, weight_decay = 0.01} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.adamw %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-08, weight_decay = 0.01} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.adamw %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-08, weight_decay = 0.01} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func @options(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[1.2208638191223145, -1.6272456645965576, 0.5288519263267517, 2.622439384460449]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[2.0299999713897705, -2.370000123977661, -0.4395000636577606, 1.8899999856948853]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[46.61249923706055, 58.98749923706055, 10.25128173828125, 231.6374969482422]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.adamw %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 0.5, beta1 = 0.9, beta2 = 0.95, eps = 0.001, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.adamw %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 0.5, beta1 = 0.9, beta2 = 0.95, eps = 0.001, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.adamw %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 0.5, beta1 = 0.9, beta2 = 0.95, eps = 0.001, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func @onnx(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[0.7910964763219782, -0.9884392095560133, 0.31022613053691495, 1.785514020982699]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[2.030000329017639, -2.37000048160553, -0.439500093460083, 1.8900002241134644]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[46.61251097917557, 58.98751336336136, 10.251283645629883, 231.63755160570145]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.adamw %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.95, eps = 0.01, weight_decay = 0.1, onnx_convention} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.adamw %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.95, eps = 0.01, weight_decay = 0.1, onnx_convention} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.adamw %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.95, eps = 0.01, weight_decay = 0.1, onnx_convention} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
