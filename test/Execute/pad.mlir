// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/tensors.py).

func.func @around(%x: tensor<2x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96]]> : tensor<2x3xf32>})
    -> (tensor<3x5xf32> {test.value = dense<[[0.0, 0.0, 0.0, 0.0, 0.0], [-1.32, 1.15, -0.38, 0.0, 0.0], [-1.9, 0.57, -0.96, 0.0, 0.0]]> : tensor<3x5xf32>, test.tolerance = 0.0}) {
  %y = nn.pad %x low = [1, 0] high = [0, 2] interior = [0, 0] : tensor<2x3xf32> -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

func.func @value(%x: tensor<3xf32> {test.value = dense<[-1.32, 1.15, -0.38]> : tensor<3xf32>})
    -> (tensor<6xf32> {test.value = dense<[-1.5, -1.5, -1.32, 1.15, -0.38, -1.5]> : tensor<6xf32>, test.tolerance = 0.0}) {
  %y = nn.pad %x low = [2] high = [1] interior = [0] {value = -1.5} : tensor<3xf32> -> tensor<6xf32>
  return %y : tensor<6xf32>
}

func.func @between(%x: tensor<3x2xf32> {test.value = dense<[[-1.32, 1.15], [-0.38, -1.9], [0.57, -0.96]]> : tensor<3x2xf32>})
    -> (tensor<8x4xf32> {test.value = dense<[[0.0, -1.32, 0.0, 1.15], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, -0.38, 0.0, -1.9], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.57, 0.0, -0.96], [0.0, 0.0, 0.0, 0.0]]> : tensor<8x4xf32>, test.tolerance = 0.0}) {
  %y = nn.pad %x low = [0, 1] high = [1, 0] interior = [2, 1] : tensor<3x2xf32> -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

func.func @one(%x: tensor<1x1xf32> {test.value = dense<[[-1.32]]> : tensor<1x1xf32>})
    -> (tensor<3x4xf32> {test.value = dense<[[0.5, 0.5, 0.5, -1.32], [0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.5]]> : tensor<3x4xf32>, test.tolerance = 0.0}) {
  %y = nn.pad %x low = [0, 3] high = [2, 0] interior = [4, 0] {value = 0.5} : tensor<1x1xf32> -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

func.func @integers(%x: tensor<2x3xi64> {test.value = dense<[[0, 1, 2], [3, 4, 5]]> : tensor<2x3xi64>})
    -> (tensor<4x5xi64> {test.value = dense<[[7, 7, 7, 7, 7], [7, 0, 1, 2, 7], [7, 3, 4, 5, 7], [7, 7, 7, 7, 7]]> : tensor<4x5xi64>}) {
  %y = nn.pad %x low = [1, 1] high = [1, 1] interior = [0, 0] {value = 7.0} : tensor<2x3xi64> -> tensor<4x5xi64>
  return %y : tensor<4x5xi64>
}

func.func @brain(%x: tensor<5xbf16> {test.value = dense<[-1.3203125, 1.1484375, -0.38085938, -1.8984375, 0.5703125]> : tensor<5xbf16>})
    -> (tensor<11xbf16> {test.value = dense<[0.0, -1.3203125, 0.0, 1.1484375, 0.0, -0.38085938, 0.0, -1.8984375, 0.0, 0.5703125, 0.0]> : tensor<11xbf16>, test.tolerance = 0.0}) {
  %y = nn.pad %x low = [1] high = [1] interior = [1] : tensor<5xbf16> -> tensor<11xbf16>
  return %y : tensor<11xbf16>
}
