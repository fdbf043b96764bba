// RUN: lowtide-opt --onnx-legalize=mode=as-is --canonicalize %s | FileCheck %s

// The exporter states a scalar for losses that are not reduced: the operator decides.
// CHECK-LABEL: func.func @forward(
// CHECK:         nn.softmax_cross_entropy
// CHECK:         return %{{.*}} : tensor<8xf32>
func.func @model(%x: tensor<8x5xf32> {onnx.input = "x"}, %y: tensor<8xi64> {onnx.input = "y"}) -> (tensor<f32> {onnx.output = "l"}) {
  %0 = onnx.node "SoftmaxCrossEntropyLoss"(%x, %y) {attrs = {reduction = "none"}, domain = "", outputs = ["l"], version = 20 : i64} : (tensor<8x5xf32>, tensor<8xi64>) -> tensor<f32>
  return %0 : tensor<f32>
}
