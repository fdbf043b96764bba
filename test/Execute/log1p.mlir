// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, -1.0, 0x7F800000, 0x7FC00000, 1.0e-6, 0.78, 6.9, 3.12, -0.66, 5.46, 1.68, 7.79, 4.01]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0.0, 0xFF800000, 0x7F800000, 0x7FC00000, 9.999995e-7, 0.57661337, 2.0668628, 1.4158531, -1.0788097, 1.8656293, 0.9858168, 2.1736147, 1.611436]> : tensor<13xf32>}) {
  %y = nn.log1p %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<0.78> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<0.57661337> : tensor<f32>}) {
  %y = nn.log1p %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[0.78], [6.9], [3.12]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[0.57661337], [2.0668628], [1.4158531]]]> : tensor<1x3x1xf32>}) {
  %y = nn.log1p %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[0.78, 6.9, 3.12, -0.66, 5.46]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[0.5766133643039938, 2.066862759472976, 1.415853163361435, -1.07880966137193, 1.8656293177945105]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.log1p %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[0.78, 6.9, 3.12, -0.66, 5.46, 1.68, 7.79, 4.01, 0.23]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[0.5767, 2.066, 1.416, -1.079, 1.866, 0.986, 2.174, 1.611, 0.207]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.log1p %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[0.78125, 6.90625, 3.125, -0.66015625, 5.46875, 1.6796875, 7.78125, 4.0, 0.23046875]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[0.578125, 2.0625, 1.4140625, -1.078125, 1.8671875, 0.984375, 2.171875, 1.609375, 0.20703125]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.log1p %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
