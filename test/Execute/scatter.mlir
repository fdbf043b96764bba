// RUN: lowtide-execute %s
// PyTorch's values (Inputs/tensors.py), one update after the other; an index outside changes nothing.

func.func @rows_max(%x: tensor<5x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96], [1.51, -0.02, -1.54], [0.93, -0.6, 1.87], [0.35, -1.18, 1.29]]> : tensor<5x3xf32>},
    %i: tensor<5xi64> {test.value = dense<[3, 0, 3, 3, 1]> : tensor<5xi64>},
    %u: tensor<5x3xf32> {test.value = dense<[[-1.24, 1.17, -0.32], [-1.81, 0.6, -0.89], [1.52, 0.04, -1.45], [0.96, -0.53, 1.88], [0.39, -1.1, 1.31]]> : tensor<5x3xf32>})
    -> (tensor<5x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [0.39, 0.57, 1.31], [1.51, -0.02, -1.54], [1.52, 1.17, 1.88], [0.35, -1.18, 1.29]]> : tensor<5x3xf32>, test.tolerance = 0.0}) {
  %y = nn.scatter max %u into %x[%i] axis = 0 : (tensor<5x3xf32>, tensor<5xi64>, tensor<5x3xf32>) -> tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}

func.func @rows_min(%x: tensor<5x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96], [1.51, -0.02, -1.54], [0.93, -0.6, 1.87], [0.35, -1.18, 1.29]]> : tensor<5x3xf32>},
    %i: tensor<5xi64> {test.value = dense<[3, 0, 3, 3, 1]> : tensor<5xi64>},
    %u: tensor<5x3xf32> {test.value = dense<[[-1.24, 1.17, -0.32], [-1.81, 0.6, -0.89], [1.52, 0.04, -1.45], [0.96, -0.53, 1.88], [0.39, -1.1, 1.31]]> : tensor<5x3xf32>})
    -> (tensor<5x3xf32> {test.value = dense<[[-1.81, 0.6, -0.89], [-1.9, -1.1, -0.96], [1.51, -0.02, -1.54], [-1.24, -0.6, -1.45], [0.35, -1.18, 1.29]]> : tensor<5x3xf32>, test.tolerance = 0.0}) {
  %y = nn.scatter min %u into %x[%i] axis = 0 : (tensor<5x3xf32>, tensor<5xi64>, tensor<5x3xf32>) -> tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}

func.func @rows_mul(%x: tensor<5x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96], [1.51, -0.02, -1.54], [0.93, -0.6, 1.87], [0.35, -1.18, 1.29]]> : tensor<5x3xf32>},
    %i: tensor<5xi64> {test.value = dense<[3, 0, 3, 3, 1]> : tensor<5xi64>},
    %u: tensor<5x3xf32> {test.value = dense<[[-1.24, 1.17, -0.32], [-1.81, 0.6, -0.89], [1.52, 0.04, -1.45], [0.96, -0.53, 1.88], [0.39, -1.1, 1.31]]> : tensor<5x3xf32>})
    -> (tensor<5x3xf32> {test.value = dense<[[2.3892, 0.69, 0.3382], [-0.74099994, -0.62700003, -1.2576], [1.51, -0.02, -1.54], [-1.6827494, 0.014882399, 1.6312385], [0.35, -1.18, 1.29]]> : tensor<5x3xf32>}) {
  %y = nn.scatter mul %u into %x[%i] axis = 0 : (tensor<5x3xf32>, tensor<5xi64>, tensor<5x3xf32>) -> tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}

