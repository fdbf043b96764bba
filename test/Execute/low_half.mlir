// RUN: lowtide-execute %s
// Integer arithmetic on bits, in NumPy (Inputs/codes.py).

func.func @edges(%x: tensor<23xf32> {test.value = dense<[0.0, -0.0, 1.0, 1.0039061, 1.0039062, 1.0039064, 1.0117188, -1.0039062, -1.0117188, 3.3961773e+38, 3.3961775e+38, 3.4028235e+38, -3.3961775e+38, -3.4028235e+38, 0x7F800000, 0xFF800000, 0x7FC00000, 1.0e-45, -1.0e-45, 4.5916e-41, 4.5918e-41, -1.1754942e-38, 123.456]> : tensor<23xf32>})
    -> (tensor<23xi16> {test.value = dense<[0, 0, 0, 32767, -32768, -32767, -32768, -32768, -32768, 32767, -32768, -1, -32768, -1, 0, 0, 0, 1, 1, 32767, -32768, -1, -5767]> : tensor<23xi16>}) {
  %y = nn.low_half %x : (tensor<23xf32>) -> tensor<23xi16>
  return %y : tensor<23xi16>
}
