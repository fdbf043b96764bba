// RUN: lowtide-opt --onnx-legalize --canonicalize --split-input-file %s | FileCheck %s

// What is written is one number that is known: repeated places hold it once.
// CHECK-LABEL: func.func @forward(
// CHECK-DAG: %[[ONE:.*]] = nn.constant dense<1.000000e+00> : tensor<2x5xf32>
// CHECK-DAG: %[[COUNT:.*]] = nn.scatter_elements_add
// CHECK: %[[HIT:.*]] = nn.compare gt %[[COUNT]]
// CHECK: nn.select %[[HIT]], %[[ONE]], %arg0
func.func @model(%x: tensor<2x5xf32> {onnx.input = "x"}, %i: tensor<2x3xi64> {onnx.input = "i"}) -> (!onnx.value {onnx.output = "y"}) {
  %one = onnx.constant dense<1.0> : tensor<2x3xf32>
  %y = onnx.node "ScatterElements"(%x, %i, %one) {attrs = {axis = 1 : i64}, domain = "", outputs = ["y"], version = 18 : i64} : (tensor<2x5xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> !onnx.value
  return %y : !onnx.value
}

// -----

// One that is computed is an update for each index, which all have the gradient of their place.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[ALL:.*]] = nn.broadcast %{{.*}} : tensor<{{(1x)*}}f32> -> tensor<3x5xf32>
// CHECK: nn.scatter set %[[ALL]] into %arg0[%{{.*}}] axis = 0 : (tensor<2x5xf32>, tensor<3xi64>, tensor<3x5xf32>) -> tensor<2x5xf32>
func.func @model(%x: tensor<2x5xf32> {onnx.input = "x"}, %i: tensor<3x1xi64> {onnx.input = "i"}, %v: tensor<1x1xf32> {onnx.input = "v"}) -> (!onnx.value {onnx.output = "y"}) {
  %shape = onnx.constant dense<[3, 5]> : tensor<2xi64>
  %all = onnx.node "Expand"(%v, %shape) {attrs = {}, domain = "", outputs = ["e"], version = 13 : i64} : (tensor<1x1xf32>, tensor<2xi64>) -> !onnx.value
  %y = onnx.node "ScatterND"(%x, %i, %all) {attrs = {}, domain = "", outputs = ["y"], version = 18 : i64} : (tensor<2x5xf32>, tensor<3x1xi64>, !onnx.value) -> !onnx.value
  return %y : !onnx.value
}

// -----

// Of different values the last one of a place is kept.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[SET:.*]] = nn.scatter_elements set %arg2 into %arg0[%{{.*}}] axis = 1
// CHECK-NEXT: return %[[SET]]
func.func @model(%x: tensor<2x5xf32> {onnx.input = "x"}, %i: tensor<2x3xi64> {onnx.input = "i"}, %u: tensor<2x3xf32> {onnx.input = "u"}) -> (!onnx.value {onnx.output = "y"}) {
  %y = onnx.node "ScatterElements"(%x, %i, %u) {attrs = {axis = 1 : i64}, domain = "", outputs = ["y"], version = 18 : i64} : (tensor<2x5xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> !onnx.value
  return %y : !onnx.value
}

// -----

// PyTorch's old exporter adds at places so (`index_put(accumulate=True)`), and names no reduction: places that meet add.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[SUM:.*]] = nn.scatter_add[%{{.*}}] %arg2 axis = 0
// CHECK-NEXT: nn.add %arg0, %[[SUM]]
func.func @model(%x: tensor<2x5xf32> {onnx.input = "x"}, %i: tensor<3x1xi64> {onnx.input = "i"}, %v: tensor<3x5xf32> {onnx.input = "v"}) -> (!onnx.value {onnx.output = "y"}) {
  %zeros = onnx.constant dense<0.0> : tensor<2x5xf32>
  %s = onnx.node "ScatterND"(%zeros, %i, %v) {attrs = {}, domain = "", outputs = ["s"], version = 16 : i64} : (tensor<2x5xf32>, tensor<3x1xi64>, tensor<3x5xf32>) -> !onnx.value
  %y = onnx.node "Add"(%x, %s) {attrs = {}, domain = "", outputs = ["y"], version = 14 : i64} : (tensor<2x5xf32>, !onnx.value) -> !onnx.value
  return %y : !onnx.value
}

// -----

// PyTorch reads as many updates as there are indices, and its exporter writes all that the program has.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[PART:.*]] = nn.slice %arg2
// CHECK-SAME: tensor<2x5xf32> -> tensor<2x1xf32>
// CHECK: nn.scatter_elements_add{{.*}}%[[PART]]
func.func @model(%x: tensor<2x5xf32> {onnx.input = "x"}, %i: tensor<2x1xi64> {onnx.input = "i"}, %u: tensor<2x5xf32> {onnx.input = "u"}) -> (!onnx.value {onnx.output = "y"}) attributes {onnx.producer = "pytorch 2.15.0"} {
  %y = onnx.node "ScatterElements"(%x, %i, %u) {attrs = {axis = 1 : i64, reduction = "add"}, domain = "", outputs = ["y"], version = 18 : i64} : (tensor<2x5xf32>, tensor<2x1xi64>, tensor<2x5xf32>) -> !onnx.value
  return %y : !onnx.value
}
