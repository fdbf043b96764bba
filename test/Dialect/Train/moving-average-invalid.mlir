// RUN: lowtide-opt %s --split-input-file --verify-diagnostics

func.func @index(%a: tensor<2xindex>, %b: tensor<2xindex>, %n: tensor<i64>) -> tensor<2xindex> {
  // expected-error @below {{operand #0 must be tensor of floating-point values, but got 'tensor<2xindex>'}}
  %0 = train.moving_average %a to %b updates %n {decay = 0.5 : f64} : (tensor<2xindex>, tensor<2xindex>, tensor<i64>) -> tensor<2xindex>
  return %0 : tensor<2xindex>
}

// -----

func.func @updates(%a: tensor<2xf32>, %n: tensor<f32>) -> tensor<2xf32> {
  // expected-error @below {{operand #2 must be tensor of signless integer values, but got 'tensor<f32>'}}
  %0 = train.moving_average %a to %a updates %n {decay = 0.5 : f64} : (tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