func.func @rows_add(%x: tensor<5x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96], [1.51, -0.02, -1.54], [0.93, -0.6, 1.87], [0.35, -1.18, 1.29]]> : tensor<5x3xf32>},
    %i: tensor<5xi64> {test.value = dense<[3, 0, 3, 3, 1]> : tensor<5xi64>},
    %u: tensor<5x3xf32> {test.value = dense<[[-1.24, 1.17, -0.32], [-1.81, 0.6, -0.89], [1.52, 0.04, -1.45], [0.96, -0.53, 1.88], [0.39, -1.1, 1.31]]> : tensor<5x3xf32>})
    -> (tensor<5x3xf32> {test.value = dense<[[-3.13, 1.75, -1.27], [-1.51, -0.53, 0.35], [1.51, -0.02, -1.54], [2.17, 0.08, 1.98], [0.35, -1.18, 1.29]]> : tensor<5x3xf32>}) {
  %y = nn.scatter add %u into %x[%i] axis = 0 : (tensor<5x3xf32>, tensor<5xi64>, tensor<5x3xf32>) -> tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}

// Three terms of a sum, of which a CPU writes each over the one before it; an index outside adds nothing.
func.func @sum_of_scatters(%i: tensor<2xi64> {test.value = dense<[3, 1]> : tensor<2xi64>},
    %j: tensor<3xi64> {test.value = dense<[1, 1, 7]> : tensor<3xi64>},
    %u: tensor<2x2xf32> {test.value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>},
    %v: tensor<3x2xf32> {test.value = dense<[[0.5, 0.25], [8.0, 16.0], [32.0, 64.0]]> : tensor<3x2xf32>},
    %w: tensor<2xf32> {test.value = dense<[2.0, -1.0]> : tensor<2xf32>})
    -> (tensor<4x2xf32> {test.value = dense<[[0.0, 0.0], [8.5, 16.25], [0.0, 0.0], [3.0, 6.0]]> : tensor<4x2xf32>, test.tolerance = 0.0}) {
  %spread = nn.broadcast %w dims = [0] : tensor<2xf32> -> tensor<2x2xf32>
  %weighed = nn.mul %u, %spread : tensor<2x2xf32>
  %a = nn.scatter_add [%i] %u axis = 0 : (tensor<2xi64>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %b = nn.scatter_add [%j] %v axis = 0 : (tensor<3xi64>, tensor<3x2xf32>) -> tensor<4x2xf32>
  %c = nn.scatter_add [%i] %weighed axis = 0 : (tensor<2xi64>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %ab = nn.add %a, %b : tensor<4x2xf32>
  %y = nn.add %ab, %c : tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

func.func @rows_set(%x: tensor<5x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96], [1.51, -0.02, -1.54], [0.93, -0.6, 1.87], [0.35, -1.18, 1.29]]> : tensor<5x3xf32>},
    %i: tensor<5xi64> {test.value = dense<[3, 0, 3, 3, 1]> : tensor<5xi64>},
    %u: tensor<5x3xf32> {test.value = dense<[[-1.24, 1.17, -0.32], [-1.81, 0.6, -0.89], [1.52, 0.04, -1.45], [0.96, -0.53, 1.88], [0.39, -1.1, 1.31]]> : tensor<5x3xf32>})
    -> (tensor<5x3xf32> {test.value = dense<[[-1.81, 0.6, -0.89], [0.39, -1.1, 1.31], [1.51, -0.02, -1.54], [0.96, -0.53, 1.88], [0.35, -1.18, 1.29]]> : tensor<5x3xf32>, test.tolerance = 0.0}) {
  %y = nn.scatter set %u into %x[%i] axis = 0 : (tensor<5x3xf32>, tensor<5xi64>, tensor<5x3xf32>) -> tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}

func.func @two_index_dims(%x: tensor<3x3xf32> {test.value = dense<[[-8.83, -8.21, -8.59], [-8.98, -8.36, -8.74], [-8.12, -8.5, -8.89]]> : tensor<3x3xf32>},
    %i: tensor<2x2xi32> {test.value = dense<[[2, 0], [2, 2]]> : tensor<2x2xi32>},
    %u: tensor<2x2x3xf32> {test.value = dense<[[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96]], [[1.51, -0.02, -1.54], [0.93, -0.6, 1.87]]]> : tensor<2x2x3xf32>})
    -> (tensor<3x3xf32> {test.value = dense<[[-1.9, 0.57, -0.96], [-8.98, -8.36, -8.74], [1.51, 1.15, 1.87]]> : tensor<3x3xf32>, test.tolerance = 0.0}) {
  %y = nn.scatter max %u into %x[%i] axis = 0 : (tensor<3x3xf32>, tensor<2x2xi32>, tensor<2x2x3xf32>) -> tensor<3x3xf32>
  return %y : tensor<3x3xf32>
}

