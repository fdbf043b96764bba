// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/tensors.py).

func.func @folds(%x: tensor<2x3x5xf32> {test.value = dense<[[[-1.32, 1.15, -0.38, -1.9, 0.57], [-0.96, 1.51, -0.02, -1.54, 0.93], [-0.6, 1.87, 0.35, -1.18, 1.29]], [[-0.24, -1.77, 0.71, -0.82, 1.65], [0.12, -1.41, 1.07, -0.46, -1.99], [0.48, -1.04, 1.43, -0.1, -1.63]]]> : tensor<2x3x5xf32>})
    -> (tensor<6x5xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57], [-0.96, 1.51, -0.02, -1.54, 0.93], [-0.6, 1.87, 0.35, -1.18, 1.29], [-0.24, -1.77, 0.71, -0.82, 1.65], [0.12, -1.41, 1.07, -0.46, -1.99], [0.48, -1.04, 1.43, -0.1, -1.63]]> : tensor<6x5xf32>, test.tolerance = 0.0}) {
  %y = nn.reshape %x  : tensor<2x3x5xf32> -> tensor<6x5xf32>
  return %y : tensor<6x5xf32>
}

func.func @unfolds(%x: tensor<30xf32> {test.value = dense<[-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51, -0.02, -1.54, 0.93, -0.6, 1.87, 0.35, -1.18, 1.29, -0.24, -1.77, 0.71, -0.82, 1.65, 0.12, -1.41, 1.07, -0.46, -1.99, 0.48, -1.04, 1.43, -0.1, -1.63]> : tensor<30xf32>})
    -> (tensor<2x3x5xf32> {test.value = dense<[[[-1.32, 1.15, -0.38, -1.9, 0.57], [-0.96, 1.51, -0.02, -1.54, 0.93], [-0.6, 1.87, 0.35, -1.18, 1.29]], [[-0.24, -1.77, 0.71, -0.82, 1.65], [0.12, -1.41, 1.07, -0.46, -1.99], [0.48, -1.04, 1.43, -0.1, -1.63]]]> : tensor<2x3x5xf32>, test.tolerance = 0.0}) {
  %y = nn.reshape %x  : tensor<30xf32> -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

func.func @to_scalar(%x: tensor<1x1xf32> {test.value = dense<[[-1.32]]> : tensor<1x1xf32>})
    -> (tensor<f32> {test.value = dense<-1.32> : tensor<f32>, test.tolerance = 0.0}) {
  %y = nn.reshape %x  : tensor<1x1xf32> -> tensor<f32>
  return %y : tensor<f32>
}

func.func @from_scalar(%x: tensor<f32> {test.value = dense<-1.32> : tensor<f32>})
    -> (tensor<1x1x1xf32> {test.value = dense<[[[-1.32]]]> : tensor<1x1x1xf32>, test.tolerance = 0.0}) {
  %y = nn.reshape %x  : tensor<f32> -> tensor<1x1x1xf32>
  return %y : tensor<1x1x1xf32>
}

func.func @across(%x: tensor<4x9xi64> {test.value = dense<[[0, 1, 2, 3, 4, 5, 6, 7, 8], [9, 10, 11, 12, 13, 14, 15, 16, 17], [18, 19, 20, 21, 22, 23, 24, 25, 26], [27, 28, 29, 30, 31, 32, 33, 34, 35]]> : tensor<4x9xi64>})
    -> (tensor<6x6xi64> {test.value = dense<[[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11], [12, 13, 14, 15, 16, 17], [18, 19, 20, 21, 22, 23], [24, 25, 26, 27, 28, 29], [30, 31, 32, 33, 34, 35]]> : tensor<6x6xi64>}) {
  %y = nn.reshape %x  : tensor<4x9xi64> -> tensor<6x6xi64>
  return %y : tensor<6x6xi64>
}

func.func @logic(%x: tensor<2x3xi1> {test.value = dense<[[true, false, false], [true, false, true]]> : tensor<2x3xi1>})
    -> (tensor<3x2xi1> {test.value = dense<[[true, false], [false, true], [false, true]]> : tensor<3x2xi1>}) {
  %y = nn.reshape %x  : tensor<2x3xi1> -> tensor<3x2xi1>
  return %y : tensor<3x2xi1>
}
