// RUN: lowtide-opt --onnx-legalize --split-input-file %s | FileCheck %s

// Broadcasting becomes explicit; bindings follow from inputs, initializers and outputs.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3xf32> {{.*}}train.binding = #train.batch<"x">
// CHECK-SAME:    %[[B:.*]]: tensor<3xf32> {{.*}}train.binding = #train.param<"b">
// CHECK-SAME:    -> (tensor<2x3xf32> {train.binding = #train.output<"y">})
// CHECK:         %[[S:.*]] = nn.broadcast %[[B]] dims = [1] : tensor<3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %[[Y:.*]] = nn.add %[[X]], %[[S]] : tensor<2x3xf32>
// CHECK-NEXT:    return %[[Y]]
func.func @model(%x: tensor<2x3xf32> {onnx.input = "x"},
                 %b: tensor<3xf32> {onnx.initializer = "b", onnx.role = "parameter"})
    -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "Add"(%x, %b) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<2x3xf32>, tensor<3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// A small power is a product.
// CHECK-LABEL: func.func @forward(
// CHECK:         nn.mul %arg0, %arg0
// CHECK-NOT:     nn.pow
func.func @model(%x: tensor<4xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %two = onnx.constant dense<2.0> : tensor<f32>
  %0 = onnx.node "Pow"(%x, %two) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<4xf32>, tensor<f32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// An absent limit limits nothing.
// CHECK-LABEL: func.func @forward(
// CHECK:         nn.compare ge %arg0
// CHECK:         nn.select
// CHECK-NOT:     nn.compare le
func.func @model(%x: tensor<4xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %n = onnx.none
  %high = onnx.constant dense<6.0> : tensor<f32>
  %0 = onnx.node "Clip"(%x, %n, %high) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<4xf32>, none, tensor<f32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// tf2onnx leaves TensorFlow's operator, which ONNX has not: 1 - erf(x).
// CHECK-LABEL: func.func @forward(
// CHECK:         %[[ERF:.*]] = nn.erf %arg0 : tensor<4xf32>
// CHECK-NEXT:    %[[ONE:.*]] = nn.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK-NEXT:    nn.sub %[[ONE]], %[[ERF]]
func.func @model(%x: tensor<4xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "Erfc"(%x) {attrs = {}, domain = "", outputs = ["y"], version = 17 : i64} : (tensor<4xf32>) -> !onnx.value
  return %0 : !onnx.value
}
