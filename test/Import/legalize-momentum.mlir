// RUN: lowtide-opt --onnx-legalize %s 2>/dev/null | FileCheck %s

// A file holds momentum in f32, and of 0.9997 the part that is left of the old value is off by 1e-4 of it. The number
// that the program wrote is the shortest one. So is an epsilon's.
// CHECK: nn.batch_norm {{.*}} epsilon = 1.000000e-03 :
// CHECK-DAG: nn.constant dense<9.997000e-01>
// CHECK-DAG: nn.constant dense<2.9999999999996696E-4>
func.func @model(%x: tensor<4x2xf64> {onnx.input = "x"},
                 %scale: tensor<2xf64> {onnx.initializer = "bn.weight", onnx.role = "parameter"},
                 %bias: tensor<2xf64> {onnx.initializer = "bn.bias", onnx.role = "parameter"},
                 %mean: tensor<2xf64> {onnx.initializer = "bn.running_mean", onnx.role = "state"},
                 %var: tensor<2xf64> {onnx.initializer = "bn.running_var", onnx.role = "state"})
    -> (!onnx.value {onnx.output = "y"}) attributes {onnx.producer = "pytorch 2.4.0"} {
  %0:3 = onnx.node "BatchNormalization"(%x, %scale, %bias, %mean, %var) {attrs = {training_mode = 1 : i64, momentum = 9.997000e-01 : f32, epsilon = 1.000000e-03 : f32}, domain = "", outputs = ["y", "m", "v"], version = 20 : i64} : (tensor<4x2xf64>, tensor<2xf64>, tensor<2xf64>, tensor<2xf64>, tensor<2xf64>) -> (!onnx.value, !onnx.value, !onnx.value)
  return %0#0 : !onnx.value
}
