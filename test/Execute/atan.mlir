// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, -0.0, 0x7F800000, 0xFF800000, 0x7FC00000, -1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0.0, -0.0, 1.5707964, -1.5707964, 0x7FC00000, -1.1031165, 1.0466844, -0.51048833, -1.234433, 0.70449406, -0.96380866, 1.1558466, -0.019997334]> : tensor<13xf32>}) {
  %y = nn.atan %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-1.98> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<-1.1031165> : tensor<f32>}) {
  %y = nn.atan %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[-1.98], [1.73], [-0.56]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[-1.1031165], [1.0466844], [-0.51048833]]]> : tensor<1x3x1xf32>}) {
  %y = nn.atan %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[-1.103116481582997, 1.0466843936522807, -0.5104883219167758, -1.2344330338778424, 0.7044940642422177]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.atan %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02, -2.31]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[-1.104, 1.047, -0.5107, -1.234, 0.7046, -0.964, 1.156, -0.02, -1.162]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.atan %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[-1.9765625, 1.7265625, -0.55859375, -2.859375, 0.8515625, -1.4375, 2.265625, -0.020019531, -2.3125]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[-1.1015625, 1.046875, -0.5078125, -1.234375, 0.70703125, -0.96484375, 1.15625, -0.020019531, -1.1640625]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.atan %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
