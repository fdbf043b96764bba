// RUN: lowtide-opt --onnx-legalize --split-input-file --verify-diagnostics=only-expected %s | FileCheck %s

// What holds nothing adds nothing to what it is joined with.
// CHECK-LABEL: func.func @forward(
// CHECK-NOT: tensor<0x3xf32>
// CHECK: nn.concat %arg0, %arg1 dim = 0
func.func @model(%x: tensor<2x3xf32> {onnx.input = "x"}, %z: tensor<1x3xf32> {onnx.input = "z"}) -> (!onnx.value {onnx.output = "y"}) {
  %none = onnx.constant dense<> : tensor<0x3xf32>
  %y = onnx.node "Concat"(%x, %none, %z) {attrs = {axis = 0 : i64}, domain = "", outputs = ["y"], version = 13 : i64} : (tensor<2x3xf32>, tensor<0x3xf32>, tensor<1x3xf32>) -> !onnx.value
  return %y : !onnx.value
}

// -----

// What is computed of nothing is refused, before any code is made.
func.func @model(%x: tensor<2x3xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %from = onnx.constant dense<2> : tensor<1xi64>
  %to = onnx.constant dense<9> : tensor<1xi64>
  %axes = onnx.constant dense<0> : tensor<1xi64>
  // expected-error @+1 {{unsupported: a tensor without elements: 'tensor<0x3xf32>'}}
  %none = onnx.node "Slice"(%x, %from, %to, %axes) {attrs = {}, domain = "", outputs = ["n"], version = 13 : i64} : (tensor<2x3xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.value
  %s = onnx.node "ReduceSum"(%none, %axes) {attrs = {}, domain = "", outputs = ["s"], version = 13 : i64} : (!onnx.value, tensor<1xi64>) -> !onnx.value
  %y = onnx.node "Add"(%x, %s) {attrs = {}, domain = "", outputs = ["y"], version = 14 : i64} : (tensor<2x3xf32>, !onnx.value) -> !onnx.value
  return %y : !onnx.value
}

// -----

// What holds nothing and is an output is one.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[NONE:.*]] = nn.slice {{.*}} -> tensor<0x3xf32>
// CHECK: return %[[NONE]] : tensor<0x3xf32>
func.func @model(%x: tensor<2x3xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "n"}) {
  %from = onnx.constant dense<2> : tensor<1xi64>
  %to = onnx.constant dense<9> : tensor<1xi64>
  %axes = onnx.constant dense<0> : tensor<1xi64>
  %none = onnx.node "Slice"(%x, %from, %to, %axes) {attrs = {}, domain = "", outputs = ["n"], version = 13 : i64} : (tensor<2x3xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.value
  return %none : !onnx.value
}

// -----

// What holds nothing is written nowhere, and what it was made of is not computed.
// CHECK-LABEL: func.func @forward(
// CHECK-NOT: tensor<0x
// CHECK: %[[SUM:.*]] = nn.add %arg0, %arg0
// CHECK: return %[[SUM]]
func.func @model(%x: tensor<2x3xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %at = onnx.constant dense<> : tensor<0x1xi64>
  %rows = onnx.node "GatherND"(%x, %at) {attrs = {}, domain = "", outputs = ["r"], version = 13 : i64} : (tensor<2x3xf32>, tensor<0x1xi64>) -> !onnx.value
  %twice = onnx.node "Add"(%rows, %rows) {attrs = {}, domain = "", outputs = ["t"], version = 14 : i64} : (!onnx.value, !onnx.value) -> !onnx.value
  %z = onnx.node "ScatterND"(%x, %at, %twice) {attrs = {}, domain = "", outputs = ["z"], version = 16 : i64} : (tensor<2x3xf32>, tensor<0x1xi64>, !onnx.value) -> !onnx.value
  %y = onnx.node "Add"(%z, %z) {attrs = {}, domain = "", outputs = ["y"], version = 14 : i64} : (!onnx.value, !onnx.value) -> !onnx.value
  return %y : !onnx.value
}
