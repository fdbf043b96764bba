// RUN: lowtide-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func.func @model
// CHECK-SAME: %arg0: tensor<8x64xf32> {onnx.input = "x"}
// CHECK-SAME: onnx.transposed = array<i64: 1, 0>
func.func @model(
    %x: tensor<8x64xf32> {onnx.input = "x"},
    %w: tensor<64x10xf32> {onnx.initializer = "val_1", onnx.parameter = "fc.weight", onnx.role = "parameter",
                           onnx.transposed = array<i64: 1, 0>, onnx.source_shape = array<i64: 10, 64>})
    -> (!onnx.value {onnx.output = "y"}) attributes {onnx.opset = 20 : i64} {
  // CHECK: %[[NONE:.*]] = onnx.none
  %none = onnx.none
  // CHECK: onnx.constant dense<[1, 2]> : tensor<2xi64>
  %shape = onnx.constant dense<[1, 2]> : tensor<2xi64>
  // CHECK: onnx.node "Gemm"(%arg0, %arg1, %[[NONE]])
  // CHECK-SAME: attrs = {alpha = 1.000000e+00 : f32, transB = 0 : i64}
  // CHECK-SAME: (tensor<8x64xf32>, tensor<64x10xf32>, none) -> !onnx.value
  %h = onnx.node "Gemm"(%x, %w, %none)
      {attrs = {alpha = 1.0 : f32, transB = 0 : i64}, domain = "", outputs = ["h"], version = 20 : i64}
      : (tensor<8x64xf32>, tensor<64x10xf32>, none) -> !onnx.value
  %c = onnx.constant dense<true> : tensor<i1>
  // CHECK: onnx.node "If"
  // CHECK-SAME: subgraphs = ["then_branch", "else_branch"]
  // CHECK-SAME: graphs
  // CHECK: onnx.yield %{{.*}} : !onnx.value
  // CHECK: onnx.node "Relu"
  %y = onnx.node "If"(%c) {attrs = {}, domain = "", outputs = ["y"], subgraphs = ["then_branch", "else_branch"], version = 20 : i64}
      : (tensor<i1>) -> !onnx.value graphs {
    onnx.yield %h : !onnx.value
  }, {
    %r = onnx.node "Relu"(%h) {attrs = {}, domain = "", outputs = ["r"], version = 20 : i64} : (!onnx.value) -> !onnx.value
    onnx.yield %r : !onnx.value
  }
  return %y : !onnx.value
}
