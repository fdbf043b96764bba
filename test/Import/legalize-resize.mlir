// RUN: lowtide-opt --onnx-legalize --split-input-file %s | FileCheck %s

// Scales are f32, and so is the arithmetic, as in runtimes: 0.7 · 10 is 7 elements, in f64 it would be less.
// CHECK-LABEL: func.func @forward(
// CHECK:         nn.constant dense<[0, 1, 2, 4, 5, 7, 8]>
func.func @model(%x: tensor<10xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %none = onnx.none
  %scale = onnx.constant dense<0.7> : tensor<1xf32>
  %0 = onnx.node "Resize"(%x, %none, %scale) {attrs = {mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<10xf32>, none, tensor<1xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// 12 / 2.4 is 5.
// CHECK-LABEL: func.func @forward(
// CHECK:         nn.constant dense<[0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 5]>
func.func @model(%x: tensor<6xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %none = onnx.none
  %scale = onnx.constant dense<2.4> : tensor<1xf32>
  %0 = onnx.node "Resize"(%x, %none, %scale) {attrs = {mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<6xf32>, none, tensor<1xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// Corners are aligned with 9.1 elements by ONNX, with 9 by PyTorch and by runtimes.
// CHECK-LABEL: func.func @forward(
// CHECK:         nn.constant dense<[0, 1, 2, 4, 5, 7, 8, 10, 11]>
func.func @model(%x: tensor<13xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %none = onnx.none
  %scale = onnx.constant dense<0.7> : tensor<1xf32>
  %0 = onnx.node "Resize"(%x, %none, %scale) {attrs = {mode = "nearest", coordinate_transformation_mode = "align_corners", nearest_mode = "floor"}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<13xf32>, none, tensor<1xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// CHECK-LABEL: func.func @forward(
// CHECK:         nn.constant dense<[0, 1, 3, 4, 6, 7, 9, 10, 12]>
func.func @model(%x: tensor<13xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) attributes {onnx.producer = "pytorch 2.15.0"} {
  %none = onnx.none
  %scale = onnx.constant dense<0.7> : tensor<1xf32>
  %0 = onnx.node "Resize"(%x, %none, %scale) {attrs = {mode = "nearest", coordinate_transformation_mode = "align_corners", nearest_mode = "floor"}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<13xf32>, none, tensor<1xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// 4.2 · 15 is 63 in PyTorch's program, whose 4.2 is f64; in f32 it is less.
// CHECK-LABEL: func.func @forward(
// CHECK:         -> tensor<63xf32>
func.func @model(%x: tensor<15xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) attributes {onnx.producer = "pytorch 2.15.0"} {
  %none = onnx.none
  %scale = onnx.constant dense<4.2> : tensor<1xf32>
  %0 = onnx.node "Resize"(%x, %none, %scale) {attrs = {mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<15xf32>, none, tensor<1xf32>) -> !onnx.value
  return %0 : !onnx.value
}