func.func @middle(%x: tensor<2x2x2xf32> {test.value = dense<[[[-1.32, 1.15], [-0.38, -1.9]], [[0.57, -0.96], [1.51, -0.02]]]> : tensor<2x2x2xf32>},
    %i: tensor<3xi64> {test.value = dense<[1, 1, 0]> : tensor<3xi64>},
    %u: tensor<2x3x2xf32> {test.value = dense<[[[-1.32, 1.15], [-0.38, -1.9], [0.57, -0.96]], [[1.51, -0.02], [-1.54, 0.93], [-0.6, 1.87]]]> : tensor<2x3x2xf32>})
    -> (tensor<2x2x2xf32> {test.value = dense<[[[-1.32, -0.96], [-1.32, -1.9]], [[-0.6, -0.96], [-1.54, -0.02]]]> : tensor<2x2x2xf32>, test.tolerance = 0.0}) {
  %y = nn.scatter min %u into %x[%i] axis = 1 : (tensor<2x2x2xf32>, tensor<3xi64>, tensor<2x3x2xf32>) -> tensor<2x2x2xf32>
  return %y : tensor<2x2x2xf32>
}

func.func @one(%x: tensor<1x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38]]> : tensor<1x3xf32>},
    %i: tensor<i64> {test.value = dense<0> : tensor<i64>},
    %u: tensor<3xf32> {test.value = dense<[-1.32, 1.15, -0.38]> : tensor<3xf32>})
    -> (tensor<1x3xf32> {test.value = dense<[[1.7424002, 1.3225, 0.1444]]> : tensor<1x3xf32>}) {
  %y = nn.scatter mul %u into %x[%i] axis = 0 : (tensor<1x3xf32>, tensor<i64>, tensor<3xf32>) -> tensor<1x3xf32>
  return %y : tensor<1x3xf32>
}

