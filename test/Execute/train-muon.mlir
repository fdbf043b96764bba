// RUN: lowtide-execute %s
// Three updates; the values are PyTorch's and ONNX's (Inputs/optimizers.py).

func.func @wide(%w0: tensor<2x3xf32> {test.value = dense<[[1.5, -2.0, 0.75], [3.0, 0.5, -1.25]]> : tensor<2x3xf32>},
    %g0: tensor<2x3xf32> {test.value = dense<[[30.0, -20.0, 0.5], [40.0, 4.0, -6.0]]> : tensor<2x3xf32>},
    %g1: tensor<2x3xf32> {test.value = dense<[[-10.0, -25.0, 8.0], [35.0, -3.0, 12.0]]> : tensor<2x3xf32>},
    %g2: tensor<2x3xf32> {test.value = dense<[[5.0, 15.0, -12.0], [-45.0, 9.0, 2.0]]> : tensor<2x3xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<2x3xf32> {test.value = dense<[[1.1476497650146484, -1.571452021598816, 0.7619667649269104], [2.411966323852539, 0.11287200450897217, -1.1080471277236938]]> : tensor<2x3xf32>, test.tolerance = 0.02197265625},
        tensor<2x3xf32> {test.value = dense<[[1.128749966621399, -1.340000033378601, -0.19743749499320984], [1.2174999713897705, 0.4880000054836273, 0.39925000071525574]]> : tensor<2x3xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<2x3xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01 = train.muon %w0 gradient %g0 lr %lr step %t0 state %s00
      {lr_scale = 1.0, weight_decay = 0.1, momentum = 0.95, nesterov = 1.0, ns_a = 3.4445, ns_b = -4.775, ns_c = 2.0315, eps = 1.0e-07, ns_steps = 5.0, adjust_lr_fn = 0.0} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02 = train.muon %w1 gradient %g1 lr %lr step %t1 state %s01
      {lr_scale = 1.0, weight_decay = 0.1, momentum = 0.95, nesterov = 1.0, ns_a = 3.4445, ns_b = -4.775, ns_c = 2.0315, eps = 1.0e-07, ns_steps = 5.0, adjust_lr_fn = 0.0} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03 = train.muon %w2 gradient %g2 lr %lr step %t2 state %s02
      {lr_scale = 1.0, weight_decay = 0.1, momentum = 0.95, nesterov = 1.0, ns_a = 3.4445, ns_b = -4.775, ns_c = 2.0315, eps = 1.0e-07, ns_steps = 5.0, adjust_lr_fn = 0.0} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03 : tensor<2x3xf32>, tensor<2x3xf32>
}

func.func @tall(%w0: tensor<3x2xf32> {test.value = dense<[[1.5, 3.0], [-2.0, 0.5], [0.75, -1.25]]> : tensor<3x2xf32>},
    %g0: tensor<3x2xf32> {test.value = dense<[[30.0, 40.0], [-20.0, 4.0], [0.5, -6.0]]> : tensor<3x2xf32>},
    %g1: tensor<3x2xf32> {test.value = dense<[[-10.0, 35.0], [-25.0, -3.0], [8.0, 12.0]]> : tensor<3x2xf32>},
    %g2: tensor<3x2xf32> {test.value = dense<[[5.0, -45.0], [15.0, 9.0], [-12.0, 2.0]]> : tensor<3x2xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<3x2xf32> {test.value = dense<[[0.6713839173316956, 1.4046066999435425], [-0.6686784029006958, 0.09741619974374771], [0.4603838324546814, -0.8683218359947205]]> : tensor<3x2xf32>, test.tolerance = 0.02197265625},
        tensor<3x2xf32> {test.value = dense<[[1.128749966621399, 1.2174999713897705], [-1.340000033378601, 0.4880000054836273], [-0.19743749499320984, 0.39925000071525574]]> : tensor<3x2xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<3x2xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01 = train.muon %w0 gradient %g0 lr %lr step %t0 state %s00
      {lr_scale = 1.0, weight_decay = 0.5, momentum = 0.95, nesterov = 0.0, ns_a = 3.4445, ns_b = -4.775, ns_c = 2.0315, eps = 1.0e-07, ns_steps = 5.0, adjust_lr_fn = 0.0} : tensor<3x2xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02 = train.muon %w1 gradient %g1 lr %lr step %t1 state %s01
      {lr_scale = 1.0, weight_decay = 0.5, momentum = 0.95, nesterov = 0.0, ns_a = 3.4445, ns_b = -4.775, ns_c = 2.0315, eps = 1.0e-07, ns_steps = 5.0, adjust_lr_fn = 0.0} : tensor<3x2xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03 = train.muon %w2 gradient %g2 lr %lr step %t2 state %s02
      {lr_scale = 1.0, weight_decay = 0.5, momentum = 0.95, nesterov = 0.0, ns_a = 3.4445, ns_b = -4.775, ns_c = 2.0315, eps = 1.0e-07, ns_steps = 5.0, adjust_lr_fn = 0.0} : tensor<3x2xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03 : tensor<3x2xf32>, tensor<3x2xf32>
}

func.func @adjusted(%w0: tensor<3x2xf32> {test.value = dense<[[1.5, 3.0], [-2.0, 0.5], [0.75, -1.25]]> : tensor<3x2xf32>},
    %g0: tensor<3x2xf32> {test.value = dense<[[30.0, 40.0], [-20.0, 4.0], [0.5, -6.0]]> : tensor<3x2xf32>},
    %g1: tensor<3x2xf32> {test.value = dense<[[-10.0, 35.0], [-25.0, -3.0], [8.0, 12.0]]> : tensor<3x2xf32>},
    %g2: tensor<3x2xf32> {test.value = dense<[[5.0, -45.0], [15.0, 9.0], [-12.0, 2.0]]> : tensor<3x2xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<3x2xf32> {test.value = dense<[[1.364098310470581, 2.7008845806121826], [-1.7857246398925781, 0.39750298857688904], [0.7322253584861755, -1.161472201347351]]> : tensor<3x2xf32>, test.tolerance = 0.02197265625},
        tensor<3x2xf32> {test.value = dense<[[3.75, -8.75], [-1.25, 4.25], [-3.9375, 3.25]]> : tensor<3x2xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<3x2xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01 = train.muon %w0 gradient %g0 lr %lr step %t0 state %s00
      {lr_scale = 1.0, weight_decay = 0.1, momentum = 0.5, nesterov = 1.0, ns_a = 3.4445, ns_b = -4.775, ns_c = 2.0315, eps = 1.0e-07, ns_steps = 3.0, adjust_lr_fn = 1.0} : tensor<3x2xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02 = train.muon %w1 gradient %g1 lr %lr step %t1 state %s01
      {lr_scale = 1.0, weight_decay = 0.1, momentum = 0.5, nesterov = 1.0, ns_a = 3.4445, ns_b = -4.775, ns_c = 2.0315, eps = 1.0e-07, ns_steps = 3.0, adjust_lr_fn = 1.0} : tensor<3x2xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03 = train.muon %w2 gradient %g2 lr %lr step %t2 state %s02
      {lr_scale = 1.0, weight_decay = 0.1, momentum = 0.5, nesterov = 1.0, ns_a = 3.4445, ns_b = -4.775, ns_c = 2.0315, eps = 1.0e-07, ns_steps = 3.0, adjust_lr_fn = 1.0} : tensor<3x2xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03 : tensor<3x2xf32>, tensor<3x2xf32>
}

func.func @unclamped(%w0: tensor<2x3xf32> {test.value = dense<[[1.5, -2.0, 0.75], [3.0, 0.5, -1.25]]> : tensor<2x3xf32>},
    %g0: tensor<2x3xf32> {test.value = dense<[[30.0, -20.0, 0.5], [40.0, 4.0, -6.0]]> : tensor<2x3xf32>},
    %g1: tensor<2x3xf32> {test.value = dense<[[-10.0, -25.0, 8.0], [35.0, -3.0, 12.0]]> : tensor<2x3xf32>},
    %g2: tensor<2x3xf32> {test.value = dense<[[5.0, 15.0, -12.0], [-45.0, 9.0, 2.0]]> : tensor<2x3xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<2x3xf32> {test.value = dense<[[1.1921749114990234, -1.6232489347457886, 0.7497047185897827], [2.4796080589294434, 0.1772005558013916, -1.117319107055664]]> : tensor<2x3xf32>, test.tolerance = 0.02197265625},
        tensor<2x3xf32> {test.value = dense<[[1.128749966621399, -1.340000033378601, -0.19743749499320984], [1.2174999713897705, 0.4880000054836273, 0.39925000071525574]]> : tensor<2x3xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<2x3xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01 = train.muon %w0 gradient %g0 lr %lr step %t0 state %s00
      {lr_scale = 1.0, weight_decay = 0.1, momentum = 0.95, nesterov = 1.0, ns_a = 3.4445, ns_b = -4.775, ns_c = 2.0315, eps = 1.0e-07, ns_steps = 5.0, adjust_lr_fn = 2.0} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02 = train.muon %w1 gradient %g1 lr %lr step %t1 state %s01
      {lr_scale = 1.0, weight_decay = 0.1, momentum = 0.95, nesterov = 1.0, ns_a = 3.4445, ns_b = -4.775, ns_c = 2.0315, eps = 1.0e-07, ns_steps = 5.0, adjust_lr_fn = 2.0} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03 = train.muon %w2 gradient %g2 lr %lr step %t2 state %s02
      {lr_scale = 1.0, weight_decay = 0.1, momentum = 0.95, nesterov = 1.0, ns_a = 3.4445, ns_b = -4.775, ns_c = 2.0315, eps = 1.0e-07, ns_steps = 5.0, adjust_lr_fn = 2.0} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03 : tensor<2x3xf32>, tensor<2x3xf32>
}
