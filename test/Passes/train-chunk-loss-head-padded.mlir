// RUN: lowtide-opt %s --split-input-file --nn-fuse-patterns=loss-head-always --train-differentiate --canonicalize --cse --train-chunk-loss-head --canonicalize --cse 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID --input-file=%t

// 1021 rows are a prime number: zeros after them make 1040, in tiles of 65. Their cotangents are zeros, too.
// SAID: remark: loss head: logits of 15.87 MiB in 16 pieces, sums over tiles of 65 rows
// CHECK-LABEL: func.func @gradient
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<1021x8xf32>
// CHECK-NOT: 1040x4000xf32
// CHECK: %[[PADDED:.*]] = nn.pad %[[X]] low = [0, 0] high = [19, 0] {{.*}} -> tensor<1040x8xf32>
// CHECK: nn.pad %{{.*}} low = [0] high = [19] {{.*}} -> tensor<1040xi64>
// CHECK: train.accumulate 16 slices({{.*}} = %[[PADDED]], {{.*}}) carries(
// CHECK-NEXT: nn.linear_cross_entropy_grad {{.*}} onto
// CHECK: nn.slice {{.*}} -> tensor<1021x8xf32>
func.func @forward(%x: tensor<1021x8xf32> {train.binding = #train.param<"x">},
    %y: tensor<1021xi64> {train.binding = #train.batch<"y">},
    %w: tensor<4000x8xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %p = nn.dot %x, %w {transpose_b} : (tensor<1021x8xf32>, tensor<4000x8xf32>) -> tensor<1021x4000xf32>
  %losses, %lse = nn.softmax_cross_entropy %p, %y : (tensor<1021x4000xf32>, tensor<1021xi64>) -> (tensor<1021xf32>, tensor<1021xf32>)
  %loss = nn.reduce_sum %losses dims = [0] : tensor<1021xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Logits of a few bytes are not worth it.
// SAID: remark: loss head: logits of 31.91 KiB in 1 piece, sums over tiles of 1021 rows
// CHECK-LABEL: func.func @gradient
// CHECK-NOT: nn.pad
func.func @forward(%x: tensor<1021x8xf32> {train.binding = #train.param<"x">},
    %y: tensor<1021xi64> {train.binding = #train.batch<"y">},
    %w: tensor<8x8xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %p = nn.dot %x, %w {transpose_b} : (tensor<1021x8xf32>, tensor<8x8xf32>) -> tensor<1021x8xf32>
  %losses, %lse = nn.softmax_cross_entropy %p, %y : (tensor<1021x8xf32>, tensor<1021xi64>) -> (tensor<1021xf32>, tensor<1021xf32>)
  %loss = nn.reduce_sum %losses dims = [0] : tensor<1021xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
