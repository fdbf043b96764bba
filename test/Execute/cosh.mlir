// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, -0.0, 0x7F800000, 0xFF800000, 0x7FC00000, 12.0, -1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[1.0, 1.0, 0x7F800000, 0x7F800000, 0x7FC00000, 81377.4, 3.690406, 2.9089692, 1.1609408, 8.759397, 1.3835309, 2.228812, 4.8913565]> : tensor<13xf32>}) {
  %y = nn.cosh %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-1.98> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<3.690406> : tensor<f32>}) {
  %y = nn.cosh %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[-1.98], [1.73], [-0.56]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[3.690406], [2.9089692], [1.1609408]]]> : tensor<1x3x1xf32>}) {
  %y = nn.cosh %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[3.6904061112359523, 2.908969159199099, 1.160940782072458, 8.75939784842273, 1.3835308919373588]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.cosh %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02, -2.31]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[3.691, 2.91, 1.161, 8.76, 1.384, 2.23, 4.89, 1.0, 5.09]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.cosh %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[-1.9765625, 1.7265625, -0.55859375, -2.859375, 0.8515625, -1.4375, 2.265625, -0.020019531, -2.3125]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[3.671875, 2.90625, 1.15625, 8.75, 1.3828125, 2.21875, 4.875, 1.0, 5.09375]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.cosh %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
