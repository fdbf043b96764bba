// RUN: not lowtide-opt %s --onnx-legalize=keep-model --onnx-legalize 2>&1 | FileCheck %s

// CHECK: error: there is a @forward already: a model is legalized once under a name
func.func @model(%a: tensor<4xf32> {onnx.input = "a"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "Relu"(%a) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<4xf32>) -> !onnx.value
  return %0 : !onnx.value
}
