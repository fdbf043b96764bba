// RUN: lowtide-opt %s --train-accumulate=micro-batches=2 --canonicalize --cse --verify-step --split-input-file --verify-diagnostics | FileCheck %s

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
