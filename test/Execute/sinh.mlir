// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, -0.0, 0x7F800000, 0xFF800000, 0x7FC00000, 1.0e-5, 12.0, -1.98, 1.73, -0.56, -2.86, 0.85, -1.44]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0.0, -0.0, 0x7F800000, 0xFF800000, 0x7FC00000, 1.0e-5, 81377.4, -3.552337, 2.731685, -0.5897317, -8.702128, 0.956116, -1.9918841]> : tensor<13xf32>}) {
  %y = nn.sinh %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-1.98> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<-3.552337> : tensor<f32>}) {
  %y = nn.sinh %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[-1.98], [1.73], [-0.56]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[-3.552337], [2.731685], [-0.5897317]]]> : tensor<1x3x1xf32>}) {
  %y = nn.sinh %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[-3.55233687392506, 2.7316847492292213, -0.5897317182236432, -8.70212908815726, 0.956115959988632]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.sinh %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02, -2.31]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[-3.555, 2.732, -0.59, -8.695, 0.956, -1.993, 4.785, -0.02, -4.992]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.sinh %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[-1.9765625, 1.7265625, -0.55859375, -2.859375, 0.8515625, -1.4375, 2.265625, -0.020019531, -2.3125]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[-3.546875, 2.71875, -0.58984375, -8.6875, 0.95703125, -1.984375, 4.78125, -0.020019531, -5.0]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.sinh %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
