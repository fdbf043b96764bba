// RUN: not lowtide-opt --onnx-legalize --split-input-file %s 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID --input-file=%t

// The shape that an exporter left behind when it moved a dimension: what the operators say counts, and one warning says so.
// CHECK-LABEL: func.func @forward
// CHECK: nn.relu %arg0 : tensor<2x3x4xf32>
// CHECK: nn.tanh %{{.*}} : tensor<2x3x4xf32>
// SAID: warning: 'Relu': its result 0 is stated to be 'tensor<2x4x3xf32>' and is 'tensor<2x3x4xf32>'; shapes after it are taken from the operators
// SAID-NOT: warning
func.func @model(%x: tensor<2x3x4xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "Relu"(%x) {attrs = {}, domain = "", outputs = ["h"], version = 14 : i64} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %1 = onnx.node "Tanh"(%0) {attrs = {}, domain = "", outputs = ["y"], version = 13 : i64} : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  %2 = onnx.node "Identity"(%1) {attrs = {}, domain = "", outputs = ["z"], version = 14 : i64} : (tensor<2x4x3xf32>) -> !onnx.value
  return %2 : !onnx.value
}

// -----

// A file that names dynamic sizes of its inputs alone states those of the example for its outputs.
// SAID: warning: 'Relu': its result 0 is stated to be 'tensor<4x5xf32>' and is 'tensor<8x5xf32>'; shapes after it are taken from the operators
// CHECK-LABEL: func.func @forward
// CHECK: return %{{.*}} : tensor<8x5xf32>
func.func @model(%x: tensor<8x5xf32> {onnx.input = "x"}) -> (tensor<4x5xf32> {onnx.output = "y"}) {
  %0 = onnx.node "Relu"(%x) {attrs = {}, domain = "", outputs = ["y"], version = 14 : i64} : (tensor<8x5xf32>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

// -----

// Another number of elements of what is no output is no such thing.
// SAID: error: 'Relu' (opset 14): its result 0 is stated to be tensor<2x4xf32> and is tensor<2x3x4xf32>
func.func @model(%x: tensor<2x3x4xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "Relu"(%x) {attrs = {}, domain = "", outputs = ["h"], version = 14 : i64} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  %1 = onnx.node "Identity"(%0) {attrs = {}, domain = "", outputs = ["y"], version = 14 : i64} : (tensor<2x4xf32>) -> !onnx.value
  return %1 : !onnx.value
}

// -----

// Nothing reads the result that is stated wrongly; where something does, the file is refused.
// CHECK-LABEL: func.func @forward
// CHECK: return %{{.*}} : tensor<1x2x4xf32>
// SAID-NOT: 'LSTM'
func.func @model(%x: tensor<3x2x5xf32> {onnx.input = "x"}, %w: tensor<1x16x5xf32> {onnx.input = "w"}, %r: tensor<1x16x4xf32> {onnx.input = "r"}) -> (!onnx.value {onnx.output = "c"}) {
  %0:3 = onnx.node "LSTM"(%x, %w, %r) {attrs = {hidden_size = 4 : i64}, domain = "", outputs = ["y", "h", "c"], version = 14 : i64} : (tensor<3x2x5xf32>, tensor<1x16x5xf32>, tensor<1x16x4xf32>) -> (tensor<1x2x4xf32>, !onnx.value, !onnx.value)
  return %0#2 : !onnx.value
}

// -----

// SAID: error: 'LSTM' (opset 14): its result 0 is stated to be tensor<1x2x4xf32> and is tensor<3x1x2x4xf32>
func.func @model(%x: tensor<3x2x5xf32> {onnx.input = "x"}, %w: tensor<1x16x5xf32> {onnx.input = "w"}, %r: tensor<1x16x4xf32> {onnx.input = "r"}) -> (!onnx.value {onnx.output = "y"}) {
  %0:3 = onnx.node "LSTM"(%x, %w, %r) {attrs = {hidden_size = 4 : i64}, domain = "", outputs = ["y", "h", "c"], version = 14 : i64} : (tensor<3x2x5xf32>, tensor<1x16x5xf32>, tensor<1x16x4xf32>) -> (tensor<1x2x4xf32>, !onnx.value, !onnx.value)
  %1 = onnx.node "Relu"(%0#0) {attrs = {}, domain = "", outputs = ["z"], version = 14 : i64} : (tensor<1x2x4xf32>) -> !onnx.value
  return %1 : !onnx.value
}

// -----

// A sum over all, whose list of axes is there and empty: onnxslim states the operand's shape.
// CHECK-LABEL: func.func @forward
// CHECK: nn.reduce_sum %arg0 dims = [0, 1] : tensor<2x3xf32> -> tensor<f32>
// CHECK: nn.tanh %{{.*}} : tensor<f32>
// SAID-NOT: 'ReduceSum'
func.func @model(%x: tensor<2x3xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %axes = onnx.constant dense<> : tensor<0xi64>
  %0 = onnx.node "ReduceSum"(%x, %axes) {attrs = {keepdims = 0 : i64, noop_with_empty_axes = 0 : i64}, domain = "", outputs = ["s"], version = 13 : i64} : (tensor<2x3xf32>, tensor<0xi64>) -> tensor<2x3xf32>
  %1 = onnx.node "Tanh"(%0) {attrs = {}, domain = "", outputs = ["y"], version = 13 : i64} : (tensor<2x3xf32>) -> !onnx.value
  return %1 : !onnx.value
}
