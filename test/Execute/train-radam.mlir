// RUN: lowtide-execute %s
// Three updates; the values are PyTorch's and ONNX's (Inputs/optimizers.py).

func.func @rectified(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[-10.109536170959473, 10.844242095947266, -0.08139917254447937, -18.085647583007812]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[2.0299999713897705, -2.370000123977661, -0.4395000636577606, 1.8899999856948853]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[160.8000030517578, 257.54998779296875, 56.67675018310547, 1099.9500732421875]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.radam %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.7, eps = 0.001, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.radam %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.7, eps = 0.001, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.radam %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.7, eps = 0.001, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func @plain(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[-9.970677375793457, 10.787237167358398, -0.12282592058181763, -17.91584014892578]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[1.9056859016418457, -2.2718358039855957, -0.43319329619407654, 1.687029242515564]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[1.0369943380355835, 1.2682874202728271, 0.21049529314041138, 4.970555782318115]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.radam %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-08, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.radam %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-08, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.radam %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-08, weight_decay = 0.1} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func @decoupled(%w0: tensor<4xf32> {test.value = dense<[1.5, -2.0, 0.75, 3.0]> : tensor<4xf32>},
    %g0: tensor<4xf32> {test.value = dense<[30.0, -20.0, 0.5, 40.0]> : tensor<4xf32>},
    %g1: tensor<4xf32> {test.value = dense<[-10.0, -25.0, 8.0, 35.0]> : tensor<4xf32>},
    %g2: tensor<4xf32> {test.value = dense<[5.0, 15.0, -12.0, -45.0]> : tensor<4xf32>},
    %lr: tensor<f32> {test.value = dense<0.25> : tensor<f32>})
    -> (tensor<4xf32> {test.value = dense<[-9.793013572692871, 10.602201461791992, -0.10228666663169861, -17.577768325805664]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[2.0299999713897705, -2.370000123977661, -0.4395000636577606, 1.8899999856948853]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[160.8000030517578, 257.54998779296875, 56.67675018310547, 1099.9500732421875]> : tensor<4xf32>}) {
  %s00 = nn.constant dense<0.0> : tensor<4xf32>
  %s10 = nn.constant dense<0.0> : tensor<4xf32>
  %t0 = nn.constant dense<0> : tensor<i64>
  %w1, %s01, %s11 = train.radam %w0 gradient %g0 lr %lr step %t0 state %s00, %s10
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.7, eps = 1.0e-08, weight_decay = 0.1, decoupled_weight_decay = 1.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t1 = nn.constant dense<1> : tensor<i64>
  %w2, %s02, %s12 = train.radam %w1 gradient %g1 lr %lr step %t1 state %s01, %s11
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.7, eps = 1.0e-08, weight_decay = 0.1, decoupled_weight_decay = 1.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %t2 = nn.constant dense<2> : tensor<i64>
  %w3, %s03, %s13 = train.radam %w2 gradient %g2 lr %lr step %t2 state %s02, %s12
      {lr_scale = 1.0, beta1 = 0.9, beta2 = 0.7, eps = 1.0e-08, weight_decay = 0.1, decoupled_weight_decay = 1.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %w3, %s03, %s13 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
