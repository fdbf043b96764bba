// RUN: lowtide-opt %s --nn-segment-scans=min-bytes=256 --train-differentiate --canonicalize --cse -o %t.mlir
// RUN: FileCheck %s --check-prefix=KEPT --input-file=%t.mlir
// RUN: lowtide-opt %t.mlir --train-recompute-scans=recompute=none | FileCheck %s --check-prefix=KEPT
// RUN: lowtide-opt %t.mlir --train-recompute-scans=recompute=products --canonicalize --cse | FileCheck %s --check-prefix=PRODUCTS
// RUN: lowtide-opt %t.mlir --train-recompute-scans=recompute=all --canonicalize --cse | FileCheck %s --check-prefix=ALL
// RUN: not lowtide-opt %t.mlir --train-recompute-scans=recompute=some 2>&1 | FileCheck %s --check-prefix=WORD

// Sixteen steps in four segments. As differentiated, the forward loop lays down the state at the start of each segment, the
// states of all steps, and the products with the input; the way back reads them part by part. Gradients of weights are added
// up from segment to segment.
// KEPT: nn.scan 4 slices{{.*}} -> (tensor<2x4xf32>, tensor<4x2x4xf32>, tensor<16x2x4xf32>, tensor<16x2x4xf32>)
// KEPT: nn.scan 4 slices
// KEPT: nn.scan 4 reversed slices({{[^)]*}}) carries(%{{.*}} = %{{.*}}, %[[DW:.*]] = %{{.*}}, %[[DU:.*]] = %{{[^)]*}}) reads(%{{[^,]*}}) :
// KEPT-NOT: nn.sin
// KEPT: nn.scan 4 reversed slices
// KEPT-DAG: nn.add %[[DW]], %{{.*}} : tensor<4x3xf32>
// KEPT-DAG: nn.add %[[DU]], %{{.*}} : tensor<4x4xf32>

// The products are computed where they are read: their weight is read there, too.
// PRODUCTS: nn.scan 4 slices{{.*}} -> (tensor<2x4xf32>, tensor<4x2x4xf32>, tensor<16x2x4xf32>) {
// PRODUCTS: nn.scan 4 reversed slices(%[[X:.*]] = %arg0, {{[^)]*}}) carries({{[^)]*}}) reads(%{{.*}} = %arg3, %[[W:.*]] = %arg2)
// PRODUCTS: %[[ROWS:.*]] = nn.reshape %[[X]]
// PRODUCTS: nn.dot %[[ROWS]], %[[W]] {transpose_b}
// PRODUCTS-NOT: nn.sin
// PRODUCTS: nn.scan 4 reversed slices

// The segment's steps run again from the state that they started with, the only one that is kept.
// ALL: nn.scan 4 slices{{.*}} -> (tensor<2x4xf32>, tensor<4x2x4xf32>) {
// ALL: nn.scan 4 reversed slices(%[[X:.*]] = %arg0, %[[START:.*]] = %{{.*}}#1)
// ALL: %[[STATE:.*]] = nn.reshape %[[START]] : tensor<1x2x4xf32> -> tensor<2x4xf32>
// ALL: %[[AGAIN:.*]]:2 = nn.scan 4 slices({{.*}}) carries(%{{.*}} = %[[STATE]])
// ALL: nn.sin
// ALL: nn.scan 4 reversed slices
// WORD: error: {{.*}}recompute{{.*}}some
func.func @forward(%x: tensor<16x2x3xf32> {train.binding = #train.batch<"x", dim = 1>},
    %h: tensor<2x4xf32> {train.binding = #train.param<"h">},
    %w: tensor<4x3xf32> {train.binding = #train.param<"w">}, %u: tensor<4x4xf32> {train.binding = #train.param<"u">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %rows = nn.reshape %x : tensor<16x2x3xf32> -> tensor<32x3xf32>
  %all = nn.dot %rows, %w {transpose_b} : (tensor<32x3xf32>, tensor<4x3xf32>) -> tensor<32x4xf32>
  %xs = nn.reshape %all : tensor<32x4xf32> -> tensor<16x2x4xf32>
  %last, %ys = nn.scan 16 slices(%part = %xs) carries(%state = %h) reads(%weight = %u)
      : (tensor<16x2x4xf32>, tensor<2x4xf32>, tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<16x2x4xf32>) {
    %step = nn.reshape %part : tensor<1x2x4xf32> -> tensor<2x4xf32>
    %p = nn.dot %state, %weight {transpose_b} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %sum = nn.add %step, %p : tensor<2x4xf32>
    %next = nn.sin %sum : tensor<2x4xf32>
    %row = nn.reshape %next : tensor<2x4xf32> -> tensor<1x2x4xf32>
    nn.next carries(%next : tensor<2x4xf32>) rows(%row : tensor<1x2x4xf32>)
  }
  %turned = nn.transpose %ys [1, 0, 2] : tensor<16x2x4xf32> -> tensor<2x16x4xf32>
  %end = nn.slice %turned starts = [0, 15, 0] strides = [1, 1, 1] : tensor<2x16x4xf32> -> tensor<2x1x4xf32>
  %loss = nn.reduce_sum %end dims = [0, 1, 2] : tensor<2x1x4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
