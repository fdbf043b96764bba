// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, 0x7F800000, -1.0, 0x7FC00000, 1.0, 1.0e-20, 1.61, 7.11, 3.71, 0.31, 5.82, 2.42, 7.92]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0xFF800000, 0x7F800000, 0x7FC00000, 0x7FC00000, 0.0, -46.0517, 0.4762342, 1.9615023, 1.3110319, -1.171183, 1.7613003, 0.88376755, 2.0693913]> : tensor<13xf32>}) {
  %y = nn.log %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<1.61> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<0.4762342> : tensor<f32>}) {
  %y = nn.log %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[1.61], [7.11], [3.71]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[0.4762342], [1.9615023], [1.3110319]]]> : tensor<1x3x1xf32>}) {
  %y = nn.log %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[1.61, 7.11, 3.71, 0.31, 5.82]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[0.4762341789963717, 1.9615022438151495, 1.3110318766193438, -1.171182981502945, 1.7613002617433464]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.log %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[1.61, 7.11, 3.71, 0.31, 5.82, 2.42, 7.92, 4.52, 1.12]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[0.4766, 1.961, 1.312, -1.171, 1.762, 0.884, 2.07, 1.509, 0.1134]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.log %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[1.609375, 7.125, 3.703125, 0.31054688, 5.8125, 2.421875, 7.90625, 4.53125, 1.1171875]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[0.4765625, 1.9609375, 1.3125, -1.171875, 1.7578125, 0.8828125, 2.0625, 1.5078125, 0.110839844]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.log %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
