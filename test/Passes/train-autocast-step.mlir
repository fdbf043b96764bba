// A step that came with its updates keeps its parameters in 16 bits, too: what updates them is computed in f32 and rounded
// at the end. Moments stay in f32.
// RUN: lowtide-opt %s --train-autocast=precision=bf16 --cse --verify-step | FileCheck %s
// RUN: lowtide-opt %s --train-autocast=precision=mixed-bf16 --cse --verify-step | FileCheck %s --check-prefix=MIXED

// CHECK-LABEL: func.func @train
// CHECK-SAME: %[[W:[^:]*]]: tensor<8x8xbf16> {train.binding = #train.param<"w">}
// CHECK-SAME: -> (tensor<f32> {{{.*}}}, tensor<8x8xbf16> {train.binding = #train.param<"w">}, tensor<8x8xf32> {train.binding = #train.state<"w.m"{{.*}}>})
// CHECK: %[[OLD:.*]] = nn.cast %[[W]] : tensor<8x8xbf16> -> tensor<8x8xf32>
// CHECK: %[[NEW:.*]] = nn.sub %[[OLD]], %{{.*}} : tensor<8x8xf32>
// CHECK: %[[KEPT:.*]] = nn.cast %[[NEW]] : tensor<8x8xf32> -> tensor<8x8xbf16>
// CHECK: return %{{.*}}, %[[KEPT]], %{{.*}} : tensor<f32>, tensor<8x8xbf16>, tensor<8x8xf32>

// MIXED: -> (tensor<f32> {{{.*}}}, tensor<8x8xf32> {train.binding = #train.param<"w">}, tensor<8x8xf32>
func.func @train(%x: tensor<4x8xf32> {train.binding = #train.batch<"x">},
                 %w: tensor<8x8xf32> {train.binding = #train.param<"w">},
                 %m: tensor<8x8xf32> {train.binding = #train.state<"w.m">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<8x8xf32> {train.binding = #train.param<"w">},
        tensor<8x8xf32> {train.binding = #train.state<"w.m">}) {
  %y = nn.dot %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %loss = nn.reduce_sum %y dims = [0, 1] : tensor<4x8xf32> -> tensor<f32>
  %one = nn.constant dense<1.0> : tensor<4x8xf32>
  %g = nn.dot %x, %one {transpose_a} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %moment = nn.add %m, %g : tensor<8x8xf32>
  %new = nn.sub %w, %moment : tensor<8x8xf32>
  return %loss, %new, %moment : tensor<f32>, tensor<8x8xf32>, tensor<8x8xf32>
}
