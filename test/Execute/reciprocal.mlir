// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, -0.0, 0x7F800000, 0xFF800000, 0x7FC00000, 1.61, 7.11, 3.71, 0.31, 5.82, 2.42, 7.92, 4.52]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0x7F800000, 0xFF800000, 0.0, -0.0, 0x7FC00000, 0.621118, 0.14064698, 0.26954177, 3.2258065, 0.1718213, 0.41322312, 0.12626262, 0.22123894]> : tensor<13xf32>}) {
  %y = nn.reciprocal %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<1.61> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<0.621118> : tensor<f32>}) {
  %y = nn.reciprocal %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[1.61], [7.11], [3.71]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[0.621118], [0.14064698], [0.26954177]]]> : tensor<1x3x1xf32>}) {
  %y = nn.reciprocal %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[1.61, 7.11, 3.71, 0.31, 5.82]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[0.6211180124223602, 0.14064697609001406, 0.2695417789757412, 3.2258064516129035, 0.1718213058419244]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.reciprocal %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[1.61, 7.11, 3.71, 0.31, 5.82, 2.42, 7.92, 4.52, 1.12]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[0.621, 0.1406, 0.2695, 3.225, 0.1718, 0.4133, 0.1262, 0.2213, 0.8926]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.reciprocal %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[1.609375, 7.125, 3.703125, 0.31054688, 5.8125, 2.421875, 7.90625, 4.53125, 1.1171875]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[0.62109375, 0.140625, 0.26953125, 3.21875, 0.171875, 0.41210938, 0.12695312, 0.22070312, 0.89453125]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.reciprocal %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
