// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, 1.0, -1.0, 1.5, 0x7FC00000, -0.59, 0.52, -0.17, -0.86, 0.26, -0.43, 0.68, -0.01]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0.0, 1.5707964, -1.5707964, 0x7FC00000, 0x7FC00000, -0.6310588, 0.5468509, -0.17082967, -1.0352697, 0.26302218, -0.4444928, 0.7477626, -0.0100001665]> : tensor<13xf32>}) {
  %y = nn.asin %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-0.59> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<-0.6310588> : tensor<f32>}) {
  %y = nn.asin %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[-0.59], [0.52], [-0.17]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[-0.6310588], [0.5468509], [-0.17082967]]]> : tensor<1x3x1xf32>}) {
  %y = nn.asin %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[-0.59, 0.52, -0.17, -0.86, 0.26]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[-0.6310588407780213, 0.5468509506959441, -0.17082966912910452, -1.0352696724805088, 0.2630222029084689]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.asin %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[-0.59, 0.52, -0.17, -0.86, 0.26, -0.43, 0.68, -0.01, -0.69]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[-0.631, 0.547, -0.1709, -1.035, 0.263, -0.4443, 0.748, -0.01, -0.761]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.asin %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[-0.58984375, 0.51953125, -0.16992188, -0.859375, 0.25976562, -0.4296875, 0.6796875, -0.010009766, -0.69140625]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[-0.6328125, 0.546875, -0.17089844, -1.03125, 0.26367188, -0.44335938, 0.74609375, -0.010009766, -0.76171875]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.asin %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
