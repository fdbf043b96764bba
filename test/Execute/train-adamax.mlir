// RUN: lowtide-execute %s
// Three updates; the values are PyTorch's and ONNX's (Inputs/optimizers.py).

func.func @plain(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[1.1128158569335938, -1.4361428022384644, 0.3948066234588623, 2.477468252182007]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[2.0299999713897705, -2.370000123977661, -0.4395000636577606, 1.8899999856948853]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[29.940031051635742, 24.975000381469727, 12.0, 45.0]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.adamax %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-08, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.adamax %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-08, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.adamax %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-08, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func @decay(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[0.8943825364112854, -1.396256685256958, 0.39778172969818115, 2.462984323501587]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[3.3015756607055664, -3.6440393924713135, -1.0313206911087036, 1.8520830869674683]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[7.537749767303467, 14.84880256652832, 11.965638160705566, 44.75258255004883]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.adamax %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, beta1 = 0.8, beta2 = 0.5, eps = 0.001, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.adamax %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, beta1 = 0.8, beta2 = 0.5, eps = 0.001, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.adamax %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, beta1 = 0.8, beta2 = 0.5, eps = 0.001, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
