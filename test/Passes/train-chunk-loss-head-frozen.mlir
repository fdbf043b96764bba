// A head whose matrix is frozen: no gradient of it is there, so that its logits are the largest tensor of the step although they
// are only twice as large as the matrix. They are computed in chunks, one for each tile; where the matrix is trained they stay.
// RUN: lowtide-opt %s --nn-fuse-patterns --train-differentiate --canonicalize --cse --train-chunk-loss-head --canonicalize --cse 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID --input-file=%t.err
// RUN: sed 's/#train.constant/#train.param/' %s | lowtide-opt - --nn-fuse-patterns --train-differentiate --canonicalize --cse --train-chunk-loss-head 2>&1 | FileCheck %s --check-prefix=TRAINED

// SAID: remark: loss head: logits of 4.00 MiB in 4 pieces with what is made of them, sums over tiles of 128 rows
// CHECK-LABEL: func.func @gradient
// CHECK-SAME: %[[HEAD:[a-z0-9]+]]: tensor<2048x256xf32>
// CHECK: train.accumulate 4 slices(
// CHECK: nn.dot %{{.*}}, %[[HEAD]] {transpose_b} : (tensor<128x256xf32>, tensor<2048x256xf32>) -> tensor<128x2048xf32>
// CHECK-NOT: tensor<512x2048xf32>
// CHECK: return
// TRAINED: remark: loss head: logits of 4.00 MiB (a product with 'head') stay whole in @gradient: they are not four times as large as the weight
// TRAINED: tensor<512x2048xf32>
func.func @forward(%x: tensor<512x256xf32> {train.binding = #train.batch<"x">},
    %y: tensor<512xi64> {train.binding = #train.batch<"y">},
    %s: tensor<256xf32> {train.binding = #train.param<"s">},
    %head: tensor<2048x256xf32> {train.binding = #train.constant<"head">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %sb = nn.broadcast %s dims = [1] : tensor<256xf32> -> tensor<512x256xf32>
  %h = nn.mul %x, %sb : tensor<512x256xf32>
  %p = nn.dot %h, %head {transpose_b} : (tensor<512x256xf32>, tensor<2048x256xf32>) -> tensor<512x2048xf32>
  %losses, %lse = nn.softmax_cross_entropy %p, %y : (tensor<512x2048xf32>, tensor<512xi64>) -> (tensor<512xf32>, tensor<512xf32>)
  %sum = nn.reduce_sum %losses dims = [0] : tensor<512xf32> -> tensor<f32>
  %n = nn.constant dense<0.001953125> : tensor<f32>
  %loss = nn.mul %sum, %n : tensor<f32>
  return %loss : tensor<f32>
}
