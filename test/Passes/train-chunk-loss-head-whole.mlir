// RUN: lowtide-opt %s --split-input-file --train-chunk-loss-head -o /dev/null 2>&1 | FileCheck %s --implicit-check-not=warning:

// A head of more than 64 MiB that stays whole is a warning, with its bytes, its weight, the reason and what to do.

// CHECK: warning: loss head: logits of 125.00 MiB (a product with 'head.weight') stay whole in @train: they are an output
// CHECK: note: without --outputs, a training step computes its loss and no output
func.func @train(%x: tensor<1024x64xf32> {train.binding = #train.batch<"x">},
    %y: tensor<1024xi64> {train.binding = #train.batch<"y">},
    %w: tensor<32000x64xf32> {train.binding = #train.param<"head.weight">})
    -> (tensor<1024xf32> {train.binding = #train.metric<"loss">}, tensor<4x256x32000xf32> {train.binding = #train.output<"logits">}) {
  %p = nn.dot %x, %w {transpose_b} : (tensor<1024x64xf32>, tensor<32000x64xf32>) -> tensor<1024x32000xf32>
  %l, %lse = nn.softmax_cross_entropy %p, %y : (tensor<1024x32000xf32>, tensor<1024xi64>) -> (tensor<1024xf32>, tensor<1024xf32>)
  %o = nn.reshape %p : tensor<1024x32000xf32> -> tensor<4x256x32000xf32>
  return %l, %o : tensor<1024xf32>, tensor<4x256x32000xf32>
}

// -----

// Added up along the rows: nothing can be said of some of them. What comes out is no product.
// CHECK: warning: loss head: logits of 125.00 MiB (a product with 'w') stay whole in @eval: they are read elsewhere, by 'nn.cumsum', which does not treat rows one by one
// CHECK: note: --micro-batches=N
// CHECK: warning: loss head: logits of 125.00 MiB stay whole in @eval: they are no product of rows with one matrix
// CHECK: note: --micro-batches=N
func.func @eval(%x: tensor<1024x64xf32> {train.binding = #train.batch<"x">},
    %y: tensor<1024xi64> {train.binding = #train.batch<"y">},
    %w: tensor<32000x64xf32> {train.binding = #train.param<"w">})
    -> (tensor<1024xf32> {train.binding = #train.metric<"loss">}) {
  %p = nn.dot %x, %w {transpose_b} : (tensor<1024x64xf32>, tensor<32000x64xf32>) -> tensor<1024x32000xf32>
  %c = nn.cumsum %p dim = 0 : tensor<1024x32000xf32>
  %l, %lse = nn.softmax_cross_entropy %p, %y : (tensor<1024x32000xf32>, tensor<1024xi64>) -> (tensor<1024xf32>, tensor<1024xf32>)
  %m, %mse = nn.softmax_cross_entropy %c, %y : (tensor<1024x32000xf32>, tensor<1024xi64>) -> (tensor<1024xf32>, tensor<1024xf32>)
  %t = nn.add %l, %m : tensor<1024xf32>
  return %t : tensor<1024xf32>
}

// -----

// The weight is as large: --loss-head-chunks=N would part it.
// CHECK: warning: loss head: logits of 78.12 MiB (a product with 'w') stay whole in @train: they are not four times as large as the weight
// CHECK: note: --loss-head-chunks=N parts them anyway
func.func @train(%x: tensor<640x640xf32> {train.binding = #train.batch<"x">},
    %y: tensor<640xi64> {train.binding = #train.batch<"y">},
    %w: tensor<32000x640xf32> {train.binding = #train.param<"w">})
    -> (tensor<640xf32> {train.binding = #train.metric<"loss">}) {
  %p = nn.dot %x, %w {transpose_b} : (tensor<640x640xf32>, tensor<32000x640xf32>) -> tensor<640x32000xf32>
  %l, %lse = nn.softmax_cross_entropy %p, %y : (tensor<640x32000xf32>, tensor<640xi64>) -> (tensor<640xf32>, tensor<640xf32>)
  return %l : tensor<640xf32>
}

// -----

// 1021 rows are a prime number; what is smaller is a remark.
// CHECK: warning: loss head: logits of 124.63 MiB (a product with 'w') stay whole in @train: their rows do not fall into equal tiles
// CHECK: note: another batch or sequence length
// CHECK: remark: loss head: logits of 15.58 MiB (a product with 'v') stay whole in @train: their rows do not fall into equal tiles
func.func @train(%x: tensor<1021x64xf32> {train.binding = #train.batch<"x">},
    %y: tensor<1021xi64> {train.binding = #train.batch<"y">},
    %w: tensor<32000x64xf32> {train.binding = #train.param<"w">},
    %v: tensor<4000x64xf32> {train.binding = #train.param<"v">})
    -> (tensor<1021xf32> {train.binding = #train.metric<"loss">}) {
  %p = nn.dot %x, %w {transpose_b} : (tensor<1021x64xf32>, tensor<32000x64xf32>) -> tensor<1021x32000xf32>
  %l, %lse = nn.softmax_cross_entropy %p, %y : (tensor<1021x32000xf32>, tensor<1021xi64>) -> (tensor<1021xf32>, tensor<1021xf32>)
  %q = nn.dot %x, %v {transpose_b} : (tensor<1021x64xf32>, tensor<4000x64xf32>) -> tensor<1021x4000xf32>
  %k, %kse = nn.softmax_cross_entropy %q, %y : (tensor<1021x4000xf32>, tensor<1021xi64>) -> (tensor<1021xf32>, tensor<1021xf32>)
  %t = nn.add %l, %k : tensor<1021xf32>
  return %t : tensor<1021xf32>
}

// -----

// A loss that is no op, of the largest of each column.
// CHECK: warning: loss head: logits of 125.00 MiB (a product with 'w') stay whole in @train: they are read elsewhere, by 'nn.reduce_max', which does not treat rows one by one
// CHECK: note: --micro-batches=N
func.func @train(%x: tensor<1024x64xf32> {train.binding = #train.batch<"x">},
    %w: tensor<32000x64xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %p = nn.dot %x, %w {transpose_b} : (tensor<1024x64xf32>, tensor<32000x64xf32>) -> tensor<1024x32000xf32>
  %most = nn.reduce_max %p dims = [0] : tensor<1024x32000xf32> -> tensor<32000xf32>
  %loss = nn.reduce_sum %most dims = [0] : tensor<32000xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Activations of a layer, which another layer reads under another shape or once they are small, are no logits.
func.func @train(%x: tensor<1024x64xf32> {train.binding = #train.batch<"x">},
    %w: tensor<32000x64xf32> {train.binding = #train.param<"w">},
    %v: tensor<32000x2xf32> {train.binding = #train.param<"v">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %p = nn.dot %x, %w {transpose_b} : (tensor<1024x64xf32>, tensor<32000x64xf32>) -> tensor<1024x32000xf32>
  %samples = nn.reshape %p : tensor<1024x32000xf32> -> tensor<4x256x32000xf32>
  %pooled = nn.reduce_max %samples dims = [1] : tensor<4x256x32000xf32> -> tensor<4x32000xf32>
  %y = nn.dot %pooled, %v : (tensor<4x32000xf32>, tensor<32000x2xf32>) -> tensor<4x2xf32>
  %loss = nn.reduce_sum %y dims = [0, 1] : tensor<4x2xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
