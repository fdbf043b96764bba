// RUN: lowtide-execute %s
// Three updates; the values are PyTorch's and ONNX's (Inputs/optimizers.py).

func.func @matrix(%w0: tensor<2x3xf32> {test.value = dense<[[1.5, -2.0, 0.75], [3.0, 0.5, -1.25]]> : tensor<2x3xf32>},
    %g0: tensor<2x3xf32> {test.value = dense<[[30.0, -20.0, 0.5], [40.0, 4.0, -6.0]]> : tensor<2x3xf32>},
    %g1: tensor<2x3xf32> {test.value = dense<[[-10.0, -25.0, 8.0], [35.0, -3.0, 12.0]]> : tensor<2x3xf32>},
    %g2: tensor<2x3xf32> {test.value = dense<[[5.0, 15.0, -12.0], [-45.0, 9.0, 2.0]]> : tensor<2x3xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<2x3xf32> {test.value = dense<[[1.167559266090393, -1.211020588874817, 0.8793250322341919], [2.5601656436920166, 0.2962688207626343, -1.1445268392562866]]> : tensor<2x3xf32>},
        tensor<2x1xf32> {test.value = dense<[[250.74330139160156], [583.3858642578125]]> : tensor<2x1xf32>},
        tensor<1x3xf32> {test.value = dense<[[959.2557373046875, 221.76971435546875, 70.1682357788086]]> : tensor<1x3xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<2x1xf32>
  %s10 = nn.constant dense<0.0> : tensor<1x3xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.adafactor %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, beta2_decay = -0.8, eps1 = -1.0, eps2 = 0.001, clip_threshold = 1.0, weight_decay = 0.0} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.adafactor %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, beta2_decay = -0.8, eps1 = -1.0, eps2 = 0.001, clip_threshold = 1.0, weight_decay = 0.0} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.adafactor %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, beta2_decay = -0.8, eps1 = -1.0, eps2 = 0.001, clip_threshold = 1.0, weight_decay = 0.0} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<2x3xf32>, tensor<2x1xf32>, tensor<1x3xf32>
}