func.func @vector(%x: tensor<4xf32> {test.value = dense<[-6.83, -6.21, -6.59, -6.98]> : tensor<4xf32>},
    %i: tensor<5xi64> {test.value = dense<[3, 0, 3, 3, 1]> : tensor<5xi64>},
    %u: tensor<5xf32> {test.value = dense<[-1.32, 1.15, -0.38, -1.9, 0.57]> : tensor<5xf32>})
    -> (tensor<4xf32> {test.value = dense<[1.15, 0.57, -6.59, -0.38]> : tensor<4xf32>, test.tolerance = 0.0}) {
  %y = nn.scatter max %u into %x[%i] axis = 0 : (tensor<4xf32>, tensor<5xi64>, tensor<5xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

func.func @outside(%x: tensor<4x2xf32> {test.value = dense<[[-1.32, 1.15], [-0.38, -1.9], [0.57, -0.96], [1.51, -0.02]]> : tensor<4x2xf32>},
    %i: tensor<4xi64> {test.value = dense<[0, -1, 4, 2]> : tensor<4xi64>},
    %u: tensor<4x2xf32> {test.value = dense<[[2.83, 2.21], [2.59, 2.98], [2.36, 2.74], [2.12, 2.5]]> : tensor<4x2xf32>})
    -> (tensor<4x2xf32> {test.value = dense<[[2.83, 2.21], [-0.38, -1.9], [2.12, 2.5], [1.51, -0.02]]> : tensor<4x2xf32>, test.tolerance = 0.0}) {
  %y = nn.scatter set %u into %x[%i] axis = 0 : (tensor<4x2xf32>, tensor<4xi64>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

func.func @integers(%x: tensor<3xi64> {test.value = dense<[0, 1, 2]> : tensor<3xi64>},
    %i: tensor<3xi64> {test.value = dense<[1, 1, 0]> : tensor<3xi64>},
    %u: tensor<3xi64> {test.value = dense<[1099511627776, 5, -7]> : tensor<3xi64>})
    -> (tensor<3xi64> {test.value = dense<[-7, 1, 2]> : tensor<3xi64>}) {
  %y = nn.scatter min %u into %x[%i] axis = 0 : (tensor<3xi64>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  return %y : tensor<3xi64>
}

func.func @unsigned(%x: tensor<2xui8> {test.value = dense<[200, 3]> : tensor<2xui8>},
    %i: tensor<2xi64> {test.value = dense<[0, 1]> : tensor<2xi64>},
    %u: tensor<2xui8> {test.value = dense<[100, 250]> : tensor<2xui8>})
    -> (tensor<2xui8> {test.value = dense<[200, 250]> : tensor<2xui8>}) {
  %y = nn.scatter max %u into %x[%i] axis = 0 : (tensor<2xui8>, tensor<2xi64>, tensor<2xui8>) -> tensor<2xui8>
  return %y : tensor<2xui8>
}

func.func @nothing_is_a_number(%x: tensor<2x2xf32> {test.value = dense<[[-1.32, 1.15], [-0.38, -1.9]]> : tensor<2x2xf32>},
    %i: tensor<3xi64> {test.value = dense<[0, 1, 1]> : tensor<3xi64>},
    %u: tensor<3x2xf32> {test.value = dense<[[0x7FC00000, 1.0], [0.5, -1.0], [-2.0, 0x7F800000]]> : tensor<3x2xf32>})
    -> (tensor<2x2xf32> {test.value = dense<[[0x7FC00000, 1.15], [0.5, 0x7F800000]]> : tensor<2x2xf32>, test.tolerance = 0.0}) {
  %y = nn.scatter max %u into %x[%i] axis = 0 : (tensor<2x2xf32>, tensor<3xi64>, tensor<3x2xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

func.func @brain(%x: tensor<3x2xbf16> {test.value = dense<[[-1.3203125, 1.1484375], [-0.38085938, -1.8984375], [0.5703125, -0.9609375]]> : tensor<3x2xbf16>},
    %i: tensor<4xi64> {test.value = dense<[1, 0, 1, 1]> : tensor<4xi64>},
    %u: tensor<4x2xbf16> {test.value = dense<[[-1.3203125, 1.1484375], [-0.38085938, -1.8984375], [0.5703125, -0.9609375], [1.5078125, -0.020019531]]> : tensor<4x2xbf16>})
    -> (tensor<3x2xbf16> {test.value = dense<[[-0.38085938, 1.1484375], [1.5078125, 1.1484375], [0.5703125, -0.9609375]]> : tensor<3x2xbf16>, test.tolerance = 0.0}) {
  %y = nn.scatter max %u into %x[%i] axis = 0 : (tensor<3x2xbf16>, tensor<4xi64>, tensor<4x2xbf16>) -> tensor<3x2xbf16>
  return %y : tensor<3x2xbf16>
}

func.func @half(%x: tensor<3x2xf16> {test.value = dense<[[-1.32, 1.15], [-0.38, -1.9], [0.57, -0.96]]> : tensor<3x2xf16>},
    %i: tensor<4xi64> {test.value = dense<[1, 0, 1, 1]> : tensor<4xi64>},
    %u: tensor<4x2xf16> {test.value = dense<[[5.68, 8.15], [6.62, 5.1], [7.57, 6.04], [8.51, 6.98]]> : tensor<4x2xf16>})
    -> (tensor<3x2xf16> {test.value = dense<[[6.62, 5.1], [8.51, 6.98], [0.57, -0.96]]> : tensor<3x2xf16>, test.tolerance = 0.0}) {
  %y = nn.scatter set %u into %x[%i] axis = 0 : (tensor<3x2xf16>, tensor<4xi64>, tensor<4x2xf16>) -> tensor<3x2xf16>
  return %y : tensor<3x2xf16>
}
