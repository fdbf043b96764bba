// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, 0x7FC00000, 9.0, -9.0, -1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02, -2.31]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0.0, 0x7FC00000, 9.0, -0.0, -0.047226492, 1.6576599, -0.16113424, -0.006058068, 0.68198687, -0.10790452, 2.2436593, -0.0098404335, -0.024125822]> : tensor<13xf32>}) {
  %y = nn.gelu %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-1.98> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<-0.047226492> : tensor<f32>}) {
  %y = nn.gelu %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[-1.98], [1.73], [-0.56]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[-0.047226492], [1.6576599], [-0.16113424]]]> : tensor<1x3x1xf32>}) {
  %y = nn.gelu %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[-0.04722649339618691, 1.6576598119284809, -0.16113424255545516, -0.006058066415557179, 0.6819868383457115]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.gelu %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02, -2.31]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[-0.04718, 1.658, -0.1611, -0.00607, 0.682, -0.10785, 2.242, -0.00984, -0.0241]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.gelu %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[-1.9765625, 1.7265625, -0.55859375, -2.859375, 0.8515625, -1.4375, 2.265625, -0.020019531, -2.3125]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[-0.047607422, 1.65625, -0.16113281, -0.006072998, 0.68359375, -0.10839844, 2.234375, -0.00982666, -0.024047852]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.gelu %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
