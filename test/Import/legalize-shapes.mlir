// RUN: lowtide-opt --onnx-legalize --canonicalize --split-input-file %s | FileCheck %s

// The shape arithmetic that exporters write leaves nothing behind.
// CHECK-LABEL: func.func @forward(
// CHECK-NEXT:    %[[Y:.*]] = nn.reshape %arg0 : tensor<2x3x4xf32> -> tensor<6x4xf32>
// CHECK-NEXT:    return %[[Y]]
func.func @model(%x: tensor<2x3x4xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %zero = onnx.constant dense<0> : tensor<i64>
  %axes = onnx.constant dense<0> : tensor<1xi64>
  %last = onnx.constant dense<[4]> : tensor<1xi64>
  %0 = onnx.node "Shape"(%x) {attrs = {}, domain = "", outputs = ["s"], version = 20 : i64} : (tensor<2x3x4xf32>) -> !onnx.value
  %1 = onnx.node "Gather"(%0, %zero) {attrs = {axis = 0 : i64}, domain = "", outputs = ["g"], version = 20 : i64} : (!onnx.value, tensor<i64>) -> !onnx.value
  %three = onnx.constant dense<3> : tensor<i64>
  %2 = onnx.node "Mul"(%1, %three) {attrs = {}, domain = "", outputs = ["m"], version = 20 : i64} : (!onnx.value, tensor<i64>) -> !onnx.value
  %3 = onnx.node "Unsqueeze"(%2, %axes) {attrs = {}, domain = "", outputs = ["u"], version = 20 : i64} : (!onnx.value, tensor<1xi64>) -> !onnx.value
  %4 = onnx.node "Concat"(%3, %last) {attrs = {axis = 0 : i64}, domain = "", outputs = ["c"], version = 20 : i64} : (!onnx.value, tensor<1xi64>) -> !onnx.value
  %5 = onnx.node "Reshape"(%x, %4) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<2x3x4xf32>, !onnx.value) -> !onnx.value
  return %5 : !onnx.value
}

// -----

// A slice that runs backwards is a slice and a reversal.
// CHECK-LABEL: func.func @forward(
// CHECK-NEXT:    %[[S:.*]] = nn.slice %arg0 starts = [1] strides = [2] : tensor<8xf32> -> tensor<4xf32>
// CHECK-NEXT:    %[[R:.*]] = nn.reverse %[[S]] dims = [0]
// CHECK-NEXT:    return %[[R]]
func.func @model(%x: tensor<8xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %start = onnx.constant dense<-1> : tensor<1xi64>
  %end = onnx.constant dense<-9223372036854775808> : tensor<1xi64>
  %axis = onnx.constant dense<0> : tensor<1xi64>
  %step = onnx.constant dense<-2> : tensor<1xi64>
  %0 = onnx.node "Slice"(%x, %start, %end, %axis, %step) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// Sequences are lists that the compiler knows.
// CHECK-LABEL: func.func @forward(
// CHECK-NEXT:    %[[S:.*]] = nn.slice %arg0 starts = [0, 2] strides = [1, 1] : tensor<3x6xf32> -> tensor<3x2xf32>
// CHECK-NEXT:    return %[[S]]
func.func @model(%x: tensor<3x6xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %two = onnx.constant dense<2> : tensor<i64>
  %one = onnx.constant dense<1> : tensor<i64>
  %0 = onnx.node "SplitToSequence"(%x, %two) {attrs = {axis = 1 : i64}, domain = "", outputs = ["s"], version = 20 : i64} : (tensor<3x6xf32>, tensor<i64>) -> !onnx.value
  %1 = onnx.node "SequenceAt"(%0, %one) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (!onnx.value, tensor<i64>) -> !onnx.value
  return %1 : !onnx.value
}

// -----

// PyTorch's exporter writes the numbers of arange(1.0, 4) as the program has them: a float and integers.
// CHECK-LABEL: func.func @forward(
// CHECK-DAG:     %[[R:.*]] = nn.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xf32>
// CHECK:         nn.add %arg0, %[[R]]
func.func @model(%x: tensor<3xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %start = onnx.constant dense<1.0> : tensor<f32>
  %limit = onnx.constant dense<4> : tensor<i64>
  %step = onnx.constant dense<1> : tensor<i64>
  %0 = onnx.node "Range"(%start, %limit, %step) {attrs = {}, domain = "", outputs = ["r"], version = 20 : i64} : (tensor<f32>, tensor<i64>, tensor<i64>) -> !onnx.value
  %1 = onnx.node "Add"(%x, %0) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<3xf32>, !onnx.value) -> !onnx.value
  return %1 : !onnx.value
}
