// RUN: lowtide-execute %s
// PyTorch's values in f64 (Inputs/layers.py).

func.func @plain(%x: tensor<1x2x4x6xf32> {test.value = dense<[[[[-1.32, 1.15, -0.38, -1.9, 0.57, -0.96], [1.51, -0.02, -1.54, 0.93, -0.6, 1.87], [0.35, -1.18, 1.29, -0.24, -1.77, 0.71], [-0.82, 1.65, 0.12, -1.41, 1.07, -0.46]], [[-1.99, 0.48, -1.04, 1.43, -0.1, -1.63], [0.84, -0.68, 1.79, 0.26, -1.27, 1.2], [-0.32, -1.85, 0.62, -0.91, 1.57, 0.04], [-1.49, 0.98, -0.55, 1.93, 0.4, -1.13]]]]> : tensor<1x2x4x6xf32>})
    -> (tensor<1x2x2x3xf32> {test.value = dense<[[[[1.51, 0.93, 1.87], [1.65, 1.29, 1.07]], [[0.84, 1.79, 1.2], [0.98, 1.93, 1.57]]]]> : tensor<1x2x2x3xf32>, test.tolerance = 0.0}) {
  %y = nn.max_pool %x kernel = [2, 2] strides = [2, 2] pads = [0, 0], [0, 0] dilations = [1, 1] : (tensor<1x2x4x6xf32>) -> tensor<1x2x2x3xf32>
  return %y : tensor<1x2x2x3xf32>
}

func.func @overlapping(%x: tensor<2x1x5x4xf32> {test.value = dense<[[[[-1.32, 1.15, -0.38, -1.9], [0.57, -0.96, 1.51, -0.02], [-1.54, 0.93, -0.6, 1.87], [0.35, -1.18, 1.29, -0.24], [-1.77, 0.71, -0.82, 1.65]]], [[[0.12, -1.41, 1.07, -0.46], [-1.99, 0.48, -1.04, 1.43], [-0.1, -1.63, 0.84, -0.68], [1.79, 0.26, -1.27, 1.2], [-0.32, -1.85, 0.62, -0.91]]]]> : tensor<2x1x5x4xf32>})
    -> (tensor<2x1x5x2xf32> {test.value = dense<[[[[0.57, 1.51], [0.57, 1.51], [0.57, 1.51], [0.35, 1.29], [0.35, 1.29]]], [[[0.12, 1.07], [0.12, 1.07], [1.79, 0.84], [1.79, 0.84], [1.79, 0.62]]]]> : tensor<2x1x5x2xf32>, test.tolerance = 0.0}) {
  %y = nn.max_pool %x kernel = [3, 2] strides = [1, 2] pads = [1, 1], [1, 0] dilations = [1, 1] : (tensor<2x1x5x4xf32>) -> tensor<2x1x5x2xf32>
  return %y : tensor<2x1x5x2xf32>
}

func.func @dilated(%x: tensor<1x1x7x5xf32> {test.value = dense<[[[[-1.32, 1.15, -0.38, -1.9, 0.57], [-0.96, 1.51, -0.02, -1.54, 0.93], [-0.6, 1.87, 0.35, -1.18, 1.29], [-0.24, -1.77, 0.71, -0.82, 1.65], [0.12, -1.41, 1.07, -0.46, -1.99], [0.48, -1.04, 1.43, -0.1, -1.63], [0.84, -0.68, 1.79, 0.26, -1.27]]]]> : tensor<1x1x7x5xf32>})
    -> (tensor<1x1x3x3xf32> {test.value = dense<[[[[1.15, 1.65, 1.15], [1.87, 1.43, 1.87], [-0.46, 1.07, -0.46]]]]> : tensor<1x1x3x3xf32>, test.tolerance = 0.0}) {
  %y = nn.max_pool %x kernel = [2, 3] strides = [2, 1] pads = [0, 1], [1, 1] dilations = [3, 2] : (tensor<1x1x7x5xf32>) -> tensor<1x1x3x3xf32>
  return %y : tensor<1x1x3x3xf32>
}

func.func @line(%x: tensor<1x3x9xf32> {test.value = dense<[[[-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51, -0.02, -1.54], [0.93, -0.6, 1.87, 0.35, -1.18, 1.29, -0.24, -1.77, 0.71], [-0.82, 1.65, 0.12, -1.41, 1.07, -0.46, -1.99, 0.48, -1.04]]]> : tensor<1x3x9xf32>})
    -> (tensor<1x3x4xf32> {test.value = dense<[[[1.15, 1.15, 0.57, 1.51], [0.93, 1.87, 1.29, 1.29], [1.65, 1.65, 1.07, 0.48]]]> : tensor<1x3x4xf32>, test.tolerance = 0.0}) {
  %y = nn.max_pool %x kernel = [3] strides = [2] pads = [1], [0] dilations = [1] : (tensor<1x3x9xf32>) -> tensor<1x3x4xf32>
  return %y : tensor<1x3x4xf32>
}

func.func @whole(%x: tensor<1x2x3x1xf32> {test.value = dense<[[[[-1.32], [1.15], [-0.38]], [[-1.9], [0.57], [-0.96]]]]> : tensor<1x2x3x1xf32>})
    -> (tensor<1x2x1x1xf32> {test.value = dense<[[[[1.15]], [[0.57]]]]> : tensor<1x2x1x1xf32>, test.tolerance = 0.0}) {
  %y = nn.max_pool %x kernel = [3, 1] strides = [1, 1] pads = [0, 0], [0, 0] dilations = [1, 1] : (tensor<1x2x3x1xf32>) -> tensor<1x2x1x1xf32>
  return %y : tensor<1x2x1x1xf32>
}
