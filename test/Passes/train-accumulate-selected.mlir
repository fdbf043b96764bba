// RUN: lowtide-opt %s --train-accumulate=micro-batches=2 --canonicalize --cse --verify-step --split-input-file --verify-diagnostics | FileCheck %s

// The mean over tokens that data select: how many there are in the whole batch is counted before, each part selects among
// its own tokens, and what is made of them goes back to their places.
// CHECK-LABEL: func.func @gradient
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x2x3xf32>
// CHECK: %[[COUNT:.*]] = train.accumulate 2 slices(
// CHECK: nn.reduce_sum
// CHECK: nn.reciprocal %[[COUNT]]
// CHECK: train.accumulate 2 slices(
// CHECK: %[[ROWS:.*]], %[[VALID:.*]] = nn.select_rows %{{.*}} : (tensor<4xi1>) -> (tensor<4xi64>, tensor<4xi1>)
// CHECK: %[[TAKEN:.*]] = nn.gather %{{.*}}[%[[ROWS]]] axis = 0 : (tensor<4x3xf32>, tensor<4xi64>) -> tensor<4x3xf32>
// CHECK: %[[Z:.*]] = nn.dot %[[TAKEN]]
// CHECK: %[[WHERE:.*]] = nn.broadcast %[[VALID]] dims = [0]
// CHECK: nn.select %[[WHERE]], %[[Z]]
// CHECK: nn.scatter_add[%[[ROWS]]] %{{.*}} axis = 0 : (tensor<4xi64>, tensor<4x3xf32>) -> tensor<4x3xf32>
// CHECK: train.next
// expected-remark @+1 {{2 parts of 2 samples, 3 sums of 44 bytes, rows of 96 bytes, 2 loops (1 ops recomputed)}}
func.func @gradient(%x: tensor<4x2x3xf32> {train.binding = #train.batch<"x">},
    %m: tensor<4x2xi1> {train.binding = #train.batch<"m">},
    %w: tensor<3x3xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<3x3xf32> {train.binding = #train.gradient<"w">},
        tensor<4x2x3xf32> {train.binding = #train.output<"dx">}) {
  %c = nn.reshape %m : tensor<4x2xi1> -> tensor<8xi1>
  %rows, %valid = nn.select_rows %c : (tensor<8xi1>) -> (tensor<8xi64>, tensor<8xi1>)
  %ones = nn.cast %c : tensor<8xi1> -> tensor<8xf32>
  %count = nn.reduce_sum %ones dims = [0] : tensor<8xf32> -> tensor<f32>
  %flat = nn.reshape %x : tensor<4x2x3xf32> -> tensor<8x3xf32>
  %taken = nn.gather %flat[%rows] axis = 0 : (tensor<8x3xf32>, tensor<8xi64>) -> tensor<8x3xf32>
  %z = nn.dot %taken, %w : (tensor<8x3xf32>, tensor<3x3xf32>) -> tensor<8x3xf32>
  %spread = nn.broadcast %valid dims = [0] : tensor<8xi1> -> tensor<8x3xi1>
  %zero = nn.constant dense<0.0> : tensor<8x3xf32>
  %there = nn.select %spread, %z, %zero : tensor<8x3xi1>, tensor<8x3xf32>
  %sum = nn.reduce_sum %there dims = [0, 1] : tensor<8x3xf32> -> tensor<f32>
  %loss = nn.div %sum, %count : tensor<f32>
  %share = nn.reciprocal %count : tensor<f32>
  %each = nn.broadcast %share dims = [] : tensor<f32> -> tensor<8x3xf32>
  %dz = nn.select %spread, %each, %zero : tensor<8x3xi1>, tensor<8x3xf32>
  %dw = nn.dot %taken, %dz {transpose_a} : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<3x3xf32>
  %dt = nn.dot %dz, %w {transpose_b} : (tensor<8x3xf32>, tensor<3x3xf32>) -> tensor<8x3xf32>
  %back = nn.scatter_add[%rows] %dt axis = 0 : (tensor<8xi64>, tensor<8x3xf32>) -> tensor<8x3xf32>
  %dx = nn.reshape %back : tensor<8x3xf32> -> tensor<4x2x3xf32>
  return %loss, %dw, %dx : tensor<f32>, tensor<3x3xf32>, tensor<4x2x3xf32>
}

// -----

// The sample that a token is of, and its place within the sample: the first reads what there is for each sample, the second a
// table of places, which is the same for all parts.
// CHECK-LABEL: func.func @coordinates
// CHECK: %[[ROWS:.*]], %{{.*}} = nn.select_rows %{{.*}} : (tensor<4xi1>)
// CHECK: %[[SAMPLE:.*]] = nn.div %[[ROWS]]
// CHECK: %[[PLACE:.*]] = nn.rem %[[ROWS]]
// CHECK: nn.gather %{{.*}}[%[[SAMPLE]]] axis = 0 : (tensor<2xf32>, tensor<4xi64>) -> tensor<4xf32>
// CHECK: nn.gather %arg1[%[[PLACE]]] axis = 0 : (tensor<2xf32>, tensor<4xi64>) -> tensor<4xf32>
// expected-remark @+1 {{2 parts of 2 samples, 1 sums of 4 bytes, rows of 0 bytes}}
func.func @coordinates(%x: tensor<4xf32> {train.binding = #train.batch<"x">}, %t: tensor<2xf32> {train.binding = #train.param<"t">},
    %m: tensor<4x2xi1> {train.binding = #train.batch<"m">}) -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %c = nn.reshape %m : tensor<4x2xi1> -> tensor<8xi1>
  %rows, %valid = nn.select_rows %c : (tensor<8xi1>) -> (tensor<8xi64>, tensor<8xi1>)
  %two = nn.constant dense<2> : tensor<8xi64>
  %sample = nn.div %rows, %two : tensor<8xi64>
  %place = nn.rem %rows, %two : tensor<8xi64>
  %a = nn.gather %x[%sample] axis = 0 : (tensor<4xf32>, tensor<8xi64>) -> tensor<8xf32>
  %b = nn.gather %t[%place] axis = 0 : (tensor<2xf32>, tensor<8xi64>) -> tensor<8xf32>
  %p = nn.mul %a, %b : tensor<8xf32>
  %zero = nn.constant dense<0.0> : tensor<8xf32>
  %there = nn.select %valid, %p, %zero : tensor<8xi1>, tensor<8xf32>
  %sum = nn.reduce_sum %there dims = [0] : tensor<8xf32> -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

// The number of a row is another in a part.
func.func @numbers(%x: tensor<4xf32> {train.binding = #train.batch<"x">}, %m: tensor<4xi1> {train.binding = #train.batch<"m">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %rows, %valid = nn.select_rows %m : (tensor<4xi1>) -> (tensor<4xi64>, tensor<4xi1>)
  // expected-error @+2 {{'nn.cast' cannot be computed for a part of the batch: it computes with the numbers of rows that data select}}
  // expected-note @+1 {{needs ops that treat samples apart}}
  %f = nn.cast %rows : tensor<4xi64> -> tensor<4xf32>
  %s = nn.mul %f, %x : tensor<4xf32>
  %sum = nn.reduce_sum %s dims = [0] : tensor<4xf32> -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

// A table with an entry for each sample of the whole batch.
func.func @table(%t: tensor<4xf32> {train.binding = #train.param<"t">}, %m: tensor<4xi1> {train.binding = #train.batch<"m">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %rows, %valid = nn.select_rows %m : (tensor<4xi1>) -> (tensor<4xi64>, tensor<4xi1>)
  // expected-error @+2 {{'nn.gather' cannot be computed for a part of the batch: it computes with the numbers of rows that data select}}
  // expected-note @+1 {{needs ops that treat samples apart}}
  %a = nn.gather %t[%rows] axis = 0 : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  %zero = nn.constant dense<0.0> : tensor<4xf32>
  %there = nn.select %valid, %a, %zero : tensor<4xi1>, tensor<4xf32>
  %sum = nn.reduce_sum %there dims = [0] : tensor<4xf32> -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

// A factor for the first row that is selected, another for the second: in the second part they would begin anew.
func.func @factors(%x: tensor<4xf32> {train.binding = #train.batch<"x">}, %t: tensor<4xf32> {train.binding = #train.param<"t">},
    %m: tensor<4xi1> {train.binding = #train.batch<"m">}) -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %rows, %valid = nn.select_rows %m : (tensor<4xi1>) -> (tensor<4xi64>, tensor<4xi1>)
  %a = nn.gather %x[%rows] axis = 0 : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  // expected-error @+2 {{operand 1 differs from row to row, and the rows are those that data select}}
  // expected-note @+1 {{leave out --micro-batches}}
  %p = nn.mul %a, %t : tensor<4xf32>
  %zero = nn.constant dense<0.0> : tensor<4xf32>
  %there = nn.select %valid, %p, %zero : tensor<4xi1>, tensor<4xf32>
  %sum = nn.reduce_sum %there dims = [0] : tensor<4xf32> -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

// Rows that are selected next to rows that are not.
func.func @others(%x: tensor<4xf32> {train.binding = #train.batch<"x">}, %m: tensor<4xi1> {train.binding = #train.batch<"m">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %rows, %valid = nn.select_rows %m : (tensor<4xi1>) -> (tensor<4xi64>, tensor<4xi1>)
  %a = nn.gather %x[%rows] axis = 0 : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  // expected-error @+2 {{'nn.mul' cannot be computed for a part of the batch: it combines rows that data select with others}}
  // expected-note @+1 {{needs ops that treat samples apart}}
  %p = nn.mul %a, %x : tensor<4xf32>
  %sum = nn.reduce_sum %p dims = [0] : tensor<4xf32> -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

// A factor for each column, the same for all rows, is one for the rows of a part, too.
// CHECK-LABEL: func.func @columns
// CHECK: nn.select_rows %{{.*}} : (tensor<2xi1>)
// CHECK: nn.mul %{{.*}} : tensor<2x3xf32>
// expected-remark @+1 {{2 parts of 2 samples, 1 sums of 4 bytes, rows of 0 bytes}}
func.func @columns(%x: tensor<4x3xf32> {train.binding = #train.batch<"x">}, %m: tensor<4xi1> {train.binding = #train.batch<"m">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %rows, %valid = nn.select_rows %m : (tensor<4xi1>) -> (tensor<4xi64>, tensor<4xi1>)
  %a = nn.gather %x[%rows] axis = 0 : (tensor<4x3xf32>, tensor<4xi64>) -> tensor<4x3xf32>
  %f = nn.constant dense<[[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]> : tensor<4x3xf32>
  %p = nn.mul %a, %f : tensor<4x3xf32>
  %spread = nn.broadcast %valid dims = [0] : tensor<4xi1> -> tensor<4x3xi1>
  %zero = nn.constant dense<0.0> : tensor<4x3xf32>
  %there = nn.select %spread, %p, %zero : tensor<4x3xi1>, tensor<4x3xf32>
  %sum = nn.reduce_sum %there dims = [0, 1] : tensor<4x3xf32> -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

// One that only the last row differs in is not.
func.func @last(%x: tensor<4x3xf32> {train.binding = #train.batch<"x">}, %m: tensor<4xi1> {train.binding = #train.batch<"m">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %rows, %valid = nn.select_rows %m : (tensor<4xi1>) -> (tensor<4xi64>, tensor<4xi1>)
  %a = nn.gather %x[%rows] axis = 0 : (tensor<4x3xf32>, tensor<4xi64>) -> tensor<4x3xf32>
  %f = nn.constant dense<[[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 4.0]]> : tensor<4x3xf32>
  // expected-error @+2 {{operand 1 differs from row to row, and the rows are those that data select}}
  // expected-note @+1 {{leave out --micro-batches}}
  %p = nn.mul %a, %f : tensor<4x3xf32>
  %spread = nn.broadcast %valid dims = [0] : tensor<4xi1> -> tensor<4x3xi1>
  %zero = nn.constant dense<0.0> : tensor<4x3xf32>
  %there = nn.select %spread, %p, %zero : tensor<4x3xi1>, tensor<4x3xf32>
  %sum = nn.reduce_sum %there dims = [0, 1] : tensor<4x3xf32> -> tensor<f32>
  return %sum : tensor<f32>
}
