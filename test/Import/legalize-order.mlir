// RUN: lowtide-opt --onnx-legalize --canonicalize --split-input-file %s | FileCheck %s

// A few of many: pairs of elements are compared where that is one short kernel, and one element is picked after the
// other where comparing all pairs of all rows takes longer.

// CHECK-LABEL: func.func @forward(
// CHECK:         nn.compare lt {{.*}} : tensor<60x250x250xi32>
// CHECK-NOT:     nn.reduce_max
func.func @model(%x: tensor<60x250xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "loss"}) {
  %k = onnx.constant dense<5> : tensor<1xi64>
  %top:2 = onnx.node "TopK"(%x, %k) {attrs = {}, domain = "", outputs = ["top", "at"], version = 11 : i64} : (tensor<60x250xf32>, tensor<1xi64>) -> (!onnx.value, !onnx.value)
  %loss = onnx.node "ReduceMean"(%top#0) {attrs = {keepdims = 0 : i64}, domain = "", outputs = ["loss"], version = 13 : i64} : (!onnx.value) -> !onnx.value
  return %loss : !onnx.value
}

// -----

// CHECK-LABEL: func.func @forward(
// CHECK-NOT:     tensor<70x250x250x
// CHECK-COUNT-5: nn.reduce_max
// CHECK-NOT:     nn.reduce_max
// CHECK-NOT:     tensor<70x250x250x
func.func @model(%x: tensor<70x250xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "loss"}) {
  %k = onnx.constant dense<5> : tensor<1xi64>
  %top:2 = onnx.node "TopK"(%x, %k) {attrs = {}, domain = "", outputs = ["top", "at"], version = 11 : i64} : (tensor<70x250xf32>, tensor<1xi64>) -> (!onnx.value, !onnx.value)
  %loss = onnx.node "ReduceMean"(%top#0) {attrs = {keepdims = 0 : i64}, domain = "", outputs = ["loss"], version = 13 : i64} : (!onnx.value) -> !onnx.value
  return %loss : !onnx.value
}
