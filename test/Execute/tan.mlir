// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, -0.0, 0x7F800000, 0x7FC00000, 31.5, -0.86, 0.75, -0.24, -1.24, 0.37, -0.62, 0.98, -0.01]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0.0, -0.0, 0x7FC00000, 0x7FC00000, 0.08427211, -1.1615559, 0.93159646, -0.2447167, -2.9119298, 0.38786316, -0.71390903, 1.4909583, -0.010000333]> : tensor<13xf32>}) {
  %y = nn.tan %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-0.86> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<-1.1615559> : tensor<f32>}) {
  %y = nn.tan %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[-0.86], [0.75], [-0.24]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[-1.1615559], [0.93159646], [-0.2447167]]]> : tensor<1x3x1xf32>}) {
  %y = nn.tan %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[-0.86, 0.75, -0.24, -1.24, 0.37]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[-1.1615558576484475, 0.9315964599440725, -0.24471670271446497, -2.911929861155226, 0.38786316165584905]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.tan %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[-0.86, 0.75, -0.24, -1.24, 0.37, -0.62, 0.98, -0.01, -1.0]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[-1.161, 0.9316, -0.2448, -2.914, 0.388, -0.714, 1.491, -0.01, -1.558]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.tan %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[-0.859375, 0.75, -0.24023438, -1.2421875, 0.36914062, -0.62109375, 0.98046875, -0.010009766, -1.0]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[-1.15625, 0.9296875, -0.24511719, -2.9375, 0.38671875, -0.71484375, 1.4921875, -0.010009766, -1.5546875]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.tan %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
