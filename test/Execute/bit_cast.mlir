// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @f32_to_i32(%x: tensor<9xf32> {test.value = dense<[0.0, -0.0, 1.0, -2.5, 3.4028235e+38, 0x7F800000, 0xFF800000, 1.0e-45, 1.1754942e-38]> : tensor<9xf32>})
    -> (tensor<9xi32> {test.value = dense<[0, -2147483648, 1065353216, -1071644672, 2139095039, 2139095040, -8388608, 1, 8388607]> : tensor<9xi32>}) {
  %y = nn.bit_cast %x : tensor<9xf32> -> tensor<9xi32>
  return %y : tensor<9xi32>
}

func.func @i32_to_f32(%x: tensor<9xi32> {test.value = dense<[0, -2147483648, 1065353216, -1071644672, 2139095039, 2139095040, -8388608, 1, 8388607]> : tensor<9xi32>})
    -> (tensor<9xf32> {test.value = dense<[0.0, -0.0, 1.0, -2.5, 3.4028235e+38, 0x7F800000, 0xFF800000, 1.0e-45, 1.1754942e-38]> : tensor<9xf32>, test.tolerance = 0.0}) {
  %y = nn.bit_cast %x : tensor<9xi32> -> tensor<9xf32>
  return %y : tensor<9xf32>
}

func.func @f32_to_ui32(%x: tensor<9xf32> {test.value = dense<[0.0, -0.0, 1.0, -2.5, 3.4028235e+38, 0x7F800000, 0xFF800000, 1.0e-45, 1.1754942e-38]> : tensor<9xf32>})
    -> (tensor<9xui32> {test.value = dense<[0, 2147483648, 1065353216, 3223322624, 2139095039, 2139095040, 4286578688, 1, 8388607]> : tensor<9xui32>}) {
  %y = nn.bit_cast %x : tensor<9xf32> -> tensor<9xui32>
  return %y : tensor<9xui32>
}

func.func @ui32_to_f32(%x: tensor<9xui32> {test.value = dense<[0, 2147483648, 1065353216, 3223322624, 2139095039, 2139095040, 4286578688, 1, 8388607]> : tensor<9xui32>})
    -> (tensor<9xf32> {test.value = dense<[0.0, -0.0, 1.0, -2.5, 3.4028235e+38, 0x7F800000, 0xFF800000, 1.0e-45, 1.1754942e-38]> : tensor<9xf32>, test.tolerance = 0.0}) {
  %y = nn.bit_cast %x : tensor<9xui32> -> tensor<9xf32>
  return %y : tensor<9xf32>
}

func.func @f64_to_i64(%x: tensor<6xf64> {test.value = dense<[0.0, 1.0, -2.5, 0.75, 0x7FF0000000000000, 2.2250738585072014e-308]> : tensor<6xf64>})
    -> (tensor<6xi64> {test.value = dense<[0, 4607182418800017408, -4610560118520545280, 4604930618986332160, 9218868437227405312, 4503599627370496]> : tensor<6xi64>}) {
  %y = nn.bit_cast %x : tensor<6xf64> -> tensor<6xi64>
  return %y : tensor<6xi64>
}

func.func @i64_to_f64(%x: tensor<6xi64> {test.value = dense<[0, 4607182418800017408, -4610560118520545280, 4604930618986332160, 9218868437227405312, 4503599627370496]> : tensor<6xi64>})
    -> (tensor<6xf64> {test.value = dense<[0.0, 1.0, -2.5, 0.75, 0x7FF0000000000000, 2.2250738585072014e-308]> : tensor<6xf64>, test.tolerance = 0.0}) {
  %y = nn.bit_cast %x : tensor<6xi64> -> tensor<6xf64>
  return %y : tensor<6xf64>
}
