func.func @model(%x: tensor<6x3xf32> {onnx.input = "x"}, %s: tensor<f32> {onnx.input = "s"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "QuantizeLinear"(%x, %s) {attrs = {}, domain = "", outputs = ["y"], version = 21 : i64} : (tensor<6x3xf32>, tensor<f32>) -> !onnx.value
  return %0 : !onnx.value
}
// -----
func.func @model(%x: tensor<6x3xf32> {onnx.input = "x"}, %s: tensor<f32> {onnx.input = "s"}, %t: tensor<f32> {onnx.input = "t"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "QuantizeLinear"(%x, %s) {attrs = {}, domain = "", outputs = ["q"], version = 21 : i64} : (tensor<6x3xf32>, tensor<f32>) -> !onnx.value
  %1 = onnx.node "DequantizeLinear"(%0, %t) {attrs = {}, domain = "", outputs = ["y"], version = 21 : i64} : (!onnx.value, tensor<f32>) -> !onnx.value
  return %1 : !onnx.value
}
// -----
func.func @model(%w: tensor<6x3xi8> {onnx.input = "w"}, %s: tensor<6xf32> {onnx.input = "s"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "DequantizeLinear"(%w, %s) {attrs = {axis = 1 : i64}, domain = "", outputs = ["y"], version = 21 : i64} : (tensor<6x3xi8>, tensor<6xf32>) -> !onnx.value
  return %0 : !onnx.value
}
// -----
func.func @model(%w: tensor<6x3xi8> {onnx.input = "w"}, %s: tensor<3x3xf32> {onnx.input = "s"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "DequantizeLinear"(%w, %s) {attrs = {axis = 0 : i64, block_size = 4 : i64}, domain = "", outputs = ["y"], version = 21 : i64} : (tensor<6x3xi8>, tensor<3x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}
// -----
func.func @model(%x: tensor<2x64xf32> {onnx.input = "x"}, %w: tensor<8x2x8xui8> {onnx.input = "w"}, %s: tensor<16xf32> {onnx.input = "s"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "MatMulNBits"(%x, %w, %s) {attrs = {K = 64 : i64, N = 8 : i64, bits = 4 : i64, block_size = 32 : i64}, domain = "com.microsoft", outputs = ["y"], version = 1 : i64} : (tensor<2x64xf32>, tensor<8x2x8xui8>, tensor<16xf32>) -> !onnx.value
  return %0 : !onnx.value
}
// -----
func.func @model(%x: tensor<2x64xf32> {onnx.input = "x"}, %w: tensor<8x2x12xui8> {onnx.input = "w"}, %s: tensor<16xf32> {onnx.input = "s"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "MatMulNBits"(%x, %w, %s) {attrs = {K = 64 : i64, N = 8 : i64, bits = 3 : i64, block_size = 32 : i64}, domain = "com.microsoft", outputs = ["y"], version = 1 : i64} : (tensor<2x64xf32>, tensor<8x2x12xui8>, tensor<16xf32>) -> !onnx.value
  return %0 : !onnx.value
}
// -----
func.func @model(%x: tensor<6x3xf32> {onnx.input = "x"}, %s: tensor<f32> {onnx.input = "s"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "Quant"(%x, %s, %s, %s) {attrs = {}, domain = "qonnx.custom_op.general", outputs = ["y"], version = 2 : i64} : (tensor<6x3xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> !onnx.value
  return %0 : !onnx.value
}
// -----
func.func @model(%x: tensor<6x3xf32> {onnx.input = "x"}, %s: tensor<f32> {onnx.input = "s"}) -> (!onnx.value {onnx.output = "y"}) {
  %bits = onnx.constant dense<4.0> : tensor<f32>
  %0 = onnx.node "Quant"(%x, %s, %s, %bits) {attrs = {rounding_mode = "FLOOR"}, domain = "qonnx.custom_op.general", outputs = ["y"], version = 2 : i64} : (tensor<6x3xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> !onnx.value
  return %0 : !onnx.value
}
