// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, -0.0, 0x7F800000, 0xFF800000, 0x7FC00000, 1.0e-5, 15.0, -1.98, 1.73, -0.56, -2.86, 0.85, -1.44]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0.0, -0.0, 1.0, -1.0, 0x7FC00000, 1.0e-5, 1.0, -0.962587, 0.9390559, -0.5079774, -0.993462, 0.6910695, -0.89369774]> : tensor<13xf32>}) {
  %y = nn.tanh %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-1.98> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<-0.962587> : tensor<f32>}) {
  %y = nn.tanh %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[-1.98], [1.73], [-0.56]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[-0.962587], [0.9390559], [-0.5079774]]]> : tensor<1x3x1xf32>}) {
  %y = nn.tanh %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[-0.9625869800912908, 0.9390559334707117, -0.5079774328978962, -0.9934620208767228, 0.6910694698329306]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.tanh %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02, -2.31]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[-0.9624, 0.939, -0.508, -0.9937, 0.691, -0.8936, 0.979, -0.02, -0.9805]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.tanh %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[-1.9765625, 1.7265625, -0.55859375, -2.859375, 0.8515625, -1.4375, 2.265625, -0.020019531, -2.3125]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[-0.9609375, 0.9375, -0.5078125, -0.9921875, 0.69140625, -0.89453125, 0.98046875, -0.020019531, -0.98046875]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.tanh %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
