// RUN: lowtide-execute %s
// Three updates; the values are PyTorch's and ONNX's (Inputs/optimizers.py).

func.func @plain(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[-4.557496547698975, 5.275632381439209, 1.5533422231674194, -4.271686553955078]> : tensor<4xf32>},
        tensor<f32> {test.value = dense<0.23680107295513153> : tensor<f32>},
        tensor<f32> {test.value = dense<1.0> : tensor<f32>},
        tensor<4xf32> {test.value = dense<[-4.557496547698975, 5.275632381439209, 1.5533422231674194, -4.271686553955078]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<f32>
  %s10 = nn.constant dense<1.0> : tensor<f32>
  %s20 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11, %s21 = train.asgd %w0 gradient %g0 lr %lr step %t0 state %s00, %s10, %s20
      {lr_scale = 1.0, lambd = 0.1, alpha = 0.75, t0 = 1000000.0, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12, %s22 = train.asgd %w1 gradient %g1 lr %lr step %t1 state %s01, %s11, %s21
      {lr_scale = 1.0, lambd = 0.1, alpha = 0.75, t0 = 1000000.0, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13, %s23 = train.asgd %w2 gradient %g2 lr %lr step %t2 state %s02, %s12, %s22
      {lr_scale = 1.0, lambd = 0.1, alpha = 0.75, t0 = 1000000.0, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13, %s23 : tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<4xf32>
}

func.func @averaged(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[-4.532652378082275, 5.219900131225586, 1.6214699745178223, -3.9764022827148438]> : tensor<4xf32>},
        tensor<f32> {test.value = dense<0.2490677386522293> : tensor<f32>},
        tensor<f32> {test.value = dense<0.5> : tensor<f32>},
        tensor<4xf32> {test.value = dense<[-4.532652378082275, 5.219900131225586, 1.6214699745178223, -3.9764022827148438]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<f32>
  %s10 = nn.constant dense<1.0> : tensor<f32>
  %s20 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11, %s21 = train.asgd %w0 gradient %g0 lr %lr step %t0 state %s00, %s10, %s20
      {lr_scale = 1.0, lambd = 0.01, alpha = 0.5, t0 = 1.0, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12, %s22 = train.asgd %w1 gradient %g1 lr %lr step %t1 state %s01, %s11, %s21
      {lr_scale = 1.0, lambd = 0.01, alpha = 0.5, t0 = 1.0, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13, %s23 = train.asgd %w2 gradient %g2 lr %lr step %t2 state %s02, %s12, %s22
      {lr_scale = 1.0, lambd = 0.01, alpha = 0.5, t0 = 1.0, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13, %s23 : tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<4xf32>
}
