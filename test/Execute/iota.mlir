// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/tensors.py).

func.func @columns()
    -> (tensor<3x5xi64> {test.value = dense<[[0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]> : tensor<3x5xi64>}) {
  %y = nn.iota dim = 1 : tensor<3x5xi64>
  return %y : tensor<3x5xi64>
}

func.func @rows()
    -> (tensor<3x5xi32> {test.value = dense<[[0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [2, 2, 2, 2, 2]]> : tensor<3x5xi32>}) {
  %y = nn.iota dim = 0 : tensor<3x5xi32>
  return %y : tensor<3x5xi32>
}

func.func @floats()
    -> (tensor<2x9x1xf32> {test.value = dense<[[[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0]], [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0]]]> : tensor<2x9x1xf32>, test.tolerance = 0.0}) {
  %y = nn.iota dim = 1 : tensor<2x9x1xf32>
  return %y : tensor<2x9x1xf32>
}

func.func @one()
    -> (tensor<1xi64> {test.value = dense<[0]> : tensor<1xi64>}) {
  %y = nn.iota dim = 0 : tensor<1xi64>
  return %y : tensor<1xi64>
}

func.func @brain()
    -> (tensor<7xbf16> {test.value = dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<7xbf16>, test.tolerance = 0.0}) {
  %y = nn.iota dim = 0 : tensor<7xbf16>
  return %y : tensor<7xbf16>
}
