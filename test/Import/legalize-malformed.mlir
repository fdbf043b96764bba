// RUN: not lowtide-opt --onnx-legalize --split-input-file %s 2>&1 | FileCheck %s

// CHECK: error: 'MatMul' (opset 20): matrices do not fit together
func.func @model(%a: tensor<2x3xf32> {onnx.input = "a"}, %b: tensor<2x3xf32> {onnx.input = "b"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "MatMul"(%a, %b) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// CHECK: error: 'Reshape' (opset 20): a tensor of 6 elements does not divide into 4
func.func @model(%a: tensor<2x3xf32> {onnx.input = "a"}) -> (!onnx.value {onnx.output = "y"}) {
  %s = onnx.constant dense<[4, -1]> : tensor<2xi64>
  %0 = onnx.node "Reshape"(%a, %s) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// CHECK: error: 'Add' (opset 20): shapes cannot be broadcast together: tensor<2x3xf32>, tensor<4xf32>
func.func @model(%a: tensor<2x3xf32> {onnx.input = "a"}, %b: tensor<4xf32> {onnx.input = "b"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "Add"(%a, %b) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<2x3xf32>, tensor<4xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// What PyTorch's exporter writes of a layer with projections.
// CHECK: error: 'LSTM' (opset 20): operand 6, an initial state, must have 1 elements for each direction and sample; ONNX has no projections (proj_size)
func.func @model(%x: tensor<2x3x1xf32> {onnx.input = "x"}, %w: tensor<1x4x1xf32> {onnx.input = "w"}, %r: tensor<1x4x1xf32> {onnx.input = "r"},
    %h: tensor<1x3x1xf32> {onnx.input = "h"}, %c: tensor<1x3x2xf32> {onnx.input = "c"}) -> (!onnx.value {onnx.output = "y"}) {
  %none = onnx.none
  %0 = onnx.node "LSTM"(%x, %w, %r, %none, %none, %h, %c) {attrs = {hidden_size = 1 : i64}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<2x3x1xf32>, tensor<1x4x1xf32>, tensor<1x4x1xf32>, none, none, tensor<1x3x1xf32>, tensor<1x3x2xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// CHECK: error: 'Gemm' (opset 20): its operands do not fit together: 'nn.dot' op operands must have the same element type
func.func @model(%a: tensor<2x3xf32> {onnx.input = "a"}, %b: tensor<3x2xf64> {onnx.input = "b"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "Gemm"(%a, %b) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<2x3xf32>, tensor<3x2xf64>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// CHECK: error: input 0 of @model is 'tensor<4xindex>'; inputs are tensors of known sizes, of integers or floats
func.func @model(%a: tensor<4xindex> {onnx.input = "a"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "Relu"(%a) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<4xindex>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// CHECK: error: input 0 of @model is 'tensor<?xf32>'; inputs are tensors of known sizes, of integers or floats
func.func @model(%a: tensor<?xf32> {onnx.input = "a"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "Relu"(%a) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<?xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// CHECK: error: input 0 of @model is 'f32'; inputs are tensors of known sizes, of integers or floats
func.func @model(%a: f32 {onnx.input = "a"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "Relu"(%a) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (f32) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// A constant of one value for more elements than memory holds is not looked at.
// CHECK: error: unsupported: 'Slice' (opset 20): {{.*}} is computed from data; it must be known when compiling
func.func @model(%a: tensor<8xf32> {onnx.input = "a"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = "onnx.constant"() <{value = dense<-1> : tensor<1099511627776xi64>}> : () -> tensor<1099511627776xi64>
  %1 = onnx.node "Slice"(%a, %0, %0) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<8xf32>, tensor<1099511627776xi64>, tensor<1099511627776xi64>) -> !onnx.value
  return %1 : !onnx.value
}

// -----

// CHECK: error: 'Einsum' (opset 20): term 'ii' names two dimensions of different extents by one letter
func.func @model(%a: tensor<2x3xf32> {onnx.input = "a"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "Einsum"(%a) {attrs = {equation = "ii->i"}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<2x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// CHECK: error: 'SequenceMap' (opset 20): its sequences differ in length
func.func @model(%x: tensor<4x2xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %all = onnx.node "SequenceConstruct"(%x, %x) {attrs = {}, domain = "", outputs = ["all"], version = 20 : i64} : (tensor<4x2xf32>, tensor<4x2xf32>) -> !onnx.value
  %one = onnx.node "SequenceConstruct"(%x) {attrs = {}, domain = "", outputs = ["one"], version = 20 : i64} : (tensor<4x2xf32>) -> !onnx.value
  %0 = onnx.node "SequenceMap"(%all, %one) {attrs = {}, domain = "", outputs = ["y"], subgraphs = ["body"], version = 20 : i64} : (!onnx.value, !onnx.value) -> !onnx.value graphs {
  ^bb0(%a: !onnx.value, %b: !onnx.value):
    %1 = onnx.node "Add"(%a, %b) {attrs = {}, domain = "", outputs = ["c"], version = 20 : i64} : (!onnx.value, !onnx.value) -> !onnx.value
    onnx.yield %1 : !onnx.value
  }
  return %0 : !onnx.value
}

// -----

// PyTorch's files alone have more updates than indices.
// CHECK: error: 'ScatterElements' (opset 18): data, indices and updates do not fit together
func.func @model(%x: tensor<2x5xf32> {onnx.input = "x"}, %i: tensor<2x1xi64> {onnx.input = "i"}, %u: tensor<2x5xf32> {onnx.input = "u"}) -> (!onnx.value {onnx.output = "y"}) {
  %y = onnx.node "ScatterElements"(%x, %i, %u) {attrs = {axis = 1 : i64, reduction = "add"}, domain = "", outputs = ["y"], version = 18 : i64} : (tensor<2x5xf32>, tensor<2x1xi64>, tensor<2x5xf32>) -> !onnx.value
  return %y : !onnx.value
}
