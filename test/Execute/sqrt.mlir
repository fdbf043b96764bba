// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, 0x7F800000, -1.0, 0x7FC00000, 4.0, 1.61, 7.11, 3.71, 0.31, 5.82, 2.42, 7.92, 4.52]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0.0, 0x7F800000, 0x7FC00000, 0x7FC00000, 2.0, 1.2688577, 2.6664584, 1.926136, 0.55677646, 2.4124677, 1.555635, 2.8142495, 2.1260293]> : tensor<13xf32>}) {
  %y = nn.sqrt %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<1.61> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<1.2688577> : tensor<f32>}) {
  %y = nn.sqrt %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[1.61], [7.11], [3.71]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[1.2688577], [2.6664584], [1.926136]]]> : tensor<1x3x1xf32>}) {
  %y = nn.sqrt %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[1.61, 7.11, 3.71, 0.31, 5.82]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[1.2688577540449522, 2.6664583251946765, 1.9261360284258222, 0.5567764362830022, 2.4124676163629637]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.sqrt %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[1.61, 7.11, 3.71, 0.31, 5.82, 2.42, 7.92, 4.52, 1.12]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[1.269, 2.666, 1.927, 0.5566, 2.412, 1.556, 2.814, 2.125, 1.059]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.sqrt %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[1.609375, 7.125, 3.703125, 0.31054688, 5.8125, 2.421875, 7.90625, 4.53125, 1.1171875]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[1.265625, 2.671875, 1.921875, 0.55859375, 2.40625, 1.5546875, 2.8125, 2.125, 1.0546875]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.sqrt %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
