// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, -0.0, 0xFF800000, 0x7FC00000, 20.0, -1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[1.0, 1.0, 0.0, 0x7FC00000, 4.851652e+8, 0.13806923, 5.640654, 0.5712091, 0.057268765, 2.3396468, 0.23692775, 9.6794, 0.9801987]> : tensor<13xf32>}) {
  %y = nn.exp %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-1.98> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<0.13806923> : tensor<f32>}) {
  %y = nn.exp %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[-1.98], [1.73], [-0.56]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[0.13806923], [5.640654], [0.5712091]]]> : tensor<1x3x1xf32>}) {
  %y = nn.exp %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[0.13806923731089282, 5.6406539084283205, 0.5712090638488149, 0.05726876026546736, 2.3396468519259908]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.exp %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02, -2.31]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[0.1381, 5.645, 0.5713, 0.0573, 2.34, 0.2368, 9.67, 0.98, 0.0992]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.exp %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[-1.9765625, 1.7265625, -0.55859375, -2.859375, 0.8515625, -1.4375, 2.265625, -0.020019531, -2.3125]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[0.13867188, 5.625, 0.5703125, 0.057373047, 2.34375, 0.23730469, 9.625, 0.98046875, 0.099121094]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.exp %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
