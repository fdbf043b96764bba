// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, -0.0, 0x7F800000, 0xFF800000, 0x7FC00000, 1.0e-5, 10000.0, -1.98, 1.73, -0.56, -2.86, 0.85, -1.44]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0.0, -0.0, 0x7F800000, 0xFF800000, 0x7FC00000, 1.0e-5, 9.903487, -1.4346553, 1.315932, -0.5342241, -1.7732196, 0.77123743, -1.1610137]> : tensor<13xf32>}) {
  %y = nn.asinh %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-1.98> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<-1.4346553> : tensor<f32>}) {
  %y = nn.asinh %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[-1.98], [1.73], [-0.56]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[-1.4346553], [1.315932], [-0.5342241]]]> : tensor<1x3x1xf32>}) {
  %y = nn.asinh %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[-1.4346552585038903, 1.3159320376232004, -0.5342240739536623, -1.7732195744116108, 0.7712374333598078]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.asinh %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02, -2.31]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[-1.435, 1.316, -0.534, -1.773, 0.7715, -1.161, 1.558, -0.02, -1.574]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.asinh %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[-1.9765625, 1.7265625, -0.55859375, -2.859375, 0.8515625, -1.4375, 2.265625, -0.020019531, -2.3125]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[-1.4296875, 1.3125, -0.53125, -1.7734375, 0.7734375, -1.15625, 1.5546875, -0.020019531, -1.578125]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.asinh %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
