// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @truncates(%x: tensor<7xf32> {test.value = dense<[0.0, 0.5, -0.5, 1.9, -1.9, 100.7, -100.7]> : tensor<7xf32>})
    -> (tensor<7xi64> {test.value = dense<[0, 0, 0, 1, -1, 100, -100]> : tensor<7xi64>}) {
  %y = nn.cast %x : tensor<7xf32> -> tensor<7xi64>
  return %y : tensor<7xi64>
}

func.func @to_byte(%x: tensor<7xf32> {test.value = dense<[0.0, 0.5, -0.5, 1.9, -1.9, 100.7, -100.7]> : tensor<7xf32>})
    -> (tensor<7xi8> {test.value = dense<[0, 0, 0, 1, -1, 100, -100]> : tensor<7xi8>}) {
  %y = nn.cast %x : tensor<7xf32> -> tensor<7xi8>
  return %y : tensor<7xi8>
}

func.func @to_bool(%x: tensor<7xf32> {test.value = dense<[0.0, 0.5, -0.5, 1.9, -1.9, 100.7, -100.7]> : tensor<7xf32>})
    -> (tensor<7xi1> {test.value = dense<[false, true, true, true, true, true, true]> : tensor<7xi1>}) {
  %y = nn.cast %x : tensor<7xf32> -> tensor<7xi1>
  return %y : tensor<7xi1>
}

func.func @from_bool(%x: tensor<2x1xi1> {test.value = dense<[[true], [false]]> : tensor<2x1xi1>})
    -> (tensor<2x1xf32> {test.value = dense<[[1.0], [0.0]]> : tensor<2x1xf32>, test.tolerance = 0.0}) {
  %y = nn.cast %x : tensor<2x1xi1> -> tensor<2x1xf32>
  return %y : tensor<2x1xf32>
}

func.func @to_half(%x: tensor<10xf32> {test.value = dense<[1.0007324, 1.0004883, 1.0014648, 65519.0, 65520.0, 1.0e-7, 6.0e-8, 3.0e-8, -2.5, 0x7FC00000]> : tensor<10xf32>})
    -> (tensor<10xf16> {test.value = dense<[1.001, 1.0, 1.002, 65500.0, 0x7C00, 1.0e-7, 6.0e-8, 6.0e-8, -2.5, 0x7E00]> : tensor<10xf16>, test.tolerance = 0.0}) {
  %y = nn.cast %x : tensor<10xf32> -> tensor<10xf16>
  return %y : tensor<10xf16>
}

func.func @from_half(%x: tensor<9xf16> {test.value = dense<[-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51, -0.02, -1.54]> : tensor<9xf16>})
    -> (tensor<9xf32> {test.value = dense<[-1.3203125, 1.1503906, -0.3798828, -1.9003906, 0.5698242, -0.95996094, 1.5097656, -0.020004272, -1.5400391]> : tensor<9xf32>, test.tolerance = 0.0}) {
  %y = nn.cast %x : tensor<9xf16> -> tensor<9xf32>
  return %y : tensor<9xf32>
}

