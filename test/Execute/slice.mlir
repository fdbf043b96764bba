// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/tensors.py).

func.func @inner(%x: tensor<5x7xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51], [-0.02, -1.54, 0.93, -0.6, 1.87, 0.35, -1.18], [1.29, -0.24, -1.77, 0.71, -0.82, 1.65, 0.12], [-1.41, 1.07, -0.46, -1.99, 0.48, -1.04, 1.43], [-0.1, -1.63, 0.84, -0.68, 1.79, 0.26, -1.27]]> : tensor<5x7xf32>})
    -> (tensor<3x4xf32> {test.value = dense<[[0.93, -0.6, 1.87, 0.35], [-1.77, 0.71, -0.82, 1.65], [-0.46, -1.99, 0.48, -1.04]]> : tensor<3x4xf32>, test.tolerance = 0.0}) {
  %y = nn.slice %x starts = [1, 2] strides = [1, 1] : tensor<5x7xf32> -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

func.func @every_other(%x: tensor<6x9xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51, -0.02, -1.54], [0.93, -0.6, 1.87, 0.35, -1.18, 1.29, -0.24, -1.77, 0.71], [-0.82, 1.65, 0.12, -1.41, 1.07, -0.46, -1.99, 0.48, -1.04], [1.43, -0.1, -1.63, 0.84, -0.68, 1.79, 0.26, -1.27, 1.2], [-0.32, -1.85, 0.62, -0.91, 1.57, 0.04, -1.49, 0.98, -0.55], [1.93, 0.4, -1.13, 1.34, -0.19, -1.71, 0.76, -0.77, 1.7]]> : tensor<6x9xf32>})
    -> (tensor<3x4xf32> {test.value = dense<[[1.15, -1.9, -0.96, -0.02], [1.65, -1.41, -0.46, 0.48], [-1.85, -0.91, 0.04, 0.98]]> : tensor<3x4xf32>, test.tolerance = 0.0}) {
  %y = nn.slice %x starts = [0, 1] strides = [2, 2] : tensor<6x9xf32> -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

func.func @one_element(%x: tensor<3x1x4xf32> {test.value = dense<[[[-1.32, 1.15, -0.38, -1.9]], [[0.57, -0.96, 1.51, -0.02]], [[-1.54, 0.93, -0.6, 1.87]]]> : tensor<3x1x4xf32>})
    -> (tensor<1x1x1xf32> {test.value = dense<[[[1.87]]]> : tensor<1x1x1xf32>, test.tolerance = 0.0}) {
  %y = nn.slice %x starts = [2, 0, 3] strides = [1, 1, 1] : tensor<3x1x4xf32> -> tensor<1x1x1xf32>
  return %y : tensor<1x1x1xf32>
}

func.func @integers(%x: tensor<11xi64> {test.value = dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]> : tensor<11xi64>})
    -> (tensor<3xi64> {test.value = dense<[3, 6, 9]> : tensor<3xi64>}) {
  %y = nn.slice %x starts = [3] strides = [3] : tensor<11xi64> -> tensor<3xi64>
  return %y : tensor<3xi64>
}

func.func @brain(%x: tensor<2x5xbf16> {test.value = dense<[[-1.3203125, 1.1484375, -0.38085938, -1.8984375, 0.5703125], [-0.9609375, 1.5078125, -0.020019531, -1.5390625, 0.9296875]]> : tensor<2x5xbf16>})
    -> (tensor<2x3xbf16> {test.value = dense<[[1.1484375, -0.38085938, -1.8984375], [1.5078125, -0.020019531, -1.5390625]]> : tensor<2x3xbf16>, test.tolerance = 0.0}) {
  %y = nn.slice %x starts = [0, 1] strides = [1, 1] : tensor<2x5xbf16> -> tensor<2x3xbf16>
  return %y : tensor<2x3xbf16>
}
