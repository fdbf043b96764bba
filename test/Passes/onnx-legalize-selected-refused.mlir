// RUN: not lowtide-opt --onnx-legalize --split-input-file %s -o /dev/null 2>&1 | FileCheck %s

// Rows of two selections next to each other have no common number.

// CHECK: error: unsupported: 'Add' (opset 20): it combines rows that two different conditions select
func.func @model(%x: tensor<6xf32> {onnx.input = "x"}, %m: tensor<6xi1> {onnx.input = "m"}, %k: tensor<6xi1> {onnx.input = "k"}) -> (!onnx.value {onnx.output = "loss"}) {
  %a = onnx.node "Compress"(%x, %m) {attrs = {axis = 0 : i64}, domain = "", outputs = ["a"], version = 20 : i64} : (tensor<6xf32>, tensor<6xi1>) -> !onnx.value
  %b = onnx.node "Compress"(%x, %k) {attrs = {axis = 0 : i64}, domain = "", outputs = ["b"], version = 20 : i64} : (tensor<6xf32>, tensor<6xi1>) -> !onnx.value
  %c = onnx.node "Add"(%a, %b) {attrs = {}, domain = "", outputs = ["c"], version = 20 : i64} : (!onnx.value, !onnx.value) -> !onnx.value
  %loss = onnx.node "ReduceSum"(%c) {attrs = {keepdims = 0 : i64}, domain = "", outputs = ["loss"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  return %loss : !onnx.value
}

// -----

// An operator whose rule takes the number of rows from the shape.

// CHECK: error: unsupported: 'GlobalAveragePool' (opset 20): the number of rows depends on data, and it sums over them
func.func @model(%x: tensor<2x3x6xf32> {onnx.input = "x"}, %m: tensor<6xi1> {onnx.input = "m"}) -> (!onnx.value {onnx.output = "loss"}) {
  %a = onnx.node "Compress"(%x, %m) {attrs = {axis = 2 : i64}, domain = "", outputs = ["a"], version = 20 : i64} : (tensor<2x3x6xf32>, tensor<6xi1>) -> !onnx.value
  %b = onnx.node "GlobalAveragePool"(%a) {attrs = {}, domain = "", outputs = ["b"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  %loss = onnx.node "ReduceSum"(%b) {attrs = {keepdims = 0 : i64}, domain = "", outputs = ["loss"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  return %loss : !onnx.value
}

// -----

// In pairs, they are no dimension.

// CHECK: error: unsupported: 'Reshape' (opset 20): the number of rows depends on data, and it divides the samples among several dimensions
func.func @model(%x: tensor<6xf32> {onnx.input = "x"}, %m: tensor<6xi1> {onnx.input = "m"}) -> (!onnx.value {onnx.output = "loss"}) {
  %shape = onnx.constant dense<[-1, 2]> : tensor<2xi64>
  %a = onnx.node "Compress"(%x, %m) {attrs = {axis = 0 : i64}, domain = "", outputs = ["a"], version = 20 : i64} : (tensor<6xf32>, tensor<6xi1>) -> !onnx.value
  %b = onnx.node "Reshape"(%a, %shape) {attrs = {}, domain = "", outputs = ["b"], version = 20 : i64} : (!onnx.value, tensor<2xi64>) -> !onnx.value
  %loss = onnx.node "ReduceSum"(%b) {attrs = {keepdims = 0 : i64}, domain = "", outputs = ["loss"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  return %loss : !onnx.value
}

// -----

// The smaller of a number and two is two with many rows only.

// CHECK: error: unsupported: 'Expand' (opset 20): the shape is computed from data
func.func @model(%x: tensor<6xf32> {onnx.input = "x"}, %m: tensor<6xi1> {onnx.input = "m"}) -> (!onnx.value {onnx.output = "loss"}) {
  %two = onnx.constant dense<2> : tensor<1xi64>
  %one = onnx.constant dense<1.0> : tensor<1xf32>
  %a = onnx.node "Compress"(%x, %m) {attrs = {axis = 0 : i64}, domain = "", outputs = ["a"], version = 20 : i64} : (tensor<6xf32>, tensor<6xi1>) -> !onnx.value
  %b = onnx.node "Shape"(%a) {attrs = {}, domain = "", outputs = ["b"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  %c = onnx.node "Min"(%b, %two) {attrs = {}, domain = "", outputs = ["c"], version = 20 : i64} : (!onnx.value, tensor<1xi64>) -> !onnx.value
  %d = onnx.node "Expand"(%one, %c) {attrs = {}, domain = "", outputs = ["d"], version = 20 : i64} : (tensor<1xf32>, !onnx.value) -> !onnx.value
  %loss = onnx.node "ReduceSum"(%d) {attrs = {keepdims = 0 : i64}, domain = "", outputs = ["loss"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  return %loss : !onnx.value
}

// -----

// Outputs have known sizes.

// CHECK: error: unsupported: graph output 'a' has as many rows as data select, and outputs have known sizes; export the module with its loss
func.func @model(%x: tensor<6xf32> {onnx.input = "x"}, %m: tensor<6xi1> {onnx.input = "m"}) -> (!onnx.value {onnx.output = "a"}) {
  %a = onnx.node "Compress"(%x, %m) {attrs = {axis = 0 : i64}, domain = "", outputs = ["a"], version = 20 : i64} : (tensor<6xf32>, tensor<6xi1>) -> !onnx.value
  return %a : !onnx.value
}
