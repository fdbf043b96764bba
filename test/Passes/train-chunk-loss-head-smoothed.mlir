// RUN: lowtide-opt %s --nn-fuse-patterns=loss-head-always --train-differentiate --canonicalize --cse --train-chunk-loss-head=chunks=2 --canonicalize --cse | FileCheck %s

// Labels are smoothed: the loop hands on the logarithms of the sums, too, and takes their cotangents. The other half of the
// smoothing is a product with the sum of the weight.
// CHECK-LABEL: func.func @gradient
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<64x8xf32>
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<32x8xf32>
// CHECK-NOT: 64x32
// CHECK: %[[HEAD:.*]]:3 = train.accumulate 2 slices(%[[XK:.*]] = %[[X]], %[[YK:.*]] = %{{.*}}, %[[DK:.*]] = %{{.*}}, %[[EK:.*]] = %{{.*}}) carries(%[[DW:.*]] = %{{[a-z0-9]+}}) :
// CHECK-NEXT: %[[LOSS:.*]], %[[LSE:.*]], %{{.*}}, %[[NEXT:.*]] = nn.linear_cross_entropy_grad %[[XK]], %[[W]] labels %[[YK]] dloss %[[DK]] dlse %[[EK]] onto %[[DW]] tile = 16
// CHECK-NEXT: train.next carries(%[[NEXT]] : tensor<32x8xf32>) rows(%[[LOSS]], %[[LSE]] : tensor<32xf32>, tensor<32xf32>)
// CHECK-NOT: nn.linear_cross_entropy
// CHECK: nn.reduce_sum %[[W]] dims = [0]
// CHECK-NOT: 64x32
func.func @forward(%x: tensor<64x8xf32> {train.binding = #train.batch<"x">},
    %y: tensor<64xi64> {train.binding = #train.batch<"y">},
    %w: tensor<32x8xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %p = nn.dot %x, %w {transpose_b} : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %l = nn.log_softmax %p dim = 1 : tensor<64x32xf32>
  %i = nn.reshape %y : tensor<64xi64> -> tensor<64x1xi64>
  %hard = nn.gather_elements %l[%i] axis = 1 : (tensor<64x32xf32>, tensor<64x1xi64>) -> tensor<64x1xf32>
  %spread = nn.reduce_sum %l dims = [0, 1] : tensor<64x32xf32> -> tensor<f32>
  %sum = nn.reduce_sum %hard dims = [0, 1] : tensor<64x1xf32> -> tensor<f32>
  %kept = nn.constant dense<-0.0140625> : tensor<f32>
  %part = nn.constant dense<-0.000048828125> : tensor<f32>
  %a = nn.mul %sum, %kept : tensor<f32>
  %b = nn.mul %spread, %part : tensor<f32>
  %loss = nn.add %a, %b : tensor<f32>
  return %loss : tensor<f32>
}
