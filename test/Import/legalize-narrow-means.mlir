// RUN: lowtide-opt --onnx-legalize --canonicalize %s | FileCheck %s

// Sums of many 16-bit floats need not be any, and so many may be more than the type can count: means are made in f32.
// CHECK-LABEL: func.func @forward
// CHECK-DAG: %[[COUNT:.*]] = nn.constant dense<8.000000e+04> : tensor<f32>
// CHECK: %[[WIDE:.*]] = nn.cast %arg0 : tensor<20000x4xf16> -> tensor<20000x4xf32>
// CHECK: %[[SUM:.*]] = nn.reduce_sum %[[WIDE]] dims = [0, 1] : tensor<20000x4xf32> -> tensor<f32>
// CHECK: %[[MEAN:.*]] = nn.div %[[SUM]], %[[COUNT]] : tensor<f32>
// CHECK: nn.cast %[[MEAN]] : tensor<f32> -> tensor<f16>
// CHECK: nn.reduce_sum %{{.*}} dims = [2, 3] : tensor<2x3x300x300xf32> -> tensor<2x3xf32>
// CHECK: %[[LOSSES:.*]], %{{.*}} = nn.softmax_cross_entropy %arg0
// CHECK: %[[WIDE_LOSSES:.*]] = nn.cast %[[LOSSES]] : tensor<20000xf16> -> tensor<20000xf32>
// CHECK: nn.reduce_sum %[[WIDE_LOSSES]]
// CHECK-NOT: nn.reduce_sum %{{.*}} -> tensor<f16>
// CHECK: return
func.func @model(%x: tensor<20000x4xf16> {onnx.input = "x"}, %i: tensor<2x3x300x300xf16> {onnx.input = "i"}, %t: tensor<20000xi64> {onnx.input = "t"})
    -> (!onnx.value {onnx.output = "mean"}, !onnx.value {onnx.output = "pooled"}, !onnx.value {onnx.output = "loss"}) {
  %0 = onnx.node "ReduceMean"(%x) {attrs = {keepdims = 0 : i64}, domain = "", outputs = ["mean"], version = 18 : i64} : (tensor<20000x4xf16>) -> !onnx.value
  %1 = onnx.node "GlobalAveragePool"(%i) {attrs = {}, domain = "", outputs = ["pooled"], version = 1 : i64} : (tensor<2x3x300x300xf16>) -> !onnx.value
  %2 = onnx.node "SoftmaxCrossEntropyLoss"(%x, %t) {attrs = {}, domain = "", outputs = ["loss"], version = 13 : i64} : (tensor<20000x4xf16>, tensor<20000xi64>) -> !onnx.value
  return %0, %1, %2 : !onnx.value, !onnx.value, !onnx.value
}
