// RUN: lowtide-execute %s
// Three updates; the values are PyTorch's and ONNX's (Inputs/optimizers.py).

func.func @plain(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[1.2497529983520508, -1.6195170879364014, 0.448111891746521, 2.715683698654175]> : tensor<4xf32>},
        tensor<f32> {test.value = dense<0.09121428430080414> : tensor<f32>},
        tensor<4xf32> {test.value = dense<[2.0299999713897705, -2.370000123977661, -0.4395000636577606, 1.8899999856948853]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[1.0231009721755981, 1.2485754489898682, 0.20818550884723663, 4.845576763153076]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<1.0> : tensor<f32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %s20 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11, %s21 = train.nadam %w0 gradient %g0 lr %lr step %t0 state %s00, %s10, %s20
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-08, weight_decay = 0.0, momentum_decay = 0.004} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12, %s22 = train.nadam %w1 gradient %g1 lr %lr step %t1 state %s01, %s11, %s21
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-08, weight_decay = 0.0, momentum_decay = 0.004} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13, %s23 = train.nadam %w2 gradient %g2 lr %lr step %t2 state %s02, %s12, %s22
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-08, weight_decay = 0.0, momentum_decay = 0.004} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13, %s23 : tensor<4xf32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>
}

func.func @decay(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[1.2463538646697998, -1.6179572343826294, 0.4457787275314331, 2.712265729904175]> : tensor<4xf32>},
        tensor<f32> {test.value = dense<0.09336294233798981> : tensor<f32>},
        tensor<4xf32> {test.value = dense<[2.066295623779297, -2.4170515537261963, -0.4267755448818207, 1.9644384384155273]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[46.968936920166016, 59.536685943603516, 10.264639854431152, 232.4927520751953]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<1.0> : tensor<f32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %s20 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11, %s21 = train.nadam %w0 gradient %g0 lr %lr step %t0 state %s00, %s10, %s20
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.95, eps = 1.0e-08, weight_decay = 0.1, momentum_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12, %s22 = train.nadam %w1 gradient %g1 lr %lr step %t1 state %s01, %s11, %s21
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.95, eps = 1.0e-08, weight_decay = 0.1, momentum_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13, %s23 = train.nadam %w2 gradient %g2 lr %lr step %t2 state %s02, %s12, %s22
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.95, eps = 1.0e-08, weight_decay = 0.1, momentum_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13, %s23 : tensor<4xf32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>
}

func.func @decoupled(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[1.1513986587524414, -1.491640567779541, 0.41335931420326233, 2.5139079093933105]> : tensor<4xf32>},
        tensor<f32> {test.value = dense<0.09121428430080414> : tensor<f32>},
        tensor<4xf32> {test.value = dense<[2.0299999713897705, -2.370000123977661, -0.4395000636577606, 1.8899999856948853]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[1.0231009721755981, 1.2485754489898682, 0.20818550884723663, 4.845576763153076]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<1.0> : tensor<f32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %s20 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11, %s21 = train.nadam %w0 gradient %g0 lr %lr step %t0 state %s00, %s10, %s20
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 0.001, weight_decay = 0.1, momentum_decay = 0.004, decoupled_weight_decay = 1.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12, %s22 = train.nadam %w1 gradient %g1 lr %lr step %t1 state %s01, %s11, %s21
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 0.001, weight_decay = 0.1, momentum_decay = 0.004, decoupled_weight_decay = 1.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13, %s23 = train.nadam %w2 gradient %g2 lr %lr step %t2 state %s02, %s12, %s22
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 0.001, weight_decay = 0.1, momentum_decay = 0.004, decoupled_weight_decay = 1.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13, %s23 : tensor<4xf32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>
}
