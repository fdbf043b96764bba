// RUN: lowtide-opt --onnx-legalize --canonicalize --split-input-file %s | FileCheck %s

// An operator without a rule is what its function in the standard says; conditions in it are decided.
// CHECK-LABEL: func.func @forward(
// CHECK-NOT:     onnx.node
// CHECK:         nn.dot
// CHECK:         return %{{.*}} : tensor<2x4x5x2xf32>
func.func @model(%theta: tensor<2x2x3xf32> {onnx.input = "theta"}) -> (!onnx.value {onnx.output = "grid"}) {
  %size = onnx.constant dense<[2, 3, 4, 5]> : tensor<4xi64>
  %0 = onnx.node "AffineGrid"(%theta, %size) {attrs = {}, domain = "", outputs = ["grid"], version = 20 : i64} : (tensor<2x2x3xf32>, tensor<4xi64>) -> !onnx.value
  return %0 : !onnx.value
}
