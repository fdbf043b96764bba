// RUN: lowtide-opt --onnx-legalize="loss=mse(y,t)" %s 2>/dev/null | FileCheck %s
// RUN: lowtide-opt --onnx-legalize="loss=mse(y,t)" %s 2>&1 >/dev/null | FileCheck %s --check-prefix=SAID
// RUN: not lowtide-opt --onnx-legalize="loss=mse(label,t)" %s 2>&1 | FileCheck %s --check-prefix=NEEDED

// An output that cannot be compiled is left out where the loss is made of another.
// CHECK: return %{{.*}}, %{{.*}} : tensor<f32>, tensor<4xf32>
// SAID: warning: output 'label' is left out: it needs operator 'Strange', which cannot be compiled
// SAID: note: the loss is made of other outputs
// NEEDED: error: unsupported: 'com.example.Strange' (opset 1)
func.func @model(%x: tensor<4xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "label"}, !onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "Relu"(%x) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<4xf32>) -> !onnx.value
  %1 = onnx.node "Strange"(%0) {attrs = {}, domain = "com.example", outputs = ["a"], version = 1 : i64} : (!onnx.value) -> !onnx.value
  %2 = onnx.node "Relu"(%1) {attrs = {}, domain = "", outputs = ["label"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  return %2, %0 : !onnx.value, !onnx.value
}
