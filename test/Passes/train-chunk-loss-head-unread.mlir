// RUN: lowtide-opt %s --train-chunk-loss-head=chunks=4 2>&1 | FileCheck %s

// Nothing reads the loss: there is nothing to add up in pieces, and nothing to compute.
// CHECK-LABEL: func.func @train
// CHECK-NEXT: return
func.func @train(%x: tensor<640x640xf32> {train.binding = #train.batch<"x">},
    %y: tensor<640xi64> {train.binding = #train.batch<"y">},
    %w: tensor<32000x640xf32> {train.binding = #train.param<"w">}) {
  %p = nn.dot %x, %w {transpose_b} : (tensor<640x640xf32>, tensor<32000x640xf32>) -> tensor<640x32000xf32>
  %l, %lse = nn.softmax_cross_entropy %p, %y : (tensor<640x32000xf32>, tensor<640xi64>) -> (tensor<640xf32>, tensor<640xf32>)
  return
}
