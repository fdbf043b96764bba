// RUN: lowtide-opt --onnx-legalize --canonicalize --split-input-file %s | FileCheck %s

// A loop of known length is unrolled; what an iteration computes of its number is known.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<2xf32>
// CHECK:         %[[A:.*]] = nn.add %[[X]], %[[X]]
// CHECK:         %[[B:.*]] = nn.add %[[A]], %[[A]]
// CHECK:         %[[C:.*]] = nn.add %[[B]], %[[B]]
// CHECK:         %[[S:.*]] = nn.concat
// CHECK:         return %[[C]], %[[S]] : tensor<2xf32>, tensor<3x2xf32>
func.func @model(%x: tensor<2xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}, !onnx.value {onnx.output = "all"}) {
  %count = onnx.constant dense<3> : tensor<i64>
  %none = onnx.none
  %0:2 = onnx.node "Loop"(%count, %none, %x) {attrs = {}, domain = "", outputs = ["y", "all"], subgraphs = ["body"], version = 20 : i64} : (tensor<i64>, none, tensor<2xf32>) -> (!onnx.value, !onnx.value) graphs {
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %v: !onnx.value):
    %1 = onnx.node "Add"(%v, %v) {attrs = {}, domain = "", outputs = ["w"], version = 20 : i64} : (!onnx.value, !onnx.value) -> !onnx.value
    %2 = onnx.node "Identity"(%go) {attrs = {}, domain = "", outputs = ["g"], version = 20 : i64} : (tensor<i1>) -> !onnx.value
    onnx.yield %2, %1, %1 : !onnx.value, !onnx.value, !onnx.value
  }
  return %0#0, %0#1 : !onnx.value, !onnx.value
}

// -----

// Scan walks along a dimension, here from the end.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[S:[a-z0-9]+]]: tensor<2xf32>
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<2x2xf32>
// CHECK:         %[[LAST:.*]] = nn.slice %[[X]] starts = [1, 0]
// CHECK:         nn.slice %[[X]] starts = [0, 0]
// CHECK-NOT:     onnx.node
func.func @model(%s: tensor<2xf32> {onnx.input = "s"}, %x: tensor<2x2xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "Scan"(%s, %x) {attrs = {num_scan_inputs = 1 : i64, scan_input_directions = array<i64: 1>}, domain = "", outputs = ["y"], subgraphs = ["body"], version = 20 : i64} : (tensor<2xf32>, tensor<2x2xf32>) -> !onnx.value graphs {
  ^bb0(%state: !onnx.value, %row: !onnx.value):
    %1 = onnx.node "Sub"(%state, %row) {attrs = {}, domain = "", outputs = ["w"], version = 20 : i64} : (!onnx.value, !onnx.value) -> !onnx.value
    onnx.yield %1 : !onnx.value
  }
  return %0 : !onnx.value
}
