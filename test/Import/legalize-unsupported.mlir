// RUN: not lowtide-opt --onnx-legalize %s 2>&1 | FileCheck %s

// Everything that is not supported is said at once, grouped; what depends on it is not.
// CHECK:      error: unsupported: 'Loop' (opset 20): the number of iterations is computed from data
// CHECK:      error: unsupported: 'com.example.Strange' (opset 1): there is no rule for this operator; 2 nodes
// CHECK-NEXT: {{onnx.node|\^|%}}
// CHECK:      note: at 'b'
// CHECK:      note: at 'd'
// CHECK-NOT:  'Relu'
func.func @model(%x: tensor<4xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "Loop"(%x) {attrs = {}, domain = "", outputs = ["a"], version = 20 : i64} : (tensor<4xf32>) -> !onnx.value
  %1 = onnx.node "Strange"(%x) {attrs = {}, domain = "com.example", outputs = ["b"], version = 1 : i64} : (tensor<4xf32>) -> !onnx.value
  %2 = onnx.node "Relu"(%1) {attrs = {}, domain = "", outputs = ["c"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  %3 = onnx.node "Strange"(%x) {attrs = {}, domain = "com.example", outputs = ["d"], version = 1 : i64} : (tensor<4xf32>) -> !onnx.value
  return %2 : !onnx.value
}
