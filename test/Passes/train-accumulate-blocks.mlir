// RUN: lowtide-opt %s --train-accumulate=micro-batches=2 --canonicalize --cse --verify-step --split-input-file --verify-diagnostics | FileCheck %s

// Two views of a batch go through a model as one, and come apart: a part has both views of its samples.
// CHECK-LABEL: func.func @views
// CHECK: train.accumulate 2 slices(%[[X:[a-z0-9]+]] = %arg0)
// CHECK: %[[BOTH:.*]] = nn.concat %[[X]], %{{.*}} dim = 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
// CHECK: nn.slice %{{.*}} starts = [2, 0] strides = [1, 1] : tensor<4x3xf32> -> tensor<2x3xf32>
// CHECK: nn.pad %{{.*}} low = [2, 0] high = [4, 0] interior = [0, 0] : tensor<2x3xf32> -> tensor<8x3xf32>
// expected-remark @+1 {{2 parts of 2 samples}}
func.func @views(%x: tensor<4x3xf32> {train.binding = #train.batch<"x">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<16x3xf32> {train.binding = #train.output<"padded">}) {
  %other = nn.neg %x : tensor<4x3xf32>
  %both = nn.concat %x, %other dim = 0 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
  %h = nn.exp %both : tensor<8x3xf32>
  %second = nn.slice %h starts = [4, 0] strides = [1, 1] : tensor<8x3xf32> -> tensor<4x3xf32>
  %loss = nn.reduce_sum %second dims = [0, 1] : tensor<4x3xf32> -> tensor<f32>
  %padded = nn.pad %second low = [4, 0] high = [8, 0] interior = [0, 0] : tensor<4x3xf32> -> tensor<16x3xf32>
  return %loss, %padded : tensor<f32>, tensor<16x3xf32>
}

// -----

// A token in front of all samples is no block of them.
func.func @token(%x: tensor<4x3xf32> {train.binding = #train.batch<"x">}, %w: tensor<1x3xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  // expected-error @below {{'nn.concat' cannot be computed for a part of the batch: it looks at all samples together}}
  // expected-note @below {{compile it with a smaller batch instead of --micro-batches}}
  %both = nn.concat %w, %x dim = 0 : (tensor<1x3xf32>, tensor<4x3xf32>) -> tensor<5x3xf32>
  %loss = nn.reduce_sum %both dims = [0, 1] : tensor<5x3xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The first half of the samples is no block of all of them.
func.func @half(%x: tensor<4x3xf32> {train.binding = #train.batch<"x">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  // expected-error @below {{'nn.slice' cannot be computed for a part of the batch: it looks at all samples together}}
  // expected-note @below {{compile it with a smaller batch instead of --micro-batches}}
  %first = nn.slice %x starts = [0, 0] strides = [1, 1] : tensor<4x3xf32> -> tensor<2x3xf32>
  %loss = nn.reduce_sum %first dims = [0, 1] : tensor<2x3xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Each sample has a filter: the groups of a part are those of its samples.
// CHECK-LABEL: func.func @filters
// CHECK: nn.conv %{{.*}}, %{{.*}} strides = [1] pads = [0], [0] dilations = [1] groups = 4 : (tensor<1x4x3xf32>, tensor<4x1x2xf32>) -> tensor<1x4x2xf32>
// expected-remark @+1 {{2 parts of 2 samples}}
func.func @filters(%x: tensor<4x2x3xf32> {train.binding = #train.batch<"x">}, %k: tensor<4x2x1x2xf32> {train.binding = #train.batch<"k">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %z = nn.reshape %x : tensor<4x2x3xf32> -> tensor<1x8x3xf32>
  %f = nn.reshape %k : tensor<4x2x1x2xf32> -> tensor<8x1x2xf32>
  %y = nn.conv %z, %f strides = [1] pads = [0], [0] dilations = [1] groups = 8 : (tensor<1x8x3xf32>, tensor<8x1x2xf32>) -> tensor<1x8x2xf32>
  %loss = nn.reduce_sum %y dims = [0, 1, 2] : tensor<1x8x2xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Groups with channels of several samples.
func.func @mixed_groups(%x: tensor<4x2x3xf32> {train.binding = #train.batch<"x">}, %f: tensor<8x4x2xf32> {train.binding = #train.param<"f">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %z = nn.reshape %x : tensor<4x2x3xf32> -> tensor<1x8x3xf32>
  // expected-error @below {{'nn.conv' cannot be computed for a part of the batch: it looks at all samples together}}
  // expected-note @below {{compile it with a smaller batch instead of --micro-batches}}
  %y = nn.conv %z, %f strides = [1] pads = [0], [0] dilations = [1] groups = 2 : (tensor<1x8x3xf32>, tensor<8x4x2xf32>) -> tensor<1x8x2xf32>
  %loss = nn.reduce_sum %y dims = [0, 1, 2] : tensor<1x8x2xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Statistics of each sample's channels are those of the whole batch: no warning.
// CHECK-LABEL: func.func @channels
// CHECK: nn.batch_norm %{{.*}} : (tensor<1x4x3xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<1x4x3xf32>, tensor<4xf32>, tensor<4xf32>)
// expected-remark @+1 {{2 parts of 2 samples}}
func.func @channels(%x: tensor<4x2x3xf32> {train.binding = #train.batch<"x">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %z = nn.reshape %x : tensor<4x2x3xf32> -> tensor<1x8x3xf32>
  %ones = nn.constant dense<1.0> : tensor<8xf32>
  %y, %mean, %variance = nn.batch_norm %z, %ones, %ones epsilon = 1.0e-05 : (tensor<1x8x3xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<1x8x3xf32>, tensor<8xf32>, tensor<8xf32>)
  %yy = nn.mul %y, %y : tensor<1x8x3xf32>
  %loss = nn.reduce_sum %yy dims = [0, 1, 2] : tensor<1x8x3xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Steps come before samples, and the draw has taken the steps for them: it is made once, and the part's columns are cut.
// CHECK-LABEL: func.func @steps_drawn
// CHECK: %[[DRAW:.*]] = nn.random_uniform {{.*}} -> tensor<4x2x4x3xf32>
// CHECK: %[[ALL:.*]] = nn.reshape %[[DRAW]]
// CHECK: train.accumulate 2
// CHECK-NOT: nn.random_uniform
// expected-remark @+1 {{2 parts of 2 samples}}
func.func @steps_drawn(%x: tensor<8x4x3xf32> {train.binding = #train.batch<"x", dim = 1>}, %seed: tensor<i64> {train.binding = #train.scalar<"seed">},
    %step: tensor<i64> {train.binding = #train.scalar<"step">}, %row: tensor<i64> {train.binding = #train.scalar<"row">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %draw = nn.random_uniform %seed, %step, %row op = 0 batch_dim = 0 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<4x2x4x3xf32>
  %each = nn.reshape %draw : tensor<4x2x4x3xf32> -> tensor<8x4x3xf32>
  %y = nn.mul %x, %each : tensor<8x4x3xf32>
  %loss = nn.reduce_sum %y dims = [0, 1, 2] : tensor<8x4x3xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// `y[:, 1] = …`: known rows, one of each sample, which nothing else reads.
// CHECK-LABEL: func.func @written_in_place
// CHECK: nn.scatter set %{{.*}} axis = 0 : (tensor<6x2xf32>, tensor<2xi64>, tensor<2x2xf32>) -> tensor<6x2xf32>
// expected-remark @+1 {{2 parts of 2 samples}}
func.func @written_in_place(%x: tensor<4x2xf32> {train.binding = #train.batch<"x">})
    -> (tensor<12x2xf32> {train.binding = #train.output<"y">}) {
  %zeros = nn.constant dense<0.0> : tensor<12x2xf32>
  %rows = nn.constant dense<[1, 4, 7, 10]> : tensor<4xi64>
  %y = nn.scatter set %x into %zeros[%rows] axis = 0 : (tensor<12x2xf32>, tensor<4xi64>, tensor<4x2xf32>) -> tensor<12x2xf32>
  return %y : tensor<12x2xf32>
}

// -----

// The second of these rows is the next sample's.
func.func @next_sample(%x: tensor<4x3x2xf32> {train.binding = #train.batch<"x">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %flat = nn.reshape %x : tensor<4x3x2xf32> -> tensor<12x2xf32>
  %rows = nn.constant dense<[[0, 3], [3, 6], [6, 9], [9, 12]]> : tensor<4x2xi64>
  // expected-error @below {{'nn.gather' cannot be computed for a part of the batch: it looks at all samples together}}
  // expected-note @below {{compile it with a smaller batch instead of --micro-batches}}
  %y = nn.gather %flat[%rows] axis = 0 : (tensor<12x2xf32>, tensor<4x2xi64>) -> tensor<4x2x2xf32>
  %loss = nn.reduce_sum %y dims = [0, 1, 2] : tensor<4x2x2xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Windows that are as many as samples are none of them.
// CHECK-LABEL: func.func @windows
// CHECK: nn.scatter_add[%{{.*}}] %{{.*}} axis = 1 : (tensor<4x2xi64>, tensor<2x4x2xf32>) -> tensor<2x8xf32>
// expected-remark @+1 {{2 parts of 2 samples}}
func.func @windows(%x: tensor<4x4x2xf32> {train.binding = #train.batch<"x">})
    -> (tensor<4x8xf32> {train.binding = #train.output<"y">}) {
  %places = nn.constant dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>
  %y = nn.scatter_add[%places] %x axis = 1 : (tensor<4x2xi64>, tensor<4x4x2xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// A state for each sample is a parameter whose gradient has a row for each: limits and updates come after the loop.
// CHECK-LABEL: func.func @state_of_each_sample
// CHECK: %[[LOOP:.*]]:2 = train.accumulate 2 {{.*}} -> (tensor<f32>, tensor<4x3xf32>) {
// CHECK: %[[LIMITED:.*]] = train.clip_value %[[LOOP]]#1
// CHECK: train.sgd %arg1 gradient %[[LIMITED]]
// expected-remark @+1 {{2 parts of 2 samples}}
func.func @state_of_each_sample(%x: tensor<4x3xf32> {train.binding = #train.batch<"x">}, %h: tensor<4x3xf32> {train.binding = #train.param<"h">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<4x3xf32> {train.binding = #train.param<"h">}) {
  %lr = nn.constant dense<1.0> : tensor<f32>
  %step = nn.constant dense<0> : tensor<i64>
  %product = nn.mul %x, %h : tensor<4x3xf32>
  %slope = nn.exp %product : tensor<4x3xf32>
  %loss = nn.reduce_sum %product dims = [0, 1] : tensor<4x3xf32> -> tensor<f32>
  %limited = train.clip_value %slope {limit = 1.0 : f64} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %n = train.sgd %h gradient %limited lr %lr step %step {lr_scale = 1.0, weight_decay = 0.0} : tensor<4x3xf32>, tensor<f32>, tensor<i64>
  return %loss, %n : tensor<f32>, tensor<4x3xf32>
}
