// RUN: lowtide-execute %s
// NumPy's take (Inputs/tensors.py); indices outside as the op's record says.

func.func @rows(%x: tensor<4x5xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57], [-0.96, 1.51, -0.02, -1.54, 0.93], [-0.6, 1.87, 0.35, -1.18, 1.29], [-0.24, -1.77, 0.71, -0.82, 1.65]]> : tensor<4x5xf32>},
    %i: tensor<2x3xi64> {test.value = dense<[[3, 0, 3], [1, 2, 0]]> : tensor<2x3xi64>})
    -> (tensor<2x3x5xf32> {test.value = dense<[[[-0.24, -1.77, 0.71, -0.82, 1.65], [-1.32, 1.15, -0.38, -1.9, 0.57], [-0.24, -1.77, 0.71, -0.82, 1.65]], [[-0.96, 1.51, -0.02, -1.54, 0.93], [-0.6, 1.87, 0.35, -1.18, 1.29], [-1.32, 1.15, -0.38, -1.9, 0.57]]]> : tensor<2x3x5xf32>, test.tolerance = 0.0}) {
  %y = nn.gather %x[%i] axis = 0 : (tensor<4x5xf32>, tensor<2x3xi64>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

func.func @columns(%x: tensor<3x4xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9], [0.57, -0.96, 1.51, -0.02], [-1.54, 0.93, -0.6, 1.87]]> : tensor<3x4xf32>},
    %i: tensor<2x3xi64> {test.value = dense<[[3, 0, 3], [1, 2, 0]]> : tensor<2x3xi64>})
    -> (tensor<3x2x3xf32> {test.value = dense<[[[-1.9, -1.32, -1.9], [1.15, -0.38, -1.32]], [[-0.02, 0.57, -0.02], [-0.96, 1.51, 0.57]], [[1.87, -1.54, 1.87], [0.93, -0.6, -1.54]]]> : tensor<3x2x3xf32>, test.tolerance = 0.0}) {
  %y = nn.gather %x[%i] axis = 1 : (tensor<3x4xf32>, tensor<2x3xi64>) -> tensor<3x2x3xf32>
  return %y : tensor<3x2x3xf32>
}

func.func @middle(%x: tensor<2x4x3xf32> {test.value = dense<[[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96], [1.51, -0.02, -1.54], [0.93, -0.6, 1.87]], [[0.35, -1.18, 1.29], [-0.24, -1.77, 0.71], [-0.82, 1.65, 0.12], [-1.41, 1.07, -0.46]]]> : tensor<2x4x3xf32>},
    %i: tensor<3xi32> {test.value = dense<[2, 2, 0]> : tensor<3xi32>})
    -> (tensor<2x3x3xf32> {test.value = dense<[[[1.51, -0.02, -1.54], [1.51, -0.02, -1.54], [-1.32, 1.15, -0.38]], [[-0.82, 1.65, 0.12], [-0.82, 1.65, 0.12], [0.35, -1.18, 1.29]]]> : tensor<2x3x3xf32>, test.tolerance = 0.0}) {
  %y = nn.gather %x[%i] axis = 1 : (tensor<2x4x3xf32>, tensor<3xi32>) -> tensor<2x3x3xf32>
  return %y : tensor<2x3x3xf32>
}

func.func @scalar_index(%x: tensor<4x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96], [1.51, -0.02, -1.54], [0.93, -0.6, 1.87]]> : tensor<4x3xf32>},
    %i: tensor<i64> {test.value = dense<1> : tensor<i64>})
    -> (tensor<3xf32> {test.value = dense<[-1.9, 0.57, -0.96]> : tensor<3xf32>, test.tolerance = 0.0}) {
  %y = nn.gather %x[%i] axis = 0 : (tensor<4x3xf32>, tensor<i64>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

func.func @one_row(%x: tensor<1x7xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51]]> : tensor<1x7xf32>},
    %i: tensor<2xi64> {test.value = dense<[0, 0]> : tensor<2xi64>})
    -> (tensor<2x7xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51], [-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51]]> : tensor<2x7xf32>, test.tolerance = 0.0}) {
  %y = nn.gather %x[%i] axis = 0 : (tensor<1x7xf32>, tensor<2xi64>) -> tensor<2x7xf32>
  return %y : tensor<2x7xf32>
}

func.func @integers(%x: tensor<4x2xi64> {test.value = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>},
    %i: tensor<2x3xi64> {test.value = dense<[[3, 0, 3], [1, 2, 0]]> : tensor<2x3xi64>})
    -> (tensor<2x3x2xi64> {test.value = dense<[[[6, 7], [0, 1], [6, 7]], [[2, 3], [4, 5], [0, 1]]]> : tensor<2x3x2xi64>}) {
  %y = nn.gather %x[%i] axis = 0 : (tensor<4x2xi64>, tensor<2x3xi64>) -> tensor<2x3x2xi64>
  return %y : tensor<2x3x2xi64>
}

func.func @outside(%x: tensor<3x2xf32> {test.value = dense<[[-1.32, 1.15], [-0.38, -1.9], [0.57, -0.96]]> : tensor<3x2xf32>},
    %i: tensor<5xi64> {test.value = dense<[0, -1, 3, 2, 1099511627776]> : tensor<5xi64>})
    -> (tensor<5x2xf32> {test.value = dense<[[-1.32, 1.15], [0x7FC00000, 0x7FC00000], [0x7FC00000, 0x7FC00000], [0.57, -0.96], [0x7FC00000, 0x7FC00000]]> : tensor<5x2xf32>, test.tolerance = 0.0}) {
  %y = nn.gather %x[%i] axis = 0 : (tensor<3x2xf32>, tensor<5xi64>) -> tensor<5x2xf32>
  return %y : tensor<5x2xf32>
}

func.func @outside_integers(%x: tensor<3xi64> {test.value = dense<[0, 1, 2]> : tensor<3xi64>},
    %i: tensor<3xi64> {test.value = dense<[2, 3, -1]> : tensor<3xi64>})
    -> (tensor<3xi64> {test.value = dense<[2, 0, 0]> : tensor<3xi64>}) {
  %y = nn.gather %x[%i] axis = 0 : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  return %y : tensor<3xi64>
}
