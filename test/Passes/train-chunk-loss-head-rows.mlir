// RUN: lowtide-opt %s --nn-fuse-patterns=loss-head-always --train-differentiate --canonicalize --cse --train-chunk-loss-head=chunks=2 --canonicalize --cse | FileCheck %s
// RUN: lowtide-opt %s --nn-fuse-patterns=loss-head-always --train-differentiate --canonicalize --cse --train-chunk-loss-head=chunks=1 --canonicalize --cse | FileCheck %s --check-prefix=WHOLE
// RUN: lowtide-opt %s --nn-fuse-patterns=loss-head-always --train-differentiate --canonicalize --cse --train-chunk-loss-head=chunks=2 -o /dev/null 2>&1 | FileCheck %s --check-prefix=SAID

// A slice by one token, a soft cap, a temperature that is trained and classes that are masked out between product and
// loss: rows of the hidden layer are cut instead, reshape and transpose sink, and all of it is one loop with the backward
// pass. Sums (the temperature's and the weight's gradients) go over tiles of 16 rows, however many pieces there are.
// SAID: remark: loss head: logits of 8.00 KiB in 2 pieces with what is made of them, sums over tiles of 16 rows
// CHECK-LABEL: func.func @gradient
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x17x8xf32>
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<32x8xf32>
// CHECK-NOT: 64x32
// CHECK: nn.slice %[[X]] starts = [0, 0, 0] {{.*}} -> tensor<4x16x8xf32>
// CHECK-NOT: 64x32
// CHECK: train.accumulate 2 slices(%[[XK:[a-z0-9]+]] = %{{.*}}, %{{.*}} = %{{.*}}) carries(
// CHECK: nn.dot %[[XK]], %[[W]] {transpose_b} : (tensor<32x8xf32>, tensor<32x8xf32>) -> tensor<32x32xf32>
// CHECK: nn.tanh
// CHECK: nn.softmax_cross_entropy {{.*}}tensor<32x32xf32>
// CHECK-COUNT-2: nn.dot {{.*}} {transpose_a} : (tensor<16x32xf32>, tensor<16x8xf32>) -> tensor<32x8xf32>
// CHECK: train.next carries({{.*}}) rows({{.*}})
// CHECK-NOT: 64x32
// CHECK: return
// WHOLE: train.accumulate 1 slices
// WHOLE-COUNT-4: nn.dot {{.*}} {transpose_a} : (tensor<16x32xf32>, tensor<16x8xf32>) -> tensor<32x8xf32>
func.func @forward(%x: tensor<4x17x8xf32> {train.binding = #train.batch<"x">},
    %y: tensor<4x16xi64> {train.binding = #train.batch<"y">},
    %w: tensor<32x8xf32> {train.binding = #train.param<"w">},
    %t: tensor<f32> {train.binding = #train.param<"t">},
    %m: tensor<32xi1> {train.binding = #train.constant<"m">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %rows = nn.reshape %x : tensor<4x17x8xf32> -> tensor<68x8xf32>
  %p = nn.dot %rows, %w {transpose_b} : (tensor<68x8xf32>, tensor<32x8xf32>) -> tensor<68x32xf32>
  %p3 = nn.reshape %p : tensor<68x32xf32> -> tensor<4x17x32xf32>
  %cap = nn.constant dense<30.0> : tensor<4x17x32xf32>
  %d = nn.div %p3, %cap : tensor<4x17x32xf32>
  %h = nn.tanh %d : tensor<4x17x32xf32>
  %z = nn.mul %h, %cap : tensor<4x17x32xf32>
  %tb = nn.broadcast %t dims = [] : tensor<f32> -> tensor<4x17x32xf32>
  %zt = nn.mul %z, %tb : tensor<4x17x32xf32>
  %mb = nn.broadcast %m dims = [2] : tensor<32xi1> -> tensor<4x17x32xi1>
  %low = nn.constant dense<-1.0e4> : tensor<4x17x32xf32>
  %zm = nn.select %mb, %low, %zt : tensor<4x17x32xi1>, tensor<4x17x32xf32>
  %s = nn.slice %zm starts = [0, 0, 0] strides = [1, 1, 1] : tensor<4x17x32xf32> -> tensor<4x16x32xf32>
  %c = nn.transpose %s [0, 2, 1] : tensor<4x16x32xf32> -> tensor<4x32x16xf32>
  %losses, %lse = nn.softmax_cross_entropy %c, %y : (tensor<4x32x16xf32>, tensor<4x16xi64>) -> (tensor<4x16xf32>, tensor<4x16xf32>)
  %sum = nn.reduce_sum %losses dims = [0, 1] : tensor<4x16xf32> -> tensor<f32>
  %n = nn.constant dense<0.015625> : tensor<f32>
  %loss = nn.mul %sum, %n : tensor<f32>
  return %loss : tensor<f32>
}
