// RUN: sed s/"\"dynamic\""/"\"dynamic,init=1024,interval=50\""/ %s | lowtide-opt --train-scale-loss="loss-scale=dynamic,init=1024,interval=50 clip-value=2 clip-norm=1" --train-optimize="optimizer=sgd" --verify-step | FileCheck %s
// RUN: sed s/"\"dynamic\""/"\"128\""/ %s | lowtide-opt --train-scale-loss="loss-scale=128" --train-optimize="optimizer=sgd keep-gradient=false" --verify-step | FileCheck %s --check-prefix=FIXED
// RUN: sed s/"\"dynamic\""/"\"none\""/ %s | lowtide-opt --train-scale-loss="clip-norm=1" --train-optimize="optimizer=sgd keep-gradient=false" --verify-step | FileCheck %s --check-prefix=CLIP
// RUN: not lowtide-opt %s --train-scale-loss="loss-scale=dynamic,init=-1" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not lowtide-opt %s --train-scale-loss="loss-scale=dynamic,up=3" 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// Gradients that hold another scale than is taken out of them would be wrong by a factor, without a word.
// RUN: sed s/"\"dynamic\""/"\"twice\""/ %s | not lowtide-opt --train-scale-loss="loss-scale=dynamic" 2>&1 | FileCheck %s --check-prefix=MALFORMED
// RUN: sed s/"\"dynamic\""/"\"none\""/ %s | not lowtide-opt --train-scale-loss="loss-scale=dynamic" 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not lowtide-opt %s --train-scale-loss="clip-norm=1" 2>&1 | FileCheck %s --check-prefix=LEFT
// MALFORMED: error: @gradient: loss-scale:
// OTHER: error: @gradient holds gradients of the loss times its scale 'none', not 'dynamic': give train-differentiate the same loss-scale
// LEFT: error: @gradient holds gradients of the loss times its scale 'dynamic', not 'none'

// NEGATIVE: error: loss-scale: the scale must be positive and finite in f32, found -1
// UNKNOWN: error: loss-scale: no option 'up'; there are init, growth, backoff and interval

// What is looked at is unscaled and clipped, but nothing is kept.
// CHECK-LABEL: func.func @gradient
// CHECK-NOT: -> ({{.*}}#train.state<"loss_scale"
// CHECK: train.unscale
// CHECK: return %{{.*}}, %[[CLIPPED:.*]]#0, %[[CLIPPED]]#1, %{{.*}}, %{{.*}} : tensor<f32>, tensor<4xf32>, tensor<2x4xf32>, tensor<3xf32>, tensor<f32>

// CHECK-LABEL: func.func @train
// CHECK-SAME: %[[W:[^:]*]]: tensor<4xf32> {train.binding = #train.param<"w">}
// CHECK-SAME: %[[SCALE:[^:]*]]: tensor<f32> {train.binding = #train.state<"loss_scale", initial = 1.024000e+03>}
// CHECK-SAME: %[[TRACKER:[^:]*]]: tensor<i32> {train.binding = #train.state<"loss_scale.growth_tracker">}
// CHECK-SAME: %[[SKIPPED:[^:]*]]: tensor<i64> {train.binding = #train.state<"loss_scale.skipped">}
// CHECK-SAME: %[[LR:[^:]*]]: tensor<f32> {train.binding = #train.scalar<"lr">}
// CHECK-SAME: %[[STEP:[^:]*]]: tensor<i64> {train.binding = #train.scalar<"step">}
// Skipped steps do not count for the optimizer.
// CHECK: %[[T:.*]] = nn.sub %[[STEP]], %[[SKIPPED]] : tensor<i64>
// Unscale and check, clip by value, clip by norm.
// CHECK: %[[U:.*]]:2, %[[FINITE:.*]] = train.unscale %{{.*}}, %{{.*}} by %[[SCALE]]
// CHECK: train.update_scale %[[SCALE]] tracker %[[TRACKER]] skipped %[[SKIPPED]] finite %[[FINITE]] {backoff = 5.000000e-01 : f64, growth = 2.000000e+00 : f64, interval = 50 : i64}
// CHECK: %[[V:.*]]:2 = train.clip_value %[[U]]#0, %[[U]]#1 {limit = 2.000000e+00 : f64}
// CHECK: %[[N:.*]] = train.global_norm %[[V]]#0, %[[V]]#1
// CHECK: %[[C:.*]]:2 = train.clip_norm %[[V]]#0, %[[V]]#1 norm %[[N]] {max_norm = 1.000000e+00 : f64}
// CHECK-DAG: %[[NEW:.*]] = train.sgd %[[W]] gradient %[[C]]#0 lr %[[LR]] step %[[T]]
// CHECK-DAG: train.commit %[[NEW]] or %[[W]] if %[[FINITE]]

// FIXED-LABEL: func.func @train
// FIXED-SAME: %[[SKIPPED:[^:]*]]: tensor<i64> {train.binding = #train.state<"loss_scale.skipped">}
// FIXED: %[[S:.*]] = nn.constant dense<1.280000e+02> : tensor<f32>
// FIXED: train.unscale %{{.*}} by %[[S]]
// FIXED: train.commit

// CLIP-LABEL: func.func @train
// CLIP-NOT: train.unscale
// CLIP: train.global_norm
// CLIP: train.clip_norm
// CLIP-NOT: train.commit
func.func @gradient(%x: tensor<4xf32> {train.binding = #train.batch<"x">},
                    %w: tensor<4xf32> {train.binding = #train.param<"w">},
                    %b: tensor<2x4xf32> {train.binding = #train.param<"b">},
                    %u: tensor<3xf32> {train.binding = #train.param<"unused">, train.unreached})
    -> (tensor<f32> {train.binding = #train.metric<"loss">},
        tensor<4xf32> {train.binding = #train.gradient<"w">},
        tensor<2x4xf32> {train.binding = #train.gradient<"b">},
        tensor<3xf32> {train.binding = #train.gradient<"unused">})
    attributes {train.scaled = "dynamic"} {
  %zero = nn.constant dense<0.0> : tensor<3xf32>
  %p = nn.mul %x, %w : tensor<4xf32>
  %loss = nn.reduce_sum %p dims = [0] : tensor<4xf32> -> tensor<f32>
  %g = nn.broadcast %x dims = [1] : tensor<4xf32> -> tensor<2x4xf32>
  return %loss, %x, %g, %zero : tensor<f32>, tensor<4xf32>, tensor<2x4xf32>, tensor<3xf32>
}
