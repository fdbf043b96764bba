// RUN: lowtide-opt %s --split-input-file --train-scale-loss="clip-norm=1" --canonicalize --cse --verify-step | FileCheck %s --check-prefix=CLIP
// RUN: lowtide-opt %s --split-input-file --train-scale-loss="loss-scale=dynamic clip-norm=1" --canonicalize --cse --verify-step | FileCheck %s --check-prefix=SCALE

// A step that came with its updates: its gradient is clipped where it stands, and the update reads what comes out.
// CLIP-LABEL: func.func @train
// CLIP-SAME: -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<4xf32> {train.binding = #train.param<"w">}, tensor<4xf32> {train.binding = #train.state<"w.momentum_buffer">}, tensor<i64> {train.binding = #train.state<"T">}, tensor<f32> {train.binding = #train.metric<"grad_norm">})
// CLIP: nn.reduce_sum
// CLIP: %[[G:.*]] = nn.mul
// CLIP: %[[N:.*]] = train.global_norm %[[G]]
// CLIP: %[[C:.*]] = train.clip_norm %[[G]] norm %[[N]]
// CLIP: train.momentum %{{.*}} gradient %[[C]]
// CLIP-NOT: train.commit

// With a loss scale the gradient is derived anew, from the scaled loss; updates, and the counter that they read, are made
// only if it is finite, and skipped steps do not count.
// SCALE-LABEL: func.func @train
// SCALE-SAME: %[[W:[a-z0-9]+]]: tensor<4xf32> {train.binding = #train.param<"w">}
// SCALE-SAME: %[[M:[a-z0-9]+]]: tensor<4xf32> {train.binding = #train.state<"w.momentum_buffer">}
// SCALE-SAME: %[[T:[a-z0-9]+]]: tensor<i64> {train.binding = #train.state<"T">}
// SCALE-SAME: %[[S:[a-z0-9]+]]: tensor<f32> {train.binding = #train.state<"loss_scale", initial = 6.553600e+04>}
// SCALE: %[[U:.*]], %[[F:.*]] = train.unscale %{{.*}} by %[[S]]
// SCALE: %[[C:.*]] = train.clip_norm %[[U]]
// SCALE: %[[NEW:.*]], %[[BUFFER:.*]] = train.momentum %[[W]] gradient %[[C]]
// SCALE-DAG: train.commit %[[NEW]] or %[[W]] if %[[F]]
// SCALE-DAG: train.commit %[[BUFFER]] or %[[M]] if %[[F]]
// SCALE-DAG: train.commit %{{.*}} or %[[T]] if %[[F]]
func.func @train(%x: tensor<4xf32> {train.binding = #train.batch<"x">},
                 %w: tensor<4xf32> {train.binding = #train.param<"w">},
                 %m: tensor<4xf32> {train.binding = #train.state<"w.momentum_buffer">},
                 %t: tensor<i64> {train.binding = #train.state<"T">},
                 %lr: tensor<f32> {train.binding = #train.scalar<"lr">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<4xf32> {train.binding = #train.param<"w">},
        tensor<4xf32> {train.binding = #train.state<"w.momentum_buffer">}, tensor<i64> {train.binding = #train.state<"T">},
        tensor<4xf32> {train.binding = #train.gradient<"w">}) {
  %p = nn.mul %x, %w : tensor<4xf32>
  %q = nn.mul %p, %w : tensor<4xf32>
  %loss = nn.reduce_sum %q dims = [0] : tensor<4xf32> -> tensor<f32>
  %two = nn.constant dense<2.0> : tensor<4xf32>
  %g = nn.mul %p, %two : tensor<4xf32>
  %one = nn.constant dense<1> : tensor<i64>
  %t1 = nn.add %t, %one : tensor<i64>
  %new, %buffer = train.momentum %w gradient %g lr %lr step %t state %m {lr_scale = 1.0 : f64, momentum = 0.9 : f64, dampening = 0.0 : f64, nesterov = 0.0 : f64, weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %loss, %new, %buffer, %t1, %g : tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<4xf32>
}
