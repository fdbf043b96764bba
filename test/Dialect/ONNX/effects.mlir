// Nodes without a reader go away, and equal nodes become one; nodes that draw random numbers do neither.
// RUN: lowtide-opt %s --canonicalize --cse | FileCheck %s

// CHECK-LABEL: @effects
// CHECK-COUNT-1: onnx.node "Relu"
// CHECK-NOT: onnx.node "Relu"
// CHECK-COUNT-2: onnx.node "Dropout"
func.func @effects(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %unread = onnx.node "Tanh"(%x) {attrs = {}, domain = "", outputs = ["u"], version = 20 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  %0 = onnx.node "Relu"(%x) {attrs = {}, domain = "", outputs = ["a"], version = 20 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  %1 = onnx.node "Relu"(%x) {attrs = {}, domain = "", outputs = ["a"], version = 20 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  %2 = onnx.node "Dropout"(%x) {attrs = {}, domain = "", outputs = ["b"], version = 20 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  %3 = onnx.node "Dropout"(%x) {attrs = {}, domain = "", outputs = ["b"], version = 20 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %1, %2, %3 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
