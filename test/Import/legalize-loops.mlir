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
// CHECK:         %[[LAST:.*]] = nn.scan 2 reversed slices(%[[ROW:.*]] = %[[X]]) carries(%[[STATE:.*]] = %[[S]]) : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2xf32> {
// CHECK:           %[[STEP:.*]] = nn.reshape %[[ROW]] : tensor<1x2xf32> -> tensor<2xf32>
// CHECK:           %[[NEXT:.*]] = nn.sub %[[STATE]], %[[STEP]]
// CHECK:           nn.next carries(%[[NEXT]] : tensor<2xf32>)
// CHECK:         return %[[LAST]]
// CHECK-NOT:     onnx.node
func.func @model(%s: tensor<2xf32> {onnx.input = "s"}, %x: tensor<2x2xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "Scan"(%s, %x) {attrs = {num_scan_inputs = 1 : i64, scan_input_directions = array<i64: 1>}, domain = "", outputs = ["y"], subgraphs = ["body"], version = 20 : i64} : (tensor<2xf32>, tensor<2x2xf32>) -> !onnx.value graphs {
  ^bb0(%state: !onnx.value, %row: !onnx.value):
    %1 = onnx.node "Sub"(%state, %row) {attrs = {}, domain = "", outputs = ["w"], version = 20 : i64} : (!onnx.value, !onnx.value) -> !onnx.value
    onnx.yield %1 : !onnx.value
  }
  return %0 : !onnx.value
}

// -----

// A recurrent layer is one scan for each direction, however long; the products with the input come before it, and sequences
// that have ended keep their state.
// CHECK-LABEL: func.func @forward(
// CHECK:         %[[RUNS:.*]] = nn.compare {{.*}} : tensor<4096x2xi64> -> tensor<4096x2xi1>
// CHECK:         nn.dot {{.*}} {transpose_b} : (tensor<8192x3xf32>, tensor<8x3xf32>) -> tensor<8192x8xf32>
// CHECK:         nn.scan 4096 slices(%{{.*}} = %{{.*}}, %{{.*}} = %[[RUNS]]) carries({{.*}}) reads({{.*}}) : {{.*}} -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<4096x2x2xf32>) {
// CHECK:           nn.select
// CHECK:         nn.scan 4096 reversed slices({{.*}}, %{{.*}} = %[[RUNS]])
func.func @model(%x: tensor<4096x2x3xf32> {onnx.input = "x"}, %w: tensor<2x8x3xf32> {onnx.input = "w"}, %r: tensor<2x8x2xf32> {onnx.input = "r"}, %lengths: tensor<2xi32> {onnx.input = "lengths"})
    -> (!onnx.value {onnx.output = "y"}, !onnx.value {onnx.output = "h"}, !onnx.value {onnx.output = "c"}) {
  %none = onnx.none
  %0:3 = onnx.node "LSTM"(%x, %w, %r, %none, %lengths) {attrs = {direction = "bidirectional", hidden_size = 2 : i64}, domain = "", outputs = ["y", "h", "c"], version = 20 : i64} : (tensor<4096x2x3xf32>, tensor<2x8x3xf32>, tensor<2x8x2xf32>, none, tensor<2xi32>) -> (!onnx.value, !onnx.value, !onnx.value)
  return %0#0, %0#1, %0#2 : !onnx.value, !onnx.value, !onnx.value
}

// -----

// A Scan whose body needs the elements of a state when compiling is unrolled.
// CHECK-LABEL: func.func @forward(
// CHECK-NOT:     nn.scan
// CHECK:         nn.concat {{.*}} -> tensor<3x2xf32>
func.func @model(%x: tensor<3x1xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %s = onnx.constant dense<2> : tensor<1xi64>
  %0:2 = onnx.node "Scan"(%s, %x) {attrs = {num_scan_inputs = 1 : i64}, domain = "", outputs = ["last", "y"], subgraphs = ["body"], version = 20 : i64} : (tensor<1xi64>, tensor<3x1xf32>) -> (!onnx.value, !onnx.value) graphs {
  ^bb0(%state: !onnx.value, %row: !onnx.value):
    %1 = onnx.node "Expand"(%row, %state) {attrs = {}, domain = "", outputs = ["w"], version = 20 : i64} : (!onnx.value, !onnx.value) -> !onnx.value
    %2 = onnx.node "Identity"(%state) {attrs = {}, domain = "", outputs = ["t"], version = 20 : i64} : (!onnx.value) -> !onnx.value
    onnx.yield %2, %1 : !onnx.value, !onnx.value
  }
  return %0#1 : !onnx.value
}
