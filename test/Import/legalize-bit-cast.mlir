// RUN: not lowtide-opt --onnx-legalize --split-input-file %s 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=WRONG <%t

// Integers of one width are the same numbers by their bits; of floats bits are taken.
// CHECK-LABEL: func.func @forward(
// CHECK:         %[[BITS:.*]] = nn.bit_cast %arg0 : tensor<4xf32> -> tensor<4xi32>
// CHECK:         %[[WHOLE:.*]] = nn.cast %[[BITS]] : tensor<4xi32> -> tensor<4xui32>
// CHECK:         return %[[WHOLE]]
func.func @model(%x: tensor<4xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "BitCast"(%x) {attrs = {to = 6 : i64}, domain = "", outputs = ["i"], version = 26 : i64} : (tensor<4xf32>) -> !onnx.value
  %1 = onnx.node "BitCast"(%0) {attrs = {to = 12 : i64}, domain = "", outputs = ["y"], version = 26 : i64} : (!onnx.value) -> !onnx.value
  return %1 : !onnx.value
}

// -----

func.func @model(%x: tensor<4xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  // WRONG: error: 'BitCast' (opset 26): its input is f32, of 32 bits, and 'to' is i64, of 64
  %0 = onnx.node "BitCast"(%x) {attrs = {to = 7 : i64}, domain = "", outputs = ["y"], version = 26 : i64} : (tensor<4xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @model(%x: tensor<4xf16> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  // WRONG: 'BitCast' (opset 26): bits of 16-bit floats
  %0 = onnx.node "BitCast"(%x) {attrs = {to = 5 : i64}, domain = "", outputs = ["y"], version = 26 : i64} : (tensor<4xf16>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xi16> {
  // WRONG: error: 'nn.bit_cast' op is of a float type and an integer one of 32 or 64 bits, found 'f32' and 'i16'
  %y = nn.bit_cast %x : tensor<4xf32> -> tensor<4xi16>
  return %y : tensor<4xi16>
}
