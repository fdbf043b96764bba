// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/tensors.py).

func.func @last(%x: tensor<3x7xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51], [-0.02, -1.54, 0.93, -0.6, 1.87, 0.35, -1.18], [1.29, -0.24, -1.77, 0.71, -0.82, 1.65, 0.12]]> : tensor<3x7xf32>})
    -> (tensor<3x7xf32> {test.value = dense<[[1.51, -0.96, 0.57, -1.9, -0.38, 1.15, -1.32], [-1.18, 0.35, 1.87, -0.6, 0.93, -1.54, -0.02], [0.12, 1.65, -0.82, 0.71, -1.77, -0.24, 1.29]]> : tensor<3x7xf32>, test.tolerance = 0.0}) {
  %y = nn.reverse %x dims = [1] : tensor<3x7xf32> -> tensor<3x7xf32>
  return %y : tensor<3x7xf32>
}

func.func @first(%x: tensor<3x7xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51], [-0.02, -1.54, 0.93, -0.6, 1.87, 0.35, -1.18], [1.29, -0.24, -1.77, 0.71, -0.82, 1.65, 0.12]]> : tensor<3x7xf32>})
    -> (tensor<3x7xf32> {test.value = dense<[[1.29, -0.24, -1.77, 0.71, -0.82, 1.65, 0.12], [-0.02, -1.54, 0.93, -0.6, 1.87, 0.35, -1.18], [-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51]]> : tensor<3x7xf32>, test.tolerance = 0.0}) {
  %y = nn.reverse %x dims = [0] : tensor<3x7xf32> -> tensor<3x7xf32>
  return %y : tensor<3x7xf32>
}

func.func @both(%x: tensor<2x3x5xf32> {test.value = dense<[[[-1.32, 1.15, -0.38, -1.9, 0.57], [-0.96, 1.51, -0.02, -1.54, 0.93], [-0.6, 1.87, 0.35, -1.18, 1.29]], [[-0.24, -1.77, 0.71, -0.82, 1.65], [0.12, -1.41, 1.07, -0.46, -1.99], [0.48, -1.04, 1.43, -0.1, -1.63]]]> : tensor<2x3x5xf32>})
    -> (tensor<2x3x5xf32> {test.value = dense<[[[1.65, -0.82, 0.71, -1.77, -0.24], [-1.99, -0.46, 1.07, -1.41, 0.12], [-1.63, -0.1, 1.43, -1.04, 0.48]], [[0.57, -1.9, -0.38, 1.15, -1.32], [0.93, -1.54, -0.02, 1.51, -0.96], [1.29, -1.18, 0.35, 1.87, -0.6]]]> : tensor<2x3x5xf32>, test.tolerance = 0.0}) {
  %y = nn.reverse %x dims = [0, 2] : tensor<2x3x5xf32> -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

func.func @one(%x: tensor<1x4xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9]]> : tensor<1x4xf32>})
    -> (tensor<1x4xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9]]> : tensor<1x4xf32>, test.tolerance = 0.0}) {
  %y = nn.reverse %x dims = [0] : tensor<1x4xf32> -> tensor<1x4xf32>
  return %y : tensor<1x4xf32>
}

func.func @integers(%x: tensor<9xi64> {test.value = dense<[0, 1, 2, 3, 4, 5, 6, 7, 8]> : tensor<9xi64>})
    -> (tensor<9xi64> {test.value = dense<[8, 7, 6, 5, 4, 3, 2, 1, 0]> : tensor<9xi64>}) {
  %y = nn.reverse %x dims = [0] : tensor<9xi64> -> tensor<9xi64>
  return %y : tensor<9xi64>
}
