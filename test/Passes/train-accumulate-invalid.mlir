// RUN: lowtide-opt %s --train-accumulate=micro-batches=2 --split-input-file --verify-diagnostics

func.func @train(%x: tensor<4x3xf32> {train.binding = #train.batch<"x">})
    -> (tensor<4x4xf32> {train.binding = #train.metric<"loss">}) {
  // expected-error @below {{'nn.dot' cannot be computed for a part of the batch: it combines each sample with every other}}
  // expected-note @below {{compile it with a smaller batch instead of --micro-batches}}
  %all = nn.dot %x, %x {transpose_b} : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x4xf32>
  return %all : tensor<4x4xf32>
}

// -----

func.func @train(%x: tensor<4x3xf32> {train.binding = #train.batch<"x">})
    -> (tensor<3xf32> {train.binding = #train.metric<"loss">}) {
  // expected-error @below {{'nn.reduce_max' cannot be computed for a part of the batch: it looks at all samples together}}
  // expected-note @below {{compile it with a smaller batch}}
  %top = nn.reduce_max %x dims = [0] : tensor<4x3xf32> -> tensor<3xf32>
  return %top : tensor<3xf32>
}

// -----

// expected-error @below {{@train: a batch of 5 samples does not fall into 2 equal parts}}
// expected-note @below {{--micro-batches=1 or 5 would divide it, or a batch of 6}}
func.func @train(%x: tensor<5xf32> {train.binding = #train.batch<"x">})
    -> (tensor<5xf32> {train.binding = #train.metric<"loss">}) {
  return %x : tensor<5xf32>
}

// -----

// expected-error @below {{batch array "y" has 2 samples, "x" has 4}}
func.func @train(%x: tensor<4xf32> {train.binding = #train.batch<"x">}, %y: tensor<2xf32> {train.binding = #train.batch<"y">})
    -> (tensor<4xf32> {train.binding = #train.metric<"loss">}) {
  return %x : tensor<4xf32>
}

// -----

// A size of one is not taken for the batch.
// expected-error @below {{@train: a batch of 1 samples does not fall into 2 equal parts}}
// expected-note @below {{--micro-batches=1 would divide it}}
func.func @train(%x: tensor<1x4xf32> {train.binding = #train.batch<"x">}, %w: tensor<1x4xf32> {train.binding = #train.param<"w">})
    -> (tensor<1x4xf32> {train.binding = #train.metric<"loss">}) {
  %lr = nn.constant dense<1.0> : tensor<f32>
  %step = nn.constant dense<0> : tensor<i64>
  %n = train.sgd %w gradient %x lr %lr step %step {lr_scale = 1.0, weight_decay = 0.0} : tensor<1x4xf32>, tensor<f32>, tensor<i64>
  return %n : tensor<1x4xf32>
}
