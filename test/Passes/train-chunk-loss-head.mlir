// RUN: lowtide-opt %s --nn-fuse-patterns=loss-head-always --train-differentiate --canonicalize --cse --train-chunk-loss-head=chunks=2 --canonicalize --cse | FileCheck %s
// RUN: lowtide-opt %s --nn-fuse-patterns=loss-head-always --train-differentiate --canonicalize --cse --train-chunk-loss-head=chunks=1 --canonicalize --cse | FileCheck %s --check-prefix=WHOLE

// Reshapes, a bias and classes that were moved do not hide the head. Loss and gradients are one op in a loop over rows;
// sums go over tiles of 16 rows, however many pieces there are.
// CHECK-LABEL: func.func @gradient
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x16x8xf32>
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<32x8xf32>
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<32xf32>
// CHECK-NOT: 64x32
// CHECK: %[[ROWS:.*]] = nn.reshape %[[X]]
// CHECK: %[[HEAD:.*]]:3 = train.accumulate 2 slices(%[[XK:.*]] = %[[ROWS]], %[[YK:.*]] = %{{.*}}, %[[DK:.*]] = %{{.*}}) carries(%[[DW:.*]] = %{{.*}}, %[[DB:.*]] = %{{[a-z0-9]+}}) :
// CHECK-NEXT: nn.linear_cross_entropy_grad %[[XK]], %[[W]] bias %[[B]] labels %[[YK]] dloss %[[DK]] onto %[[DW]] bias_onto %[[DB]] ignore_index = -100 tile = 16
// CHECK-NEXT: train.next
// CHECK-NOT: nn.linear_cross_entropy
// WHOLE-NOT: train.accumulate
// WHOLE: nn.linear_cross_entropy_grad {{.*}} tile = 16
// WHOLE-NOT: nn.linear_cross_entropy
func.func @forward(%x: tensor<4x16x8xf32> {train.binding = #train.batch<"x">},
    %y: tensor<4x16xi64> {train.binding = #train.batch<"y">},
    %w: tensor<32x8xf32> {train.binding = #train.param<"w">},
    %b: tensor<32xf32> {train.binding = #train.param<"b">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %rows = nn.reshape %x : tensor<4x16x8xf32> -> tensor<64x8xf32>
  %p = nn.dot %rows, %w {transpose_b} : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %bias = nn.broadcast %b dims = [1] : tensor<32xf32> -> tensor<64x32xf32>
  %z = nn.add %p, %bias : tensor<64x32xf32>
  %z3 = nn.reshape %z : tensor<64x32xf32> -> tensor<4x16x32xf32>
  %zt = nn.transpose %z3 [0, 2, 1] : tensor<4x16x32xf32> -> tensor<4x32x16xf32>
  %losses, %lse = nn.softmax_cross_entropy %zt, %y ignore_index = -100 : (tensor<4x32x16xf32>, tensor<4x16xi64>) -> (tensor<4x16xf32>, tensor<4x16xf32>)
  %sum = nn.reduce_sum %losses dims = [0, 1] : tensor<4x16xf32> -> tensor<f32>
  %n = nn.constant dense<0.015625> : tensor<f32>
  %loss = nn.mul %sum, %n : tensor<f32>
  return %loss : tensor<f32>
}
