// RUN: lowtide-execute %s
// NumPy's sums in f64 (Inputs/tensors.py); an index outside adds nothing.

func.func @rows(%i: tensor<5xi64> {test.value = dense<[3, 0, 3, 3, 1]> : tensor<5xi64>},
    %u: tensor<5x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96], [1.51, -0.02, -1.54], [0.93, -0.6, 1.87], [0.35, -1.18, 1.29]]> : tensor<5x3xf32>})
    -> (tensor<5x3xf32> {test.value = dense<[[-1.9, 0.57, -0.96], [0.35, -1.18, 1.29], [0.0, 0.0, 0.0], [1.1199999, 0.53, -0.049999952], [0.0, 0.0, 0.0]]> : tensor<5x3xf32>}) {
  %y = nn.scatter_add [%i] %u axis = 0 : (tensor<5xi64>, tensor<5x3xf32>) -> tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}

func.func @two_index_dims(%i: tensor<2x2xi32> {test.value = dense<[[2, 0], [2, 2]]> : tensor<2x2xi32>},
    %u: tensor<2x2x3xf32> {test.value = dense<[[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96]], [[1.51, -0.02, -1.54], [0.93, -0.6, 1.87]]]> : tensor<2x2x3xf32>})
    -> (tensor<3x3xf32> {test.value = dense<[[-1.9, 0.57, -0.96], [0.0, 0.0, 0.0], [1.1199999, 0.53, -0.049999952]]> : tensor<3x3xf32>}) {
  %y = nn.scatter_add [%i] %u axis = 0 : (tensor<2x2xi32>, tensor<2x2x3xf32>) -> tensor<3x3xf32>
  return %y : tensor<3x3xf32>
}

func.func @middle(%i: tensor<3xi64> {test.value = dense<[1, 1, 0]> : tensor<3xi64>},
    %u: tensor<2x3x2xf32> {test.value = dense<[[[-1.32, 1.15], [-0.38, -1.9], [0.57, -0.96]], [[1.51, -0.02], [-1.54, 0.93], [-0.6, 1.87]]]> : tensor<2x3x2xf32>})
    -> (tensor<2x2x2xf32> {test.value = dense<[[[0.57, -0.96], [-1.7, -0.75]], [[-0.6, 1.87], [-0.029999971, 0.91]]]> : tensor<2x2x2xf32>}) {
  %y = nn.scatter_add [%i] %u axis = 1 : (tensor<3xi64>, tensor<2x3x2xf32>) -> tensor<2x2x2xf32>
  return %y : tensor<2x2x2xf32>
}

func.func @one(%i: tensor<i64> {test.value = dense<0> : tensor<i64>},
    %u: tensor<3xf32> {test.value = dense<[-1.32, 1.15, -0.38]> : tensor<3xf32>})
    -> (tensor<1x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38]]> : tensor<1x3xf32>}) {
  %y = nn.scatter_add [%i] %u axis = 0 : (tensor<i64>, tensor<3xf32>) -> tensor<1x3xf32>
  return %y : tensor<1x3xf32>
}

func.func @outside(%i: tensor<4xi64> {test.value = dense<[0, -1, 4, 2]> : tensor<4xi64>},
    %u: tensor<4x2xf32> {test.value = dense<[[-1.32, 1.15], [-0.38, -1.9], [0.57, -0.96], [1.51, -0.02]]> : tensor<4x2xf32>})
    -> (tensor<4x2xf32> {test.value = dense<[[-1.32, 1.15], [0.0, 0.0], [1.51, -0.02], [0.0, 0.0]]> : tensor<4x2xf32>}) {
  %y = nn.scatter_add [%i] %u axis = 0 : (tensor<4xi64>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

func.func @integers(%i: tensor<3xi64> {test.value = dense<[1, 1, 0]> : tensor<3xi64>},
    %u: tensor<3xi64> {test.value = dense<[1099511627776, 5, -7]> : tensor<3xi64>})
    -> (tensor<3xi64> {test.value = dense<[-7, 1099511627781, 0]> : tensor<3xi64>}) {
  %y = nn.scatter_add [%i] %u axis = 0 : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  return %y : tensor<3xi64>
}

func.func @brain(%i: tensor<4xi64> {test.value = dense<[1, 0, 1, 1]> : tensor<4xi64>},
    %u: tensor<4xbf16> {test.value = dense<[-1.3203125, 1.1484375, -0.38085938, -1.8984375]> : tensor<4xbf16>})
    -> (tensor<2xbf16> {test.value = dense<[1.1484375, -3.59375]> : tensor<2xbf16>, test.tolerance = 0.0}) {
  %y = nn.scatter_add [%i] %u axis = 0 : (tensor<4xi64>, tensor<4xbf16>) -> tensor<2xbf16>
  return %y : tensor<2xbf16>
}
