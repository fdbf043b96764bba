// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, 1.0, -1.0, 1.5, 0x7FC00000, -0.59, 0.52, -0.17, -0.86, 0.26, -0.43, 0.68, -0.01]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[1.5707964, 0.0, 3.1415927, 0x7FC00000, 0x7FC00000, 2.2018552, 1.0239455, 1.741626, 2.606066, 1.3077742, 2.015289, 0.8230337, 1.5807965]> : tensor<13xf32>}) {
  %y = nn.acos %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-0.59> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<2.2018552> : tensor<f32>}) {
  %y = nn.acos %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[-0.59], [0.52], [-0.17]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[2.2018552], [1.0239455], [1.741626]]]> : tensor<1x3x1xf32>}) {
  %y = nn.acos %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[-0.59, 0.52, -0.17, -0.86, 0.26]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[2.201855167572918, 1.0239453760989525, 1.741625995924001, 2.6060659992754056, 1.3077741238864278]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.acos %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[-0.59, 0.52, -0.17, -0.86, 0.26, -0.43, 0.68, -0.01, -0.69]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[2.201, 1.023, 1.741, 2.605, 1.308, 2.016, 0.8228, 1.581, 2.332]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.acos %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[-0.58984375, 0.51953125, -0.16992188, -0.859375, 0.25976562, -0.4296875, 0.6796875, -0.010009766, -0.69140625]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[2.203125, 1.0234375, 1.7421875, 2.609375, 1.3046875, 2.015625, 0.82421875, 1.578125, 2.328125]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.acos %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
