// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/tensors.py).

func.func @rows(%x: tensor<5xf32> {test.value = dense<[-1.32, 1.15, -0.38, -1.9, 0.57]> : tensor<5xf32>})
    -> (tensor<3x5xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57], [-1.32, 1.15, -0.38, -1.9, 0.57], [-1.32, 1.15, -0.38, -1.9, 0.57]]> : tensor<3x5xf32>, test.tolerance = 0.0}) {
  %y = nn.broadcast %x dims = [1] : tensor<5xf32> -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

func.func @columns(%x: tensor<3xf32> {test.value = dense<[-1.32, 1.15, -0.38]> : tensor<3xf32>})
    -> (tensor<3x5xf32> {test.value = dense<[[-1.32, -1.32, -1.32, -1.32, -1.32], [1.15, 1.15, 1.15, 1.15, 1.15], [-0.38, -0.38, -0.38, -0.38, -0.38]]> : tensor<3x5xf32>, test.tolerance = 0.0}) {
  %y = nn.broadcast %x dims = [0] : tensor<3xf32> -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-1.32> : tensor<f32>})
    -> (tensor<2x3xf32> {test.value = dense<[[-1.32, -1.32, -1.32], [-1.32, -1.32, -1.32]]> : tensor<2x3xf32>, test.tolerance = 0.0}) {
  %y = nn.broadcast %x dims = [] : tensor<f32> -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[-1.32], [1.15], [-0.38]]]> : tensor<1x3x1xf32>})
    -> (tensor<2x3x5xf32> {test.value = dense<[[[-1.32, -1.32, -1.32, -1.32, -1.32], [1.15, 1.15, 1.15, 1.15, 1.15], [-0.38, -0.38, -0.38, -0.38, -0.38]], [[-1.32, -1.32, -1.32, -1.32, -1.32], [1.15, 1.15, 1.15, 1.15, 1.15], [-0.38, -0.38, -0.38, -0.38, -0.38]]]> : tensor<2x3x5xf32>, test.tolerance = 0.0}) {
  %y = nn.broadcast %x dims = [0, 1, 2] : tensor<1x3x1xf32> -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

func.func @between(%x: tensor<2x1xf32> {test.value = dense<[[-1.32], [1.15]]> : tensor<2x1xf32>})
    -> (tensor<2x3x4xf32> {test.value = dense<[[[-1.32, -1.32, -1.32, -1.32], [-1.32, -1.32, -1.32, -1.32], [-1.32, -1.32, -1.32, -1.32]], [[1.15, 1.15, 1.15, 1.15], [1.15, 1.15, 1.15, 1.15], [1.15, 1.15, 1.15, 1.15]]]> : tensor<2x3x4xf32>, test.tolerance = 0.0}) {
  %y = nn.broadcast %x dims = [0, 2] : tensor<2x1xf32> -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

func.func @logic(%x: tensor<3xi1> {test.value = dense<[true, false, false]> : tensor<3xi1>})
    -> (tensor<2x3xi1> {test.value = dense<[[true, false, false], [true, false, false]]> : tensor<2x3xi1>}) {
  %y = nn.broadcast %x dims = [1] : tensor<3xi1> -> tensor<2x3xi1>
  return %y : tensor<2x3xi1>
}

func.func @brain(%x: tensor<3xbf16> {test.value = dense<[-1.3203125, 1.1484375, -0.38085938]> : tensor<3xbf16>})
    -> (tensor<3x2xbf16> {test.value = dense<[[-1.3203125, -1.3203125], [1.1484375, 1.1484375], [-0.38085938, -0.38085938]]> : tensor<3x2xbf16>, test.tolerance = 0.0}) {
  %y = nn.broadcast %x dims = [0] : tensor<3xbf16> -> tensor<3x2xbf16>
  return %y : tensor<3x2xbf16>
}

func.func @same(%x: tensor<2x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96]]> : tensor<2x3xf32>})
    -> (tensor<2x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96]]> : tensor<2x3xf32>, test.tolerance = 0.0}) {
  %y = nn.broadcast %x dims = [0, 1] : tensor<2x3xf32> -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
