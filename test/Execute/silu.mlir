// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, 0x7FC00000, 30.0, -30.0, -1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02, -2.31]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0.0, 0x7FC00000, 30.0, -2.807287e-12, -0.2402113, 1.4694835, -0.20358658, -0.15491678, 0.5954821, -0.2758253, 2.0574412, -0.009900003, -0.20858872]> : tensor<13xf32>}) {
  %y = nn.silu %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-1.98> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<-0.2402113> : tensor<f32>}) {
  %y = nn.silu %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[-1.98], [1.73], [-0.56]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[-0.2402113], [1.4694835], [-0.20358658]]]> : tensor<1x3x1xf32>}) {
  %y = nn.silu %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[-0.24021129902563898, 1.46948348703969, -0.20358657744232286, -0.15491676337633514, 0.595482071102877]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.silu %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02, -2.31]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[-0.2401, 1.47, -0.2036, -0.155, 0.5957, -0.276, 2.057, -0.0099, -0.2085]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.silu %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[-1.9765625, 1.7265625, -0.55859375, -2.859375, 0.8515625, -1.4375, 2.265625, -0.020019531, -2.3125]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[-0.24023438, 1.46875, -0.203125, -0.15527344, 0.59765625, -0.27539062, 2.046875, -0.009887695, -0.20800781]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.silu %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
