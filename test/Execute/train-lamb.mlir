// RUN: lowtide-execute %s
// Three updates; the values are PyTorch's and ONNX's (Inputs/optimizers.py).

func.func @plain(%w0: tensor<2x3xf32> {test.value = dense<[[1.5, -2.0, 0.75], [3.0, 0.5, -1.25]]> : tensor<2x3xf32>},
    %g0: tensor<2x3xf32> {test.value = dense<[[30.0, -20.0, 0.5], [40.0, 4.0, -6.0]]> : tensor<2x3xf32>},
    %g1: tensor<2x3xf32> {test.value = dense<[[-10.0, -25.0, 8.0], [35.0, -3.0, 12.0]]> : tensor<2x3xf32>},
    %g2: tensor<2x3xf32> {test.value = dense<[[5.0, 15.0, -12.0], [-45.0, 9.0, 2.0]]> : tensor<2x3xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<2x3xf32> {test.value = dense<[[-8.91207504272461, 11.92851448059082, -5.958900451660156], [-8.428204536437988, -10.012277603149414, -2.6018950939178467]]> : tensor<2x3xf32>},
        tensor<2x3xf32> {test.value = dense<[[2.0299997329711914, -2.370000123977661, -0.43950000405311584], [1.8899997472763062, 0.9539999961853027, 0.793999969959259]]> : tensor<2x3xf32>},
        tensor<2x3xf32> {test.value = dense<[[1.0231009721755981, 1.2485754489898682, 0.20818550884723663], [4.845576763153076, 0.10595902055501938, 0.18378403782844543]]> : tensor<2x3xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<2x3xf32>
  %s10 = nn.constant dense<0.0> : tensor<2x3xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.lamb %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-06, weight_decay = 0.0} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.lamb %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-06, weight_decay = 0.0} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.lamb %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-06, weight_decay = 0.0} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

func.func @decay(%w0: tensor<2x3xf32> {test.value = dense<[[1.5, -2.0, 0.75], [3.0, 0.5, -1.25]]> : tensor<2x3xf32>},
    %g0: tensor<2x3xf32> {test.value = dense<[[30.0, -20.0, 0.5], [40.0, 4.0, -6.0]]> : tensor<2x3xf32>},
    %g1: tensor<2x3xf32> {test.value = dense<[[-10.0, -25.0, 8.0], [35.0, -3.0, 12.0]]> : tensor<2x3xf32>},
    %g2: tensor<2x3xf32> {test.value = dense<[[5.0, 15.0, -12.0], [-45.0, 9.0, 2.0]]> : tensor<2x3xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<2x3xf32> {test.value = dense<[[-8.144841194152832, 10.76663589477539, -3.5114848613739014], [-7.354360580444336, -9.369823455810547, -3.7004356384277344]]> : tensor<2x3xf32>},
        tensor<2x3xf32> {test.value = dense<[[2.0299997329711914, -2.370000123977661, -0.43950000405311584], [1.8899997472763062, 0.9539999961853027, 0.793999969959259]]> : tensor<2x3xf32>},
        tensor<2x3xf32> {test.value = dense<[[1.0231009721755981, 1.2485754489898682, 0.20818550884723663], [4.845576763153076, 0.10595902055501938, 0.18378403782844543]]> : tensor<2x3xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<2x3xf32>
  %s10 = nn.constant dense<0.0> : tensor<2x3xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.lamb %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 0.001, weight_decay = 0.1} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.lamb %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 0.001, weight_decay = 0.1} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.lamb %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 0.001, weight_decay = 0.1} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

func.func @decoupled(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[-10.931882858276367, 13.667049407958984, -4.882935047149658, -9.066753387451172]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[2.0299997329711914, -2.370000123977661, -0.43950000405311584, 1.8899997472763062]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[1.0231009721755981, 1.2485754489898682, 0.20818550884723663, 4.845576763153076]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.lamb %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-06, weight_decay = 0.1, decoupled_weight_decay = 1.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.lamb %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-06, weight_decay = 0.1, decoupled_weight_decay = 1.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.lamb %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-06, weight_decay = 0.1, decoupled_weight_decay = 1.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func @large(%w0: tensor<2x3xf32> {test.value = dense<[[24.0, -32.0, 12.0], [48.0, 8.0, -20.0]]> : tensor<2x3xf32>},
    %g0: tensor<2x3xf32> {test.value = dense<[[30.0, -20.0, 0.5], [40.0, 4.0, -6.0]]> : tensor<2x3xf32>},
    %g1: tensor<2x3xf32> {test.value = dense<[[-10.0, -25.0, 8.0], [35.0, -3.0, 12.0]]> : tensor<2x3xf32>},
    %g2: tensor<2x3xf32> {test.value = dense<[[5.0, 15.0, -12.0], [-45.0, 9.0, 2.0]]> : tensor<2x3xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<2x3xf32> {test.value = dense<[[6.7758259773254395, -9.925496101379395, -2.3756885528564453], [28.43764877319336, -8.6325044631958, -16.245113372802734]]> : tensor<2x3xf32>},
        tensor<2x3xf32> {test.value = dense<[[2.0299997329711914, -2.370000123977661, -0.43950000405311584], [1.8899997472763062, 0.9539999961853027, 0.793999969959259]]> : tensor<2x3xf32>},
        tensor<2x3xf32> {test.value = dense<[[1.0231009721755981, 1.2485754489898682, 0.20818550884723663], [4.845576763153076, 0.10595902055501938, 0.18378403782844543]]> : tensor<2x3xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<2x3xf32>
  %s10 = nn.constant dense<0.0> : tensor<2x3xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.lamb %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-06, weight_decay = 0.0} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.lamb %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-06, weight_decay = 0.0} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.lamb %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-06, weight_decay = 0.0} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

func.func @zero(%w0: tensor<2x3xf32> {test.value = dense<[[0.0, -0.0, 0.0], [0.0, 0.0, -0.0]]> : tensor<2x3xf32>},
    %g0: tensor<2x3xf32> {test.value = dense<[[30.0, -20.0, 0.5], [40.0, 4.0, -6.0]]> : tensor<2x3xf32>},
    %g1: tensor<2x3xf32> {test.value = dense<[[-10.0, -25.0, 8.0], [35.0, -3.0, 12.0]]> : tensor<2x3xf32>},
    %g2: tensor<2x3xf32> {test.value = dense<[[5.0, 15.0, -12.0], [-45.0, 9.0, 2.0]]> : tensor<2x3xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<2x3xf32> {test.value = dense<[[-14.923528671264648, 19.773860931396484, -12.075187683105469], [-17.26170539855957, -14.33187484741211, 1.4542516469955444]]> : tensor<2x3xf32>},
        tensor<2x3xf32> {test.value = dense<[[2.0299997329711914, -2.370000123977661, -0.43950000405311584], [1.8899997472763062, 0.9539999961853027, 0.793999969959259]]> : tensor<2x3xf32>},
        tensor<2x3xf32> {test.value = dense<[[1.0231009721755981, 1.2485754489898682, 0.20818550884723663], [4.845576763153076, 0.10595902055501938, 0.18378403782844543]]> : tensor<2x3xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<2x3xf32>
  %s10 = nn.constant dense<0.0> : tensor<2x3xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.lamb %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-06, weight_decay = 0.0} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.lamb %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-06, weight_decay = 0.0} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.lamb %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-06, weight_decay = 0.0} : tensor<2x3xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}
