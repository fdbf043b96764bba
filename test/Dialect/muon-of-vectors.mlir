// RUN: lowtide-opt %s -verify-diagnostics

func.func @update(%w: tensor<2xf32>, %g: tensor<2xf32>, %lr: tensor<f32>, %step: tensor<i64>, %m: tensor<2xf32>) {
  // expected-error @below {{'train.muon' op updates matrices, not 'tensor<2xf32>'}}
  %n, %s = train.muon %w gradient %g lr %lr step %step state %m
      {lr_scale = 1.0, weight_decay = 0.1, momentum = 0.95, nesterov = 1.0, ns_a = 3.4445, ns_b = -4.775, ns_c = 2.0315, eps = 1.0e-07, ns_steps = 5.0, adjust_lr_fn = 0.0} : tensor<2xf32>, tensor<f32>, tensor<i64>
  return
}
