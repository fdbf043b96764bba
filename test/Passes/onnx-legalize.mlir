// RUN: lowtide-opt --onnx-legalize %s | FileCheck %s
// RUN: lowtide-opt --onnx-legalize %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Operators become nn ops on static shapes, initializers become bindings, the only scalar float output is the loss.
// Gemm's transposed weight is a flag of the product, its bias an explicit broadcast.

// REMARK: remark: @forward: 3 nodes became 7 ops on 2 parameters
// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    tensor<8x4xf32> {{{.*}}train.binding = #train.batch<"x">}
// CHECK-SAME:    tensor<3x4xf32> {{{.*}}train.binding = #train.param<"fc.weight">
// CHECK-SAME:    -> (tensor<f32> {train.binding = #train.metric<"loss">})
// CHECK:         %[[PRODUCT:.*]] = nn.dot %{{.*}}, %{{.*}} {transpose_b} : (tensor<8x4xf32>, tensor<3x4xf32>) -> tensor<8x3xf32>
// CHECK:         %[[BIAS:.*]] = nn.broadcast %{{.*}} dims = [1] : tensor<3xf32> -> tensor<8x3xf32>
// CHECK:         nn.add %[[PRODUCT]], %[[BIAS]]
// CHECK:         nn.relu
// CHECK:         nn.reduce_sum
// CHECK-NOT:     onnx.node
func.func @model(%x: tensor<8x4xf32> {onnx.input = "x"},
                 %w: tensor<3x4xf32> {onnx.initializer = "fc.weight", onnx.parameter = "fc.weight", onnx.role = "parameter"},
                 %b: tensor<3xf32> {onnx.initializer = "fc.bias", onnx.parameter = "fc.bias", onnx.role = "parameter"})
    -> (!onnx.value {onnx.output = "loss"}) {
  %0 = onnx.node "Gemm"(%x, %w, %b) {attrs = {transB = 1 : i64}, domain = "", outputs = ["h"], version = 20 : i64} : (tensor<8x4xf32>, tensor<3x4xf32>, tensor<3xf32>) -> !onnx.value
  %1 = onnx.node "Relu"(%0) {attrs = {}, domain = "", outputs = ["r"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  %2 = onnx.node "ReduceMean"(%1) {attrs = {keepdims = 0 : i64}, domain = "", outputs = ["loss"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  return %2 : !onnx.value
}
