// RUN: lowtide-opt --onnx-legalize %s 2>&1 >/dev/null | FileCheck %s

// An instance norm that keeps statistics: PyTorch's old exporter writes a batch norm of samples × channels, whose statistics
// are those of the file, repeated. What becomes of them is not what the program keeps.
// CHECK: warning: batch norm 'n' reads statistics that are computed from others, as of an instance norm that keeps them: they are not updated
func.func @model(%x: tensor<1x4x3xf32> {onnx.input = "x"},
                 %scale: tensor<2xf32> {onnx.initializer = "n.weight", onnx.role = "parameter"},
                 %mean: tensor<2xf32> {onnx.initializer = "n.running_mean", onnx.role = "constant"})
    -> (!onnx.value {onnx.output = "y"}) attributes {onnx.producer = "pytorch 2.4.0"} {
  %two = onnx.constant dense<2> : tensor<1xi64>
  %s = onnx.node "Concat"(%scale, %scale) {attrs = {axis = 0 : i64}, domain = "", outputs = ["s"], version = 13 : i64} : (tensor<2xf32>, tensor<2xf32>) -> !onnx.value
  %m = onnx.node "Tile"(%mean, %two) {attrs = {}, domain = "", outputs = ["m"], version = 13 : i64} : (tensor<2xf32>, tensor<1xi64>) -> !onnx.value
  %0:3 = onnx.node "BatchNormalization"(%x, %s, %s, %m, %m) {attrs = {training_mode = 1 : i64}, domain = "", name = "n", outputs = ["n", "a", "b"], version = 15 : i64} : (tensor<1x4x3xf32>, !onnx.value, !onnx.value, !onnx.value, !onnx.value) -> (!onnx.value, !onnx.value, !onnx.value)
  return %0#0 : !onnx.value
}
