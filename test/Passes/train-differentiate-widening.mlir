// RUN: lowtide-opt %s --train-differentiate | FileCheck %s

// A product that is wider than its operands: gradients are products in its type, rounded once.
// CHECK-LABEL: func.func @gradient
// CHECK-SAME: %[[X:[^:]*]]: tensor<8x16xbf16>
func.func @forward(%x: tensor<8x16xbf16> {train.binding = #train.batch<"x">}, %w: tensor<16x4xbf16> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %y = nn.dot %x, %w : (tensor<8x16xbf16>, tensor<16x4xbf16>) -> tensor<8x4xf32>
  %s = nn.reduce_sum %y dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
  // CHECK: %[[WIDE:.*]] = nn.cast %[[X]] : tensor<8x16xbf16> -> tensor<8x16xf32>
  // CHECK: %[[PRODUCT:.*]] = nn.dot %[[WIDE]], %{{.*}} : (tensor<8x16xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
  // CHECK: nn.cast %[[PRODUCT]] : tensor<16x4xf32> -> tensor<16x4xbf16>
  return %s : tensor<f32>
}
