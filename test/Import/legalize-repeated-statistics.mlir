// RUN: lowtide-opt --onnx-legalize --split-input-file %s 2>&1 >/dev/null | FileCheck %s
// RUN: lowtide-opt --onnx-legalize --split-input-file %s 2>/dev/null | FileCheck %s --check-prefix=FORM

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

// -----

// In inference form, without a scale of its own: it trains as the program does, by each sample's statistics.
// CHECK: warning: batch norm 'n' reads statistics that are computed from others
// FORM: nn.batch_norm
// FORM: nn.batch_norm
func.func @model(%x: tensor<1x4x3xf32> {onnx.input = "x"},
                 %mean: tensor<2xf32> {onnx.initializer = "n.running_mean", onnx.role = "constant"},
                 %var: tensor<2xf32> {onnx.initializer = "n.running_var", onnx.role = "constant"})
    -> (!onnx.value {onnx.output = "y"}) attributes {onnx.producer = "pytorch 2.4.0"} {
  %two = onnx.constant dense<2> : tensor<1xi64>
  %ones = onnx.constant dense<1.0> : tensor<4xf32>
  %zeros = onnx.constant dense<0.0> : tensor<4xf32>
  %m = onnx.node "Tile"(%mean, %two) {attrs = {}, domain = "", outputs = ["m"], version = 13 : i64} : (tensor<2xf32>, tensor<1xi64>) -> !onnx.value
  %v = onnx.node "Tile"(%var, %two) {attrs = {}, domain = "", outputs = ["v"], version = 13 : i64} : (tensor<2xf32>, tensor<1xi64>) -> !onnx.value
  %0 = onnx.node "BatchNormalization"(%x, %ones, %zeros, %m, %v) {attrs = {}, domain = "", name = "n", outputs = ["n"], version = 15 : i64} : (tensor<1x4x3xf32>, tensor<4xf32>, tensor<4xf32>, !onnx.value, !onnx.value) -> !onnx.value
  return %0 : !onnx.value
}
