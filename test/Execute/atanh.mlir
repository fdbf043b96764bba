// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, 1.0, -1.0, 1.5, 0x7FC00000, 1.0e-5, -0.59, 0.52, -0.17, -0.86, 0.26, -0.43, 0.68]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0.0, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7FC00000, 1.0e-5, -0.677666, 0.5763397, -0.17166667, -1.2933447, 0.2661084, -0.45989668, 0.8291141]> : tensor<13xf32>}) {
  %y = nn.atanh %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-0.59> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<-0.677666> : tensor<f32>}) {
  %y = nn.atanh %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[-0.59], [0.52], [-0.17]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[-0.677666], [0.5763397], [-0.17166667]]]> : tensor<1x3x1xf32>}) {
  %y = nn.atanh %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[-0.59, 0.52, -0.17, -0.86, 0.26]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[-0.6776660677579618, 0.5763397549691928, -0.17166666350057913, -1.2933446720489712, 0.2661084068736541]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.atanh %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[-0.59, 0.52, -0.17, -0.86, 0.26, -0.43, 0.68, -0.01, -0.69]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[-0.6772, 0.576, -0.1718, -1.293, 0.266, -0.4597, 0.8296, -0.01, -0.8477]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.atanh %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[-0.58984375, 0.51953125, -0.16992188, -0.859375, 0.25976562, -0.4296875, 0.6796875, -0.010009766, -0.69140625]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[-0.67578125, 0.57421875, -0.171875, -1.2890625, 0.265625, -0.45898438, 0.828125, -0.010009766, -0.8515625]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.atanh %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
