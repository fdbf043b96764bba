// Reductions of scatters keep no table of every update by every place; an index that is expanded for PyTorch picks rows.
// RUN: lowtide-opt --onnx-legalize --canonicalize --split-input-file %s | FileCheck %s

// CHECK-LABEL: func.func @forward(
// CHECK: %[[I:.*]] = nn.reshape %{{.*}} : tensor<9x1xi64> -> tensor<9xi64>
// CHECK: nn.scatter max %arg2 into %arg0[%[[I]]] axis = 0 : (tensor<4x6xf32>, tensor<9xi64>, tensor<9x6xf32>) -> tensor<4x6xf32>
// CHECK-NOT: 9x6xi64
// CHECK: return
func.func @model(%x: tensor<4x6xf32> {onnx.input = "x"}, %i: tensor<9x1xi64> {onnx.input = "i"}, %u: tensor<9x6xf32> {onnx.input = "u"}) -> (!onnx.value {onnx.output = "y"}) {
  %shape = onnx.constant dense<[9, 6]> : tensor<2xi64>
  %all = onnx.node "Expand"(%i, %shape) {attrs = {}, domain = "", outputs = ["e"], version = 13 : i64} : (tensor<9x1xi64>, tensor<2xi64>) -> !onnx.value
  %y = onnx.node "ScatterElements"(%x, %all, %u) {attrs = {axis = 0 : i64, reduction = "max"}, domain = "", outputs = ["y"], version = 18 : i64} : (tensor<4x6xf32>, !onnx.value, tensor<9x6xf32>) -> !onnx.value
  return %y : !onnx.value
}

// -----

// CHECK-LABEL: func.func @forward(
// CHECK: nn.scatter_add[%{{.*}}] %arg2 axis = 0 : (tensor<9xi64>, tensor<9x6xf32>) -> tensor<4x6xf32>
// CHECK: nn.gather %{{.*}}[%{{.*}}] axis = 0 : (tensor<4x6xf32>, tensor<9xi64>) -> tensor<9x6xf32>
func.func @model(%x: tensor<4x6xf32> {onnx.input = "x"}, %i: tensor<9x1xi64> {onnx.input = "i"}, %u: tensor<9x6xf32> {onnx.input = "u"}) -> (!onnx.value {onnx.output = "y"}) {
  %shape = onnx.constant dense<[9, 6]> : tensor<2xi64>
  %all = onnx.node "Expand"(%i, %shape) {attrs = {}, domain = "", outputs = ["e"], version = 13 : i64} : (tensor<9x1xi64>, tensor<2xi64>) -> !onnx.value
  %s = onnx.node "ScatterElements"(%x, %all, %u) {attrs = {axis = 0 : i64, reduction = "add"}, domain = "", outputs = ["s"], version = 18 : i64} : (tensor<4x6xf32>, !onnx.value, tensor<9x6xf32>) -> !onnx.value
  %y = onnx.node "GatherElements"(%s, %all) {attrs = {axis = 0 : i64}, domain = "", outputs = ["y"], version = 13 : i64} : (!onnx.value, !onnx.value) -> !onnx.value
  return %y : !onnx.value
}

// -----

// Places of their own, in the part of the data that the updates reach.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[PART:.*]] = nn.slice %arg0
// CHECK: nn.scatter_elements mul %arg2 into %[[PART]][%{{.*}}] axis = 1 : (tensor<2x6xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<2x6xf32>
// CHECK: nn.select
func.func @model(%x: tensor<4x6xf32> {onnx.input = "x"}, %i: tensor<2x3xi64> {onnx.input = "i"}, %u: tensor<2x3xf32> {onnx.input = "u"}) -> (!onnx.value {onnx.output = "y"}) {
  %y = onnx.node "ScatterElements"(%x, %i, %u) {attrs = {axis = 1 : i64, reduction = "mul"}, domain = "", outputs = ["y"], version = 18 : i64} : (tensor<4x6xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> !onnx.value
  return %y : !onnx.value
}

// -----

// CHECK-LABEL: func.func @forward(
// CHECK: nn.scatter min %{{.*}} into %{{.*}}[%{{.*}}] axis = 0 : (tensor<24x1xf32>, tensor<5xi64>, tensor<5x1xf32>) -> tensor<24x1xf32>
func.func @model(%x: tensor<4x6xf32> {onnx.input = "x"}, %i: tensor<5x2xi64> {onnx.input = "i"}, %u: tensor<5xf32> {onnx.input = "u"}) -> (!onnx.value {onnx.output = "y"}) {
  %y = onnx.node "ScatterND"(%x, %i, %u) {attrs = {reduction = "min"}, domain = "", outputs = ["y"], version = 18 : i64} : (tensor<4x6xf32>, tensor<5x2xi64>, tensor<5xf32>) -> !onnx.value
  return %y : !onnx.value
}
