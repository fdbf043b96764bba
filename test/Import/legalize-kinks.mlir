// RUN: lowtide-opt --onnx-legalize --split-input-file %s | FileCheck %s

// An element on a limit that is a number has no cotangent: the limit is what is selected there.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[LOW:.*]] = nn.compare le %arg0
// CHECK: nn.select %[[LOW]]
// CHECK: %[[HIGH:.*]] = nn.compare ge
// CHECK: nn.select %[[HIGH]]
func.func @model(%x: tensor<4xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %low = onnx.constant dense<-1.0> : tensor<f32>
  %high = onnx.constant dense<1.0> : tensor<f32>
  %0 = onnx.node "Clip"(%x, %low, %high) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<4xf32>, tensor<f32>, tensor<f32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// Limits that are tensors of the program share it, as the importer notes (2); `clamp(min=0)`, which exporters write as a
// maximum, has none at zero (1), and `maximum` shares.
// CHECK-LABEL: func.func @forward(
// CHECK: nn.max
// CHECK: nn.compare le
// CHECK: nn.max
func.func @model(%x: tensor<4xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "a"}, !onnx.value {onnx.output = "b"}, !onnx.value {onnx.output = "c"}) {
  %zero = onnx.constant dense<0.0> : tensor<f32>
  %0 = onnx.node "Clip"(%x, %zero) {attrs = {ties = 2 : i64}, domain = "", outputs = ["a"], version = 20 : i64} : (tensor<4xf32>, tensor<f32>) -> !onnx.value
  %1 = onnx.node "Max"(%x, %zero) {attrs = {ties = 1 : i64}, domain = "", outputs = ["b"], version = 20 : i64} : (tensor<4xf32>, tensor<f32>) -> !onnx.value
  %2 = onnx.node "Max"(%x, %zero) {attrs = {}, domain = "", outputs = ["c"], version = 20 : i64} : (tensor<4xf32>, tensor<f32>) -> !onnx.value
  return %0, %1, %2 : !onnx.value, !onnx.value, !onnx.value
}

// -----

// `max(dim)` picks the first of equal elements (3), `amax` shares.
// CHECK-LABEL: func.func @forward(
// CHECK: nn.argmax
// CHECK: nn.reduce_sum
// CHECK: nn.reduce_max
func.func @model(%x: tensor<4x3xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "a"}, !onnx.value {onnx.output = "b"}) {
  %axes = onnx.constant dense<1> : tensor<1xi64>
  %0 = onnx.node "ReduceMax"(%x, %axes) {attrs = {ties = 3 : i64, keepdims = 0 : i64}, domain = "", outputs = ["a"], version = 20 : i64} : (tensor<4x3xf32>, tensor<1xi64>) -> !onnx.value
  %1 = onnx.node "ReduceMax"(%x, %axes) {attrs = {keepdims = 0 : i64}, domain = "", outputs = ["b"], version = 20 : i64} : (tensor<4x3xf32>, tensor<1xi64>) -> !onnx.value
  return %0, %1 : !onnx.value, !onnx.value
}

// -----

// The root of a sum of squares has the derivative 0 at zero; any other root is a root.
// CHECK-LABEL: func.func @forward(
// CHECK: nn.sqrt %arg0
// CHECK: %[[SUM:.*]] = nn.reduce_sum
// CHECK: %[[ZERO:.*]] = nn.compare eq %[[SUM]]
// CHECK: %[[SAFE:.*]] = nn.select %[[ZERO]]
// CHECK: nn.sqrt %[[SAFE]]
func.func @model(%x: tensor<4x3xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "a"}, !onnx.value {onnx.output = "b"}) {
  %axes = onnx.constant dense<1> : tensor<1xi64>
  %0 = onnx.node "Sqrt"(%x) {attrs = {}, domain = "", outputs = ["a"], version = 20 : i64} : (tensor<4x3xf32>) -> !onnx.value
  %1 = onnx.node "Mul"(%x, %x) {attrs = {}, domain = "", outputs = ["s"], version = 20 : i64} : (tensor<4x3xf32>, tensor<4x3xf32>) -> !onnx.value
  %2 = onnx.node "ReduceSum"(%1, %axes) {attrs = {keepdims = 0 : i64}, domain = "", outputs = ["t"], version = 20 : i64} : (!onnx.value, tensor<1xi64>) -> !onnx.value
  %3 = onnx.node "Sqrt"(%2) {attrs = {}, domain = "", outputs = ["b"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  return %0, %3 : !onnx.value, !onnx.value
}

// -----

// A pooling of all places gives all to the first of the largest elements, in the order of the dimensions.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[ROWS:.*]] = nn.reshape %arg0 : tensor<4x2x3xf32> -> tensor<4x6xf32>
// CHECK: nn.argmax %[[ROWS]]
// CHECK: nn.reduce_sum
func.func @model(%x: tensor<4x2x3xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "a"}) {
  %axes = onnx.constant dense<[-2, -1]> : tensor<2xi64>
  %0 = onnx.node "ReduceMax"(%x, %axes) {attrs = {ties = 3 : i64, keepdims = 1 : i64}, domain = "", outputs = ["a"], version = 20 : i64} : (tensor<4x2x3xf32>, tensor<2xi64>) -> !onnx.value
  return %0 : !onnx.value
}
