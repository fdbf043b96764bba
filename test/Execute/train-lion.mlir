// RUN: lowtide-execute %s
// Three updates; the values are PyTorch's and ONNX's (Inputs/optimizers.py).

func.func @plain(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[1.25, -1.75, 0.5, 2.75]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[0.2450300008058548, -0.2935199737548828, -0.03589949756860733, 0.28853994607925415]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01 = train.lion %w0 gradient %g0 lr %lr step %t0 state %s00
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.99, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02 = train.lion %w1 gradient %g1 lr %lr step %t1 state %s01
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.99, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03 = train.lion %w2 gradient %g2 lr %lr step %t2 state %s02
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.99, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03 : tensor<4xf32>, tensor<4xf32>
}

func.func @decay(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[1.0741182565689087, -1.555601716041565, 0.6018930673599243, 2.768568515777588]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[2.0299997329711914, -2.370000123977661, -0.43950000405311584, 1.8899997472763062]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01 = train.lion %w0 gradient %g0 lr %lr step %t0 state %s00
      {lr_scale = 0.5, beta1 = 0.8, beta2 = 0.9, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02 = train.lion %w1 gradient %g1 lr %lr step %t1 state %s01
      {lr_scale = 0.5, beta1 = 0.8, beta2 = 0.9, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03 = train.lion %w2 gradient %g2 lr %lr step %t2 state %s02
      {lr_scale = 0.5, beta1 = 0.8, beta2 = 0.9, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03 : tensor<4xf32>, tensor<4xf32>
}
