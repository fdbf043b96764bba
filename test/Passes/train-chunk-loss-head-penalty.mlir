// RUN: lowtide-opt %s --split-input-file --nn-fuse-patterns=loss-head-always --train-differentiate --canonicalize --cse --train-chunk-loss-head=chunks=2 --canonicalize --cse | FileCheck %s
// RUN: lowtide-opt %s --split-input-file --nn-fuse-patterns=loss-head-always --train-differentiate --canonicalize --cse --train-chunk-loss-head=chunks=2 --nn-decompose --canonicalize --cse | FileCheck %s --check-prefix=ONCE

// The cotangent of a penalty on log-sum-exps depends on them, row by row: it is computed inside the loop, between the loss and
// its gradients, which share the logits.
// CHECK-LABEL: func.func @gradient
// CHECK-NOT: 64x32
// CHECK: train.accumulate 2 slices(%[[XK:.*]] = %arg0, %[[YK:.*]] = %arg1, %[[CK:.*]] = %{{.*}}, %[[DK:.*]] = %{{.*}}) carries(%[[DW:.*]] = %{{[a-z0-9]+}}) :
// CHECK-NEXT: %[[LOSS:.*]], %[[LSE:.*]] = nn.linear_cross_entropy %[[XK]], %arg2 labels %[[YK]] :
// CHECK-NEXT: %[[PRODUCT:.*]] = nn.mul %[[CK]], %[[LSE]] : tensor<32xf32>
// CHECK-NEXT: %[[TWICE:.*]] = nn.add %[[PRODUCT]], %[[PRODUCT]] : tensor<32xf32>
// CHECK-NEXT: %{{.*}}, %{{.*}}, %{{.*}}, %[[NEXT:.*]] = nn.linear_cross_entropy_grad %[[XK]], %arg2 labels %[[YK]] dloss %[[DK]] dlse %[[TWICE]] onto %[[DW]] tile = 16
// CHECK-NEXT: train.next carries(%[[NEXT]] : tensor<32x8xf32>) rows(%[[LOSS]], %[[LSE]] : tensor<32xf32>, tensor<32xf32>)
// CHECK-NOT: nn.linear_cross_entropy
// CHECK-NOT: 64x32

// ONCE: train.accumulate
// ONCE: {transpose_b}
// ONCE-NOT: {transpose_b}
// ONCE: train.next
func.func @forward(%x: tensor<64x8xf32> {train.binding = #train.batch<"x">},
    %y: tensor<64xi64> {train.binding = #train.batch<"y">},
    %w: tensor<32x8xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %p = nn.dot %x, %w {transpose_b} : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %losses, %lse = nn.softmax_cross_entropy %p, %y : (tensor<64x32xf32>, tensor<64xi64>) -> (tensor<64xf32>, tensor<64xf32>)
  %squares = nn.mul %lse, %lse : tensor<64xf32>
  %sum = nn.reduce_sum %losses dims = [0] : tensor<64xf32> -> tensor<f32>
  %penalties = nn.reduce_sum %squares dims = [0] : tensor<64xf32> -> tensor<f32>
  %part = nn.constant dense<0.015625> : tensor<f32>
  %small = nn.constant dense<0.0001> : tensor<f32>
  %mean = nn.mul %sum, %part : tensor<f32>
  %penalty = nn.mul %penalties, %small : tensor<f32>
  %loss = nn.add %mean, %penalty : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Each cotangent is made of the other head's log-sum-exp: one head is computed together, the other in two loops around it.
// CHECK-LABEL: func.func @gradient
// CHECK: train.accumulate 2
// CHECK-NEXT: nn.linear_cross_entropy %
// CHECK-NEXT: train.next
// CHECK: train.accumulate 2
// CHECK-NEXT: nn.linear_cross_entropy_grad
// CHECK-NEXT: train.next
// CHECK: train.accumulate 2
// CHECK-NEXT: nn.linear_cross_entropy_grad
// CHECK-NEXT: train.next
// CHECK-NOT: nn.linear_cross_entropy
func.func @forward(%x: tensor<64x8xf32> {train.binding = #train.batch<"x">},
    %y: tensor<64xi64> {train.binding = #train.batch<"y">},
    %w: tensor<32x8xf32> {train.binding = #train.param<"w">},
    %v: tensor<32x8xf32> {train.binding = #train.param<"v">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %p = nn.dot %x, %w {transpose_b} : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %q = nn.dot %x, %v {transpose_b} : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %0:2 = nn.softmax_cross_entropy %p, %y : (tensor<64x32xf32>, tensor<64xi64>) -> (tensor<64xf32>, tensor<64xf32>)
  %1:2 = nn.softmax_cross_entropy %q, %y : (tensor<64x32xf32>, tensor<64xi64>) -> (tensor<64xf32>, tensor<64xf32>)
  %both = nn.mul %0#1, %1#1 : tensor<64xf32>
  %sum = nn.add %0#0, %1#0 : tensor<64xf32>
  %each = nn.add %sum, %both : tensor<64xf32>
  %loss = nn.reduce_sum %each dims = [0] : tensor<64xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
