// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<9xf32> {test.value = dense<[0.0, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7FC00000, 3.0e+38, 1.0e-40, -2.0, 1.0]> : tensor<9xf32>})
    -> (tensor<9xi1> {test.value = dense<[false, false, false, true, true, false, false, false, false]> : tensor<9xi1>}) {
  %y = nn.is_nan %x : tensor<9xf32> -> tensor<9xi1>
  return %y : tensor<9xi1>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<0x7F800000> : tensor<f32>})
    -> (tensor<i1> {test.value = dense<false> : tensor<i1>}) {
  %y = nn.is_nan %x : tensor<f32> -> tensor<i1>
  return %y : tensor<i1>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[0.0, 0x7F80, 0xFF80, 0x7FC0, 0x7FC0, 3.0040553e+38, 9.1835e-41, -2.0, 1.0]> : tensor<9xbf16>})
    -> (tensor<9xi1> {test.value = dense<[false, false, false, true, true, false, false, false, false]> : tensor<9xi1>}) {
  %y = nn.is_nan %x : tensor<9xbf16> -> tensor<9xi1>
  return %y : tensor<9xi1>
}

func.func @double(%x: tensor<1x9xf64> {test.value = dense<[[0.0, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0x7FF8000000000000, 3.0e+38, 1.0e-40, -2.0, 1.0]]> : tensor<1x9xf64>})
    -> (tensor<1x9xi1> {test.value = dense<[[false, false, false, true, true, false, false, false, false]]> : tensor<1x9xi1>}) {
  %y = nn.is_nan %x : tensor<1x9xf64> -> tensor<1x9xi1>
  return %y : tensor<1x9xi1>
}
