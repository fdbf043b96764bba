// RUN: lowtide-opt --onnx-legalize=mode=as-is --canonicalize --split-input-file %s | FileCheck %s

// The exporter states a scalar for losses that are not reduced: the operator decides.
// CHECK-LABEL: func.func @forward(
// CHECK:         nn.softmax_cross_entropy
// CHECK:         return %{{.*}} : tensor<8xf32>
func.func @model(%x: tensor<8x5xf32> {onnx.input = "x"}, %y: tensor<8xi64> {onnx.input = "y"}) -> (tensor<f32> {onnx.output = "l"}) {
  %0 = onnx.node "SoftmaxCrossEntropyLoss"(%x, %y) {attrs = {reduction = "none"}, domain = "", outputs = ["l"], version = 20 : i64} : (tensor<8x5xf32>, tensor<8xi64>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Nor is what it states of their mean.
// CHECK-LABEL: func.func @forward(
// CHECK:         return %{{.*}} : tensor<f32>
func.func @model(%x: tensor<8x5xf32> {onnx.input = "x"}, %y: tensor<8xi64> {onnx.input = "y"}) -> (tensor<f32> {onnx.output = "l"}) {
  %0 = onnx.node "SoftmaxCrossEntropyLoss"(%x, %y) {attrs = {reduction = "none"}, domain = "", outputs = ["n"], version = 20 : i64} : (tensor<8x5xf32>, tensor<8xi64>) -> tensor<f32>
  %1 = onnx.node "ReduceMean"(%0) {attrs = {keepdims = 1 : si64}, domain = "", outputs = ["m"], version = 20 : i64} : (tensor<f32>) -> tensor<f32>
  %2 = onnx.node "Squeeze"(%1) {attrs = {}, domain = "", outputs = ["l"], version = 20 : i64} : (tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}
