// RUN: lowtide-opt %s --train-optimize="optimizer=sgd lr=0.1 options=momentum=0.9;weight-decay=0.01 group=*.bias:weight_decay=0,lr=0.05 schedule=cosine total-steps=100 warmup-steps=10" --verify-step | FileCheck %s
// RUN: lowtide-opt %s --train-optimize="optimizer=sgd keep-gradient=false" --verify-step | FileCheck %s --check-prefix=PLAIN

// CHECK: module attributes {
// CHECK-SAME: train.optimizer = {convention = "torch", dampening = 0.000000e+00 : f64, kind = "momentum", momentum = {{0.9[0-9]*|9.0*e-01}} : f64, nesterov = 0.000000e+00 : f64, weight_decay = 1.000000e-02 : f64}
// CHECK-SAME: train.schedule = {kind = "cosine", lr = 1.000000e-01 : f64, min_lr = 0.000000e+00 : f64, total_steps = 100 : i64, warmup_steps = 10 : i64}

// The gradient entry changes no state.
// CHECK-LABEL: func.func @gradient
// CHECK-SAME: -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<4x3xf32> {train.binding = #train.gradient<"l.weight">}, tensor<3xf32> {train.binding = #train.gradient<"l.bias">}, tensor<3xf32> {train.binding = #train.gradient<"unused">}, tensor<3xf32> {train.binding = #train.output<"grad/b">})

// CHECK-LABEL: func.func @train
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32> {train.binding = #train.batch<"x">}
// CHECK-SAME: %[[W:.*]]: tensor<4x3xf32> {train.binding = #train.param<"l.weight">}
// CHECK-SAME: %[[B:.*]]: tensor<3xf32> {train.binding = #train.param<"l.bias">, train.group = "*.bias:weight_decay=0,lr=0.05"}
// CHECK-SAME: %[[U:.*]]: tensor<3xf32> {train.binding = #train.param<"unused">, train.unreached}
// CHECK-SAME: %[[S:.*]]: tensor<f32> {train.binding = #train.state<"norm.mean", from_file>}
// CHECK-SAME: %[[LR:.*]]: tensor<f32> {train.binding = #train.scalar<"lr">}
// CHECK-SAME: %[[STEP:.*]]: tensor<i64> {train.binding = #train.scalar<"step">}
// CHECK-SAME: %[[MW:.*]]: tensor<4x3xf32> {train.binding = #train.state<"l.weight.momentum_buffer">}
// CHECK-SAME: %[[MB:.*]]: tensor<3xf32> {train.binding = #train.state<"l.bias.momentum_buffer">}
// CHECK-SAME: -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<f32> {train.binding = #train.state<"norm.mean", from_file>}, tensor<3xf32> {train.binding = #train.output<"grad/b">}, tensor<4x3xf32> {train.binding = #train.param<"l.weight">}, tensor<4x3xf32> {train.binding = #train.state<"l.weight.momentum_buffer">}, tensor<3xf32> {train.binding = #train.param<"l.bias">}, tensor<3xf32> {train.binding = #train.state<"l.bias.momentum_buffer">})

// PLAIN-NOT: func.func @gradient
// PLAIN-LABEL: func.func @train
func.func @gradient(%x: tensor<8x4xf32> {train.binding = #train.batch<"x">},
                    %w: tensor<4x3xf32> {train.binding = #train.param<"l.weight">},
                    %b: tensor<3xf32> {train.binding = #train.param<"l.bias">},
                    %unused: tensor<3xf32> {train.binding = #train.param<"unused">, train.unreached},
                    %mean: tensor<f32> {train.binding = #train.state<"norm.mean", from_file>})
    -> (tensor<f32> {train.binding = #train.metric<"loss">},
        tensor<f32> {train.binding = #train.state<"norm.mean", from_file>},
        tensor<4x3xf32> {train.binding = #train.gradient<"l.weight">},
        tensor<3xf32> {train.binding = #train.gradient<"l.bias">},
        tensor<3xf32> {train.binding = #train.gradient<"unused">},
        // An output of the model that happens to be called so stays.
        tensor<3xf32> {train.binding = #train.output<"grad/b">}) {
  %zero = nn.constant dense<0.0> : tensor<3xf32>
  %h = nn.dot %x, %w : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
  // CHECK: %[[DB:.*]] = nn.reduce_sum %{{.*}} dims = [0]
  %db = nn.reduce_sum %h dims = [0] : tensor<8x3xf32> -> tensor<3xf32>
  // Right after its gradient.
  // CHECK-NEXT: %[[NB:.*]], %[[SB:.*]] = train.momentum %[[B]] gradient %[[DB]] lr %[[LR]] step %[[STEP]] state %[[MB]] {dampening = 0.000000e+00 : f64, lr_scale = 5.000000e-01 : f64, momentum = {{.*}} : f64, nesterov = 0.000000e+00 : f64, weight_decay = 0.000000e+00 : f64} : tensor<3xf32>, tensor<f32>, tensor<i64>
  // CHECK: %[[DW:.*]] = nn.dot %[[X]], %{{.*}} {transpose_a}
  %dw = nn.dot %x, %h {transpose_a} : (tensor<8x4xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  // PLAIN: %[[V:.*]] = nn.reshape
  %v = nn.reshape %w : tensor<4x3xf32> -> tensor<12xf32>
  // PLAIN-NOT: train.sgd
  // PLAIN: nn.exp %[[V]]
  %e = nn.exp %v : tensor<12xf32>
  // After the last read of the weight's bytes.
  // CHECK: nn.exp
  // CHECK-NEXT: %[[NW:.*]], %[[SW:.*]] = train.momentum %[[W]] gradient %[[DW]] {{.*}} state %[[MW]] {{.*}} lr_scale = 1.000000e+00 : f64, {{.*}} weight_decay = 1.000000e-02 : f64}
  // PLAIN-NEXT: train.sgd
  // CHECK: %[[LOSS:.*]] = nn.reduce_sum %{{.*}} dims = [0]
  %loss = nn.reduce_sum %e dims = [0] : tensor<12xf32> -> tensor<f32>
  // CHECK: return %[[LOSS]], %{{.*}}, %{{.*}}, %[[NW]], %[[SW]], %[[NB]], %[[SB]]
  return %loss, %loss, %dw, %db, %zero, %b : tensor<f32>, tensor<f32>, tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}
