// RUN: lowtide-opt %s --train-accumulate=micro-batches=2 --canonicalize --cse --verify-step --split-input-file --verify-diagnostics | FileCheck %s

// `x[arange(B), i]`: a part reads its own rows, which it numbers from those before it on.
// CHECK-LABEL: func.func @own_rows
// CHECK: %[[ZERO:.*]] = nn.constant dense<0> : tensor<i64>
// CHECK: train.accumulate 2 slices(%[[X:[a-z0-9]+]] = %arg0, %[[BASE:[a-z0-9]+]] = %{{[a-z0-9]+}}, %[[I:[a-z0-9]+]] = %arg1) carries(%[[PART:[a-z0-9]+]] = %[[ZERO]],
// CHECK-DAG: %[[FLAT:.*]] = nn.reshape %[[X]]
// CHECK-DAG: %[[NUMBER:.*]] = nn.add %[[BASE]], %[[I]]
// CHECK-DAG: %[[BEFORE:.*]] = nn.mul %[[PART]], %{{.*}} : tensor<i64>
// CHECK: %[[EACH:.*]] = nn.broadcast %[[BEFORE]]
// CHECK: %[[OWN:.*]] = nn.sub %[[NUMBER]], %[[EACH]]
// CHECK: nn.gather %[[FLAT]][%[[OWN]]] axis = 0 : (tensor<6x5xf32>, tensor<2xi64>) -> tensor<2x5xf32>
// CHECK: nn.scatter_add[%[[OWN]]] %{{.*}} axis = 0 : (tensor<2xi64>, tensor<2x5xf32>) -> tensor<6x5xf32>
// expected-remark @+1 {{2 parts of 2 samples}}
func.func @own_rows(%x: tensor<4x3x5xf32> {train.binding = #train.batch<"x">}, %i: tensor<4xi64> {train.binding = #train.batch<"i">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<12x5xf32> {train.binding = #train.output<"dx">}) {
  %flat = nn.reshape %x : tensor<4x3x5xf32> -> tensor<12x5xf32>
  %base = nn.constant dense<[0, 3, 6, 9]> : tensor<4xi64>
  %rows = nn.add %base, %i : tensor<4xi64>
  %own = nn.gather %flat[%rows] axis = 0 : (tensor<12x5xf32>, tensor<4xi64>) -> tensor<4x5xf32>
  %squares = nn.mul %own, %own : tensor<4x5xf32>
  %loss = nn.reduce_sum %squares dims = [0, 1] : tensor<4x5xf32> -> tensor<f32>
  %dx = nn.scatter_add[%rows] %own axis = 0 : (tensor<4xi64>, tensor<4x5xf32>) -> tensor<12x5xf32>
  return %loss, %dx : tensor<f32>, tensor<12x5xf32>
}

// -----

// Rows of a table with every step's samples: the step stays, and a row of another part is one that no step has.
// CHECK-LABEL: func.func @steps_first
// CHECK-DAG: %[[NONE:.*]] = nn.constant dense<-1> : tensor<2xi64>
// CHECK-DAG: %[[SAMPLES:.*]] = nn.constant dense<4> : tensor<2xi64>
// CHECK: train.accumulate 2
// CHECK-DAG: %[[STEP:.*]] = nn.div %[[NUMBER:.*]], %[[SAMPLES]]
// CHECK-DAG: %[[SAMPLE:.*]] = nn.rem %[[NUMBER]], %[[SAMPLES]]
// CHECK: nn.sub %[[SAMPLE]]
// CHECK: %[[OWN:.*]] = nn.select %{{.*}}, %{{.*}}, %[[NONE]]
// CHECK: nn.gather %{{.*}}[%[[OWN]]] axis = 0 : (tensor<6x5xf32>, tensor<2xi64>) -> tensor<2x5xf32>
// expected-remark @+1 {{2 parts of 2 samples}}
func.func @steps_first(%x: tensor<3x4x5xf32> {train.binding = #train.batch<"x", dim = 1>}, %i: tensor<4xi64> {train.binding = #train.batch<"i">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %flat = nn.reshape %x : tensor<3x4x5xf32> -> tensor<12x5xf32>
  %b = nn.iota dim = 0 : tensor<4xi64>
  %four = nn.constant dense<4> : tensor<4xi64>
  %step = nn.mul %i, %four : tensor<4xi64>
  %rows = nn.add %step, %b : tensor<4xi64>
  %own = nn.gather %flat[%rows] axis = 0 : (tensor<12x5xf32>, tensor<4xi64>) -> tensor<4x5xf32>
  %loss = nn.reduce_sum %own dims = [0, 1] : tensor<4x5xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The next row of all may be another sample's.
func.func @next_row(%x: tensor<4x3x5xf32> {train.binding = #train.batch<"x">}, %i: tensor<4xi64> {train.binding = #train.batch<"i">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %flat = nn.reshape %x : tensor<4x3x5xf32> -> tensor<12x5xf32>
  %base = nn.constant dense<[0, 3, 6, 9]> : tensor<4xi64>
  %rows = nn.add %base, %i : tensor<4xi64>
  %all = nn.constant dense<12> : tensor<4xi64>
  %around = nn.rem %rows, %all : tensor<4xi64>
  // expected-error @below {{'nn.gather' cannot be computed for a part of the batch: it looks at all samples together}}
  // expected-note @below {{compile it with a smaller batch}}
  %own = nn.gather %flat[%around] axis = 0 : (tensor<12x5xf32>, tensor<4xi64>) -> tensor<4x5xf32>
  %loss = nn.reduce_sum %own dims = [0, 1] : tensor<4x5xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Samples in another order.
func.func @other_samples(%x: tensor<4x5xf32> {train.binding = #train.batch<"x">}, %i: tensor<4xi64> {train.binding = #train.batch<"i">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  // expected-error @below {{'nn.gather' cannot be computed for a part of the batch: it looks at all samples together}}
  // expected-note @below {{compile it with a smaller batch}}
  %other = nn.gather %x[%i] axis = 0 : (tensor<4x5xf32>, tensor<4xi64>) -> tensor<4x5xf32>
  %loss = nn.reduce_sum %other dims = [0, 1] : tensor<4x5xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// An integer of a row that a part has not would be 0, and nothing would tell.
func.func @integers(%x: tensor<4x3xi64> {train.binding = #train.batch<"x">}, %i: tensor<4xi64> {train.binding = #train.batch<"i">})
    -> (tensor<4xi64> {train.binding = #train.output<"own">}) {
  %flat = nn.reshape %x : tensor<4x3xi64> -> tensor<12xi64>
  %base = nn.constant dense<[0, 3, 6, 9]> : tensor<4xi64>
  %rows = nn.add %base, %i : tensor<4xi64>
  // expected-error @below {{'nn.gather' cannot be computed for a part of the batch: it looks at all samples together}}
  // expected-note @below {{compile it with a smaller batch}}
  %own = nn.gather %flat[%rows] axis = 0 : (tensor<12xi64>, tensor<4xi64>) -> tensor<4xi64>
  return %own : tensor<4xi64>
}

// -----

// Every third row of all is the first of each sample, and goes back there.
// CHECK-LABEL: func.func @first_rows
// CHECK: nn.slice %{{.*}} starts = [0, 0] strides = [3, 1] : tensor<6x5xf32> -> tensor<2x5xf32>
// CHECK: nn.pad %{{.*}} low = [0, 0] high = [2, 0] interior = [2, 0] : tensor<2x5xf32> -> tensor<6x5xf32>
// expected-remark @+1 {{2 parts of 2 samples}}
func.func @first_rows(%x: tensor<4x3x5xf32> {train.binding = #train.batch<"x">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<12x5xf32> {train.binding = #train.output<"dx">}) {
  %flat = nn.reshape %x : tensor<4x3x5xf32> -> tensor<12x5xf32>
  %first = nn.slice %flat starts = [0, 0] strides = [3, 1] : tensor<12x5xf32> -> tensor<4x5xf32>
  %squares = nn.mul %first, %first : tensor<4x5xf32>
  %loss = nn.reduce_sum %squares dims = [0, 1] : tensor<4x5xf32> -> tensor<f32>
  %dx = nn.pad %first low = [0, 0] high = [2, 0] interior = [2, 0] : tensor<4x5xf32> -> tensor<12x5xf32>
  return %loss, %dx : tensor<f32>, tensor<12x5xf32>
}

// -----

// Every second row of all is no sample's own where each has three.
func.func @every_second(%x: tensor<4x3x5xf32> {train.binding = #train.batch<"x">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %flat = nn.reshape %x : tensor<4x3x5xf32> -> tensor<12x5xf32>
  // expected-error @below {{'nn.slice' cannot be computed for a part of the batch: it looks at all samples together}}
  // expected-note @below {{compile it with a smaller batch}}
  %some = nn.slice %flat starts = [0, 0] strides = [2, 1] : tensor<12x5xf32> -> tensor<6x5xf32>
  %loss = nn.reduce_sum %some dims = [0, 1] : tensor<6x5xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
