// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, -0.0, 0x7F800000, 0x7FC00000, 1000.0, -31.5, -1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0.0, -0.0, 0x7FC00000, 0x7FC00000, 0.82687956, -0.08397446, -0.917438, 0.98735386, -0.5311862, -0.27788603, 0.7512804, -0.99145836, 0.765355]> : tensor<13xf32>}) {
  %y = nn.sin %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-1.98> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<-0.917438> : tensor<f32>}) {
  %y = nn.sin %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[-1.98], [1.73], [-0.56]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[-0.917438], [0.98735386], [-0.5311862]]]> : tensor<1x3x1xf32>}) {
  %y = nn.sin %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[-0.9174379552818098, 0.9873538397007164, -0.5311861979208834, -0.2778859258165868, 0.7512804051402927]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.sin %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02, -2.31]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[-0.9175, 0.9873, -0.5312, -0.2786, 0.7515, -0.9917, 0.7656, -0.02, -0.739]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.sin %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[-1.9765625, 1.7265625, -0.55859375, -2.859375, 0.8515625, -1.4375, 2.265625, -0.020019531, -2.3125]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[-0.91796875, 0.98828125, -0.53125, -0.27929688, 0.75390625, -0.9921875, 0.76953125, -0.020019531, -0.73828125]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.sin %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
