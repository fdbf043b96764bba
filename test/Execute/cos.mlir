// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, -0.0, 0x7F800000, 0x7FC00000, 1000.0, -31.5, -1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[1.0, 1.0, 0x7FC00000, 0x7FC00000, 0.56237906, 0.9964679, -0.3978789, -0.15853202, 0.8472551, -0.960614, 0.6599831, 0.13042365, -0.6436084]> : tensor<13xf32>}) {
  %y = nn.cos %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-1.98> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<-0.3978789> : tensor<f32>}) {
  %y = nn.cos %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[-1.98], [1.73], [-0.56]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[-0.3978789], [-0.15853202], [0.8472551]]]> : tensor<1x3x1xf32>}) {
  %y = nn.cos %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[-0.397878873789916, -0.15853200064419776, 0.8472551110134161, -0.9606140808009522, 0.6599831458849822]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.cos %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02, -2.31]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[-0.3982, -0.1589, 0.847, -0.9604, 0.6597, 0.13, -0.643, 1.0, -0.6743]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.cos %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[-1.9765625, 1.7265625, -0.55859375, -2.859375, 0.8515625, -1.4375, 2.265625, -0.020019531, -2.3125]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[-0.39453125, -0.15527344, 0.84765625, -0.9609375, 0.66015625, 0.1328125, -0.640625, 1.0, -0.67578125]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.cos %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
