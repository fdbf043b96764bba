// RUN: lowtide-execute %s
// Three updates; the values are PyTorch's and ONNX's (Inputs/optimizers.py).

func.func @plain(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[-0.5999355316162109, 1.3892513513565063, -2.1630756855010986, 0.47185540199279785]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[10.060898780822754, 12.35789966583252, 2.076050281524658, 48.05909729003906]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01 = train.rmsprop %w0 gradient %g0 lr %lr step %t0 state %s00
      {lr_scale = 1.0, alpha = 0.99, eps = 1.0e-08, momentum = 0.0, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02 = train.rmsprop %w1 gradient %g1 lr %lr step %t1 state %s01
      {lr_scale = 1.0, alpha = 0.99, eps = 1.0e-08, momentum = 0.0, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03 = train.rmsprop %w2 gradient %g2 lr %lr step %t2 state %s02
      {lr_scale = 1.0, alpha = 0.99, eps = 1.0e-08, momentum = 0.0, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03 : tensor<4xf32>, tensor<4xf32>
}

func.func @centered(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[1.0580531358718872, -1.2378302812576294, 0.5752624273300171, 2.365741014480591]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[160.8000030517578, 257.54998779296875, 56.67675018310547, 1099.9500732421875]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[3.809999704360962, -3.6899993419647217, -1.846500039100647, -0.2700015902519226]> : tensor<4xf32>, test.tolerance = 4.0e-06}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.rmsprop %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, alpha = 0.7, eps = 1.0, momentum = 0.0, weight_decay = 0.0, centered = 1.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.rmsprop %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, alpha = 0.7, eps = 1.0, momentum = 0.0, weight_decay = 0.0, centered = 1.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.rmsprop %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, alpha = 0.7, eps = 1.0, momentum = 0.0, weight_decay = 0.0, centered = 1.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func @momentum(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[-4.132564544677734, 7.382601261138916, -8.6348876953125, -5.275783538818359]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[10.145305633544922, 12.55508804321289, 2.209480047225952, 48.63661193847656]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[6.721060752868652, -10.742887496948242, 8.566174507141113, 7.5218915939331055]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.rmsprop %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, alpha = 0.99, eps = 1.0e-08, momentum = 0.9, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.rmsprop %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, alpha = 0.99, eps = 1.0e-08, momentum = 0.9, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.rmsprop %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, alpha = 0.99, eps = 1.0e-08, momentum = 0.9, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func @both(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[2.2061619758605957, -3.3663136959075928, 1.216562271118164, 4.246222496032715]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[163.60000610351562, 297.6000061035156, 72.99600219726562, 1334.4000244140625]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[-0.5574843883514404, 0.6490727663040161, 0.3939027786254883, -0.21054601669311523]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[-3.919999837875366, 2.880000352859497, 2.807999849319458, 3.8399994373321533]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %s20 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11, %s21 = train.rmsprop %w0 gradient %g0 lr %lr step %t0 state %s00, %s10, %s20
      {lr_scale = 1.0, alpha = 0.6, eps = 1.0, momentum = 0.5, weight_decay = 0.0, centered = 1.0, maximize = 1.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12, %s22 = train.rmsprop %w1 gradient %g1 lr %lr step %t1 state %s01, %s11, %s21
      {lr_scale = 1.0, alpha = 0.6, eps = 1.0, momentum = 0.5, weight_decay = 0.0, centered = 1.0, maximize = 1.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13, %s23 = train.rmsprop %w2 gradient %g2 lr %lr step %t2 state %s02, %s12, %s22
      {lr_scale = 1.0, alpha = 0.6, eps = 1.0, momentum = 0.5, weight_decay = 0.0, centered = 1.0, maximize = 1.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13, %s23 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
