// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, 0x7F800000, -1.0, 0x7FC00000, 4.0, 1.61, 7.11, 3.71, 0.31, 5.82, 2.42, 7.92, 4.52]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0x7F800000, 0.0, 0x7FC00000, 0x7FC00000, 0.5, 0.7881104, 0.3750293, 0.51917416, 1.796053, 0.41451332, 0.64282435, 0.35533452, 0.47036043]> : tensor<13xf32>}) {
  %y = nn.rsqrt %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<1.61> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<0.7881104> : tensor<f32>}) {
  %y = nn.rsqrt %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[1.61], [7.11], [3.71]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[0.7881104], [0.3750293], [0.51917416]]]> : tensor<1x3x1xf32>}) {
  %y = nn.rsqrt %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[1.61, 7.11, 3.71, 0.31, 5.82]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[0.7881104062391006, 0.37502930030867465, 0.519174131651165, 1.796053020267749, 0.41451333614483915]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.rsqrt %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[1.61, 7.11, 3.71, 0.31, 5.82, 2.42, 7.92, 4.52, 1.12]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[0.788, 0.375, 0.519, 1.796, 0.4146, 0.643, 0.3552, 0.4705, 0.945]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.rsqrt %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[1.609375, 7.125, 3.703125, 0.31054688, 5.8125, 2.421875, 7.90625, 4.53125, 1.1171875]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[0.7890625, 0.375, 0.51953125, 1.796875, 0.4140625, 0.640625, 0.35546875, 0.47070312, 0.9453125]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.rsqrt %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
