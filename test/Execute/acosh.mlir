// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[1.0, 0x7F800000, 0.5, 0x7FC00000, 10000.0, 2.44, 7.33, 4.31, 1.29, 6.17, 3.16, 8.04, 5.02]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0.0, 0x7F800000, 0x7FC00000, 0x7FC00000, 9.903487, 1.5402311, 2.6804368, 2.1403468, 0.74427897, 2.5062134, 1.8176869, 2.7736862, 2.2965057]> : tensor<13xf32>}) {
  %y = nn.acosh %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<2.44> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<1.5402311> : tensor<f32>}) {
  %y = nn.acosh %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[2.44], [7.33], [4.31]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[1.5402311], [2.6804368], [2.1403468]]]> : tensor<1x3x1xf32>}) {
  %y = nn.acosh %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[2.44, 7.33, 4.31, 1.29, 6.17]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[1.5402311121200738, 2.680436891681257, 2.140346824756046, 0.7442790338222861, 2.506213328540417]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.acosh %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[2.44, 7.33, 4.31, 1.29, 6.17, 3.16, 8.04, 5.02, 2.0]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[1.54, 2.68, 2.14, 0.744, 2.506, 1.817, 2.773, 2.297, 1.317]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.acosh %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[2.4375, 7.34375, 4.3125, 1.2890625, 6.15625, 3.15625, 8.0625, 5.03125, 2.0]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[1.5390625, 2.6875, 2.140625, 0.7421875, 2.5, 1.8203125, 2.78125, 2.296875, 1.3203125]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.acosh %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