func.func @to_brain(%x: tensor<9xf32> {test.value = dense<[1.0039062, 1.0117188, 1.0039062, 3.3895314e+38, 3.39e+38, 1.0e-39, 0x7FC00000, 0x7F800000, -7.3]> : tensor<9xf32>})
    -> (tensor<9xbf16> {test.value = dense<[1.0, 1.015625, 1.0, 3.3895314e+38, 3.3895314e+38, 1.01019e-39, 0x7FC0, 0x7F80, -7.3125]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.cast %x : tensor<9xf32> -> tensor<9xbf16>
  return %y : tensor<9xbf16>
}

func.func @from_brain(%x: tensor<9xbf16> {test.value = dense<[-1.3203125, 1.1484375, -0.38085938, -1.8984375, 0.5703125, -0.9609375, 1.5078125, -0.020019531, -1.5390625]> : tensor<9xbf16>})
    -> (tensor<9xf32> {test.value = dense<[-1.3203125, 1.1484375, -0.38085938, -1.8984375, 0.5703125, -0.9609375, 1.5078125, -0.020019531, -1.5390625]> : tensor<9xf32>, test.tolerance = 0.0}) {
  %y = nn.cast %x : tensor<9xbf16> -> tensor<9xf32>
  return %y : tensor<9xf32>
}

func.func @half_to_brain(%x: tensor<9xf16> {test.value = dense<[-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51, -0.02, -1.54]> : tensor<9xf16>})
    -> (tensor<9xbf16> {test.value = dense<[-1.3203125, 1.1484375, -0.37890625, -1.8984375, 0.5703125, -0.9609375, 1.5078125, -0.020019531, -1.5390625]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.cast %x : tensor<9xf16> -> tensor<9xbf16>
  return %y : tensor<9xbf16>
}

func.func @to_double(%x: tensor<f32> {test.value = dense<-1.32> : tensor<f32>})
    -> (tensor<f64> {test.value = dense<-1.3200000524520874> : tensor<f64>, test.tolerance = 0.0}) {
  %y = nn.cast %x : tensor<f32> -> tensor<f64>
  return %y : tensor<f64>
}

func.func @from_double(%x: tensor<5xf64> {test.value = dense<[-1.32, 1.152135955, -0.37572809, -1.903592135, 0.56854382]> : tensor<5xf64>})
    -> (tensor<5xf32> {test.value = dense<[-1.32, 1.152136, -0.3757281, -1.9035921, 0.5685438]> : tensor<5xf32>}) {
  %y = nn.cast %x : tensor<5xf64> -> tensor<5xf32>
  return %y : tensor<5xf32>
}

func.func @double_to_brain(%x: tensor<9xf64> {test.value = dense<[-1.32, 1.152135955, -0.37572809, -1.903592135, 0.56854382, -0.959320225, 1.51281573, -0.015048315, -1.54291236]> : tensor<9xf64>})
    -> (tensor<9xbf16> {test.value = dense<[-1.3203125, 1.1484375, -0.375, -1.90625, 0.5703125, -0.9609375, 1.515625, -0.015075684, -1.5390625]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.cast %x : tensor<9xf64> -> tensor<9xbf16>
  return %y : tensor<9xbf16>
}

func.func @double_once(%x: tensor<7xf64> {test.value = dense<[1.0039062500009095, 1.0039062499990905, -1.0039062500009095, 1.0e+39, -1.0e-50, 0x7FF8000000000000, 0x7FF0000000000000]> : tensor<7xf64>})
    -> (tensor<7xbf16> {test.value = dense<[1.0078125, 1.0, -1.0078125, 0x7F80, -0.0, 0x7FC0, 0x7F80]> : tensor<7xbf16>, test.tolerance = 0.0}) {
  %y = nn.cast %x : tensor<7xf64> -> tensor<7xbf16>
  return %y : tensor<7xbf16>
}

func.func @double_once_half(%x: tensor<6xf64> {test.value = dense<[1.0004882812509095, 1.0004882812490905, 65519.99999999907, 1.0e-300, 0x7FF8000000000000, 0xFFF0000000000000]> : tensor<6xf64>})
    -> (tensor<6xf16> {test.value = dense<[1.001, 1.0, 65500.0, 0.0, 0x7E00, 0xFC00]> : tensor<6xf16>, test.tolerance = 0.0}) {
  %y = nn.cast %x : tensor<6xf64> -> tensor<6xf16>
  return %y : tensor<6xf16>
}

func.func @signed(%x: tensor<6xi8> {test.value = dense<[0, 1, -1, 127, -128, 100]> : tensor<6xi8>})
    -> (tensor<6xf32> {test.value = dense<[0.0, 1.0, -1.0, 127.0, -128.0, 100.0]> : tensor<6xf32>, test.tolerance = 0.0}) {
  %y = nn.cast %x : tensor<6xi8> -> tensor<6xf32>
  return %y : tensor<6xf32>
}

func.func @unsigned(%x: tensor<4xui8> {test.value = dense<[0, 1, 255, 128]> : tensor<4xui8>})
    -> (tensor<4xf32> {test.value = dense<[0.0, 1.0, 255.0, 128.0]> : tensor<4xf32>, test.tolerance = 0.0}) {
  %y = nn.cast %x : tensor<4xui8> -> tensor<4xf32>
  return %y : tensor<4xf32>
}

func.func @unsigned_widens(%x: tensor<4xui8> {test.value = dense<[0, 1, 255, 128]> : tensor<4xui8>})
    -> (tensor<4xi64> {test.value = dense<[0, 1, 255, 128]> : tensor<4xi64>}) {
  %y = nn.cast %x : tensor<4xui8> -> tensor<4xi64>
  return %y : tensor<4xi64>
}

func.func @sign_extends(%x: tensor<6xi8> {test.value = dense<[0, 1, -1, 127, -128, 100]> : tensor<6xi8>})
    -> (tensor<6xi64> {test.value = dense<[0, 1, -1, 127, -128, 100]> : tensor<6xi64>}) {
  %y = nn.cast %x : tensor<6xi8> -> tensor<6xi64>
  return %y : tensor<6xi64>
}

func.func @wraps(%x: tensor<4xi64> {test.value = dense<[256, 257, -1, 300]> : tensor<4xi64>})
    -> (tensor<4xui8> {test.value = dense<[0, 1, 255, 44]> : tensor<4xui8>}) {
  %y = nn.cast %x : tensor<4xi64> -> tensor<4xui8>
  return %y : tensor<4xui8>
}

func.func @integer_rounds(%x: tensor<4xi64> {test.value = dense<[9007199254740993, -16777217, 16777217, 3]> : tensor<4xi64>})
    -> (tensor<4xf32> {test.value = dense<[9.007199e+15, -1.6777216e+7, 1.6777216e+7, 3.0]> : tensor<4xf32>}) {
  %y = nn.cast %x : tensor<4xi64> -> tensor<4xf32>
  return %y : tensor<4xf32>
}

func.func @integer_to_bool(%x: tensor<6xi8> {test.value = dense<[0, 1, -1, 127, -128, 100]> : tensor<6xi8>})
    -> (tensor<6xi1> {test.value = dense<[false, true, true, true, true, true]> : tensor<6xi1>}) {
  %y = nn.cast %x : tensor<6xi8> -> tensor<6xi1>
  return %y : tensor<6xi1>
}
