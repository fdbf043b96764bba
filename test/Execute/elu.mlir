// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, 0x7F800000, 0xFF800000, 0x7FC00000, -1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02, -2.31]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0.0, 0x7F800000, -0.75, 0x7FC00000, -0.6464481, 1.73, -0.3215932, -0.7070484, 0.85, -0.5723042, 2.27, -0.014850995, -0.67555404]> : tensor<13xf32>}) {
  %y = nn.elu %x {alpha = 0.75} : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-1.98> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<-0.6464481> : tensor<f32>}) {
  %y = nn.elu %x {alpha = 0.75} : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[-1.98], [1.73], [-0.56]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[-0.6464481], [1.73], [-0.3215932]]]> : tensor<1x3x1xf32>}) {
  %y = nn.elu %x {alpha = 0.75} : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[-0.6464480720168304, 1.73, -0.3215932021133888, -0.7070484298008994, 0.85]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.elu %x {alpha = 0.75} : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02, -2.31]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[-0.6465, 1.73, -0.3215, -0.707, 0.85, -0.5723, 2.27, -0.014854, -0.676]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.elu %x {alpha = 0.75} : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[-1.9765625, 1.7265625, -0.55859375, -2.859375, 0.8515625, -1.4375, 2.265625, -0.020019531, -2.3125]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[-0.64453125, 1.7265625, -0.3203125, -0.70703125, 0.8515625, -0.5703125, 2.265625, -0.014892578, -0.67578125]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.elu %x {alpha = 0.75} : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
