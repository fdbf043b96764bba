// RUN: lowtide-execute %s
// Three updates; the values are PyTorch's and ONNX's (Inputs/optimizers.py).

func.func @plain(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[1.125, -1.4500000476837158, 0.19999998807907104, 2.450000047683716]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[5.0, 0.0, 0.0, 0.0]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[0.125, 0.15000000596046448, 0.15000000596046448, 0.15000000596046448]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.rprop %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, etaminus = 0.5, etaplus = 1.2, step_size_min = 1.0e-06, step_size_max = 50.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.rprop %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, etaminus = 0.5, etaplus = 1.2, step_size_min = 1.0e-06, step_size_max = 50.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.rprop %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, etaminus = 0.5, etaplus = 1.2, step_size_min = 1.0e-06, step_size_max = 50.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func @limits(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[1.149999976158142, -1.350000023841858, 0.09999999403953552, 2.3499999046325684]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[5.0, 0.0, 0.0, 0.0]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[0.10000000149011612, 0.10000000149011612, 0.10000000149011612, 0.10000000149011612]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.rprop %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, etaminus = 0.25, etaplus = 2.0, step_size_min = 0.1, step_size_max = 0.4} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.rprop %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, etaminus = 0.25, etaplus = 2.0, step_size_min = 0.1, step_size_max = 0.4} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.rprop %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, etaminus = 0.25, etaplus = 2.0, step_size_min = 0.1, step_size_max = 0.4} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