func.func @vector(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[0.9946334362030029, -1.2219054698944092, 0.16377146542072296, 2.3160016536712646]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[267.97833251953125, 402.89959716796875, 81.35198211669922, 1650.533203125]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01 = train.adafactor %w0 gradient %g0 lr %lr step %t0 state %s00
      {lr_scale = 1.0, beta2_decay = -0.8, eps1 = -1.0, eps2 = 0.001, clip_threshold = 1.0, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02 = train.adafactor %w1 gradient %g1 lr %lr step %t1 state %s01
      {lr_scale = 1.0, beta2_decay = -0.8, eps1 = -1.0, eps2 = 0.001, clip_threshold = 1.0, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03 = train.adafactor %w2 gradient %g2 lr %lr step %t2 state %s02
      {lr_scale = 1.0, beta2_decay = -0.8, eps1 = -1.0, eps2 = 0.001, clip_threshold = 1.0, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03 : tensor<4xf32>, tensor<4xf32>
}

func.func @options(%w0: tensor<2x3xf32> {test.value = dense<[[1.5, -2.0, 0.75], [3.0, 0.5, -1.25]]> : tensor<2x3xf32>},
    %g0: tensor<2x3xf32> {test.value = dense<[[30.0, -20.0, 0.5], [40.0, 4.0, -6.0]]> : tensor<2x3xf32>},
    %g1: tensor<2x3xf32> {test.value = dense<[[-10.0, -25.0, 8.0], [35.0, -3.0, 12.0]]> : tensor<2x3xf32>},
    %g2: tensor<2x3xf32> {test.value = dense<[[5.0, 15.0, -12.0], [-45.0, 9.0, 2.0]]> : tensor<2x3xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<2x3xf32> {test.value = dense<[[0.9487723112106323, -0.8667753338813782, 1.2074012756347656], [2.22502064704895, 0.08717033267021179, -1.2309755086898804]]> : tensor<2x3xf32>},
        tensor<2x1xf32> {test.value = dense<[[208.07830810546875], [611.5131225585938]]> : tensor<2x1xf32>},
        tensor<1x3xf32> {test.value = dense<[[944.5167846679688, 208.82130432128906, 76.04891967773438]]> : tensor<1x3xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<2x1xf32>
  %s10 = nn.constant dense<0.0> : tensor<1x3xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.adafactor %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, beta2_decay = -0.5, eps1 = 0.1, eps2 = 2.5, clip_threshold = 1.5, weight_decay = 0.1} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.adafactor %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, beta2_decay = -0.5, eps1 = 0.1, eps2 = 2.5, clip_threshold = 1.5, weight_decay = 0.1} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.adafactor %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, beta2_decay = -0.5, eps1 = 0.1, eps2 = 2.5, clip_threshold = 1.5, weight_decay = 0.1} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<2x3xf32>, tensor<2x1xf32>, tensor<1x3xf32>
}

func.func @kernels(%w0: tensor<1x2x3x2xf32> {test.value = dense<[[[[1.5, 1.5], [-2.0, -2.0], [0.75, 0.75]], [[3.0, 3.0], [0.5, 0.5], [-1.25, -1.25]]]]> : tensor<1x2x3x2xf32>},
    %g0: tensor<1x2x3x2xf32> {test.value = dense<[[[[30.0, 30.0], [-20.0, -20.0], [0.5, 0.5]], [[40.0, 40.0], [4.0, 4.0], [-6.0, -6.0]]]]> : tensor<1x2x3x2xf32>},
    %g1: tensor<1x2x3x2xf32> {test.value = dense<[[[[-10.0, -10.0], [-25.0, -25.0], [8.0, 8.0]], [[35.0, 35.0], [-3.0, -3.0], [12.0, 12.0]]]]> : tensor<1x2x3x2xf32>},
    %g2: tensor<1x2x3x2xf32> {test.value = dense<[[[[5.0, 5.0], [15.0, 15.0], [-12.0, -12.0]], [[-45.0, -45.0], [9.0, 9.0], [2.0, 2.0]]]]> : tensor<1x2x3x2xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<1x2x3x2xf32> {test.value = dense<[[[[1.1324514150619507, 1.1324514150619507], [-1.448662281036377, -1.448662281036377], [0.30761757493019104, 0.30761757493019104]], [[2.6118404865264893, 2.6118404865264893], [-0.09009106457233429, -0.09009106457233429], [-1.3066585063934326, -1.3066585063934326]]]]> : tensor<1x2x3x2xf32>},
        tensor<1x2x3x1xf32> {test.value = dense<[[[[267.97833251953125], [402.89959716796875], [81.35198211669922]], [[1650.533203125], [40.639862060546875], [58.98446273803711]]]]> : tensor<1x2x3x1xf32>},
        tensor<1x2x1x2xf32> {test.value = dense<[[[[250.74330139160156, 250.74330139160156]], [[583.3858642578125, 583.3858642578125]]]]> : tensor<1x2x1x2xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<1x2x3x1xf32>
  %s10 = nn.constant dense<0.0> : tensor<1x2x1x2xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.adafactor %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, beta2_decay = -0.8, eps1 = -1.0, eps2 = 0.001, clip_threshold = 1.0, weight_decay = 0.0} : tensor<1x2x3x2xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.adafactor %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, beta2_decay = -0.8, eps1 = -1.0, eps2 = 0.001, clip_threshold = 1.0, weight_decay = 0.0} : tensor<1x2x3x2xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.adafactor %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, beta2_decay = -0.8, eps1 = -1.0, eps2 = 0.001, clip_threshold = 1.0, weight_decay = 0.0} : tensor<1x2x3x2xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<1x2x3x2xf32>, tensor<1x2x3x1xf32>, tensor<1x2x1x2xf32>
}
