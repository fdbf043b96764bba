// RUN: lowtide-execute %s
// PyTorch's values (Inputs/tensors.py), one update after the other; an index outside changes nothing.

func.func @last_max(%x: tensor<2x5xf32> {test.value = dense<[[-0.66, 0.58, -0.19, -0.95, 0.28], [-0.48, 0.76, -0.01, -0.77, 0.46]]> : tensor<2x5xf32>},
    %i: tensor<2x3xi64> {test.value = dense<[[4, 4, 0], [1, 1, 1]]> : tensor<2x3xi64>},
    %u: tensor<2x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96]]> : tensor<2x3xf32>})
    -> (tensor<2x5xf32> {test.value = dense<[[-0.38, 0.58, -0.19, -0.95, 1.15], [-0.48, 0.76, -0.01, -0.77, 0.46]]> : tensor<2x5xf32>, test.tolerance = 0.0}) {
  %y = nn.scatter_elements max %u into %x[%i] axis = 1 : (tensor<2x5xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<2x5xf32>
  return %y : tensor<2x5xf32>
}

func.func @last_add(%x: tensor<2x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [0.57, -0.96, 1.51]]> : tensor<2x3xf32>},
    %i: tensor<2x3xi64> {test.value = dense<[[2, 0, 2], [1, 7, 1]]> : tensor<2x3xi64>},
    %u: tensor<2x3xf32> {test.value = dense<[[1.0, 2.5, -0.25], [0.75, 9.0, -1.5]]> : tensor<2x3xf32>})
    -> (tensor<2x3xf32> {test.value = dense<[[1.18, 1.15, 0.37], [0.57, -1.71, 1.51]]> : tensor<2x3xf32>}) {
  %y = nn.scatter_elements add %u into %x[%i] axis = 1 : (tensor<2x3xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

func.func @last_min(%x: tensor<2x5xf32> {test.value = dense<[[-0.66, 0.58, -0.19, -0.95, 0.28], [-0.48, 0.76, -0.01, -0.77, 0.46]]> : tensor<2x5xf32>},
    %i: tensor<2x3xi64> {test.value = dense<[[4, 4, 0], [1, 1, 1]]> : tensor<2x3xi64>},
    %u: tensor<2x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96]]> : tensor<2x3xf32>})
    -> (tensor<2x5xf32> {test.value = dense<[[-0.66, 0.58, -0.19, -0.95, -1.32], [-0.48, -1.9, -0.01, -0.77, 0.46]]> : tensor<2x5xf32>, test.tolerance = 0.0}) {
  %y = nn.scatter_elements min %u into %x[%i] axis = 1 : (tensor<2x5xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<2x5xf32>
  return %y : tensor<2x5xf32>
}

func.func @last_mul(%x: tensor<2x5xf32> {test.value = dense<[[-0.66, 0.58, -0.19, -0.95, 0.28], [-0.48, 0.76, -0.01, -0.77, 0.46]]> : tensor<2x5xf32>},
    %i: tensor<2x3xi64> {test.value = dense<[[4, 4, 0], [1, 1, 1]]> : tensor<2x3xi64>},
    %u: tensor<2x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96]]> : tensor<2x3xf32>})
    -> (tensor<2x5xf32> {test.value = dense<[[0.2508, 0.58, -0.19, -0.95, -0.42504], [-0.48, 0.7901568, -0.01, -0.77, 0.46]]> : tensor<2x5xf32>}) {
  %y = nn.scatter_elements mul %u into %x[%i] axis = 1 : (tensor<2x5xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<2x5xf32>
  return %y : tensor<2x5xf32>
}

func.func @last_set(%x: tensor<2x5xf32> {test.value = dense<[[-0.66, 0.58, -0.19, -0.95, 0.28], [-0.48, 0.76, -0.01, -0.77, 0.46]]> : tensor<2x5xf32>},
    %i: tensor<2x3xi64> {test.value = dense<[[4, 4, 0], [1, 1, 1]]> : tensor<2x3xi64>},
    %u: tensor<2x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96]]> : tensor<2x3xf32>})
    -> (tensor<2x5xf32> {test.value = dense<[[-0.38, 0.58, -0.19, -0.95, 1.15], [-0.48, -0.96, -0.01, -0.77, 0.46]]> : tensor<2x5xf32>, test.tolerance = 0.0}) {
  %y = nn.scatter_elements set %u into %x[%i] axis = 1 : (tensor<2x5xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<2x5xf32>
  return %y : tensor<2x5xf32>
}

func.func @first(%x: tensor<4x2xf32> {test.value = dense<[[-1.32, 1.15], [-0.38, -1.9], [0.57, -0.96], [1.51, -0.02]]> : tensor<4x2xf32>},
    %i: tensor<3x2xi32> {test.value = dense<[[0, 2], [0, 0], [3, 2]]> : tensor<3x2xi32>},
    %u: tensor<3x2xf32> {test.value = dense<[[-1.32, 1.15], [-0.38, -1.9], [0.57, -0.96]]> : tensor<3x2xf32>})
    -> (tensor<4x2xf32> {test.value = dense<[[-0.38, 1.15], [-0.38, -1.9], [0.57, 1.15], [1.51, -0.02]]> : tensor<4x2xf32>, test.tolerance = 0.0}) {
  %y = nn.scatter_elements max %u into %x[%i] axis = 0 : (tensor<4x2xf32>, tensor<3x2xi32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

func.func @one(%x: tensor<1x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38]]> : tensor<1x3xf32>},
    %i: tensor<1x1xi64> {test.value = dense<[[1]]> : tensor<1x1xi64>},
    %u: tensor<1x1xf32> {test.value = dense<[[-1.32]]> : tensor<1x1xf32>})
    -> (tensor<1x3xf32> {test.value = dense<[[-1.32, -1.32, -0.38]]> : tensor<1x3xf32>, test.tolerance = 0.0}) {
  %y = nn.scatter_elements min %u into %x[%i] axis = 1 : (tensor<1x3xf32>, tensor<1x1xi64>, tensor<1x1xf32>) -> tensor<1x3xf32>
  return %y : tensor<1x3xf32>
}

func.func @outside(%x: tensor<3xf32> {test.value = dense<[-5.83, -5.21, -5.59]> : tensor<3xf32>},
    %i: tensor<4xi64> {test.value = dense<[2, -1, 3, 2]> : tensor<4xi64>},
    %u: tensor<4xf32> {test.value = dense<[-1.32, 1.15, -0.38, -1.9]> : tensor<4xf32>})
    -> (tensor<3xf32> {test.value = dense<[-5.83, -5.21, -1.32]> : tensor<3xf32>, test.tolerance = 0.0}) {
  %y = nn.scatter_elements max %u into %x[%i] axis = 0 : (tensor<3xf32>, tensor<4xi64>, tensor<4xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

func.func @integers(%x: tensor<2xi64> {test.value = dense<[0, 1]> : tensor<2xi64>},
    %i: tensor<3xi64> {test.value = dense<[1, 1, 0]> : tensor<3xi64>},
    %u: tensor<3xi64> {test.value = dense<[0, 1, 2]> : tensor<3xi64>})
    -> (tensor<2xi64> {test.value = dense<[0, 0]> : tensor<2xi64>}) {
  %y = nn.scatter_elements mul %u into %x[%i] axis = 0 : (tensor<2xi64>, tensor<3xi64>, tensor<3xi64>) -> tensor<2xi64>
  return %y : tensor<2xi64>
}

func.func @brain(%x: tensor<2x3xbf16> {test.value = dense<[[-1.3203125, 1.1484375, -0.38085938], [-1.8984375, 0.5703125, -0.9609375]]> : tensor<2x3xbf16>},
    %i: tensor<2x3xi64> {test.value = dense<[[2, 2, 0], [1, 1, 1]]> : tensor<2x3xi64>},
    %u: tensor<2x3xbf16> {test.value = dense<[[-1.3203125, 1.1484375, -0.38085938], [-1.8984375, 0.5703125, -0.9609375]]> : tensor<2x3xbf16>})
    -> (tensor<2x3xbf16> {test.value = dense<[[-1.3203125, 1.1484375, -1.3203125], [-1.8984375, -1.8984375, -0.9609375]]> : tensor<2x3xbf16>, test.tolerance = 0.0}) {
  %y = nn.scatter_elements min %u into %x[%i] axis = 1 : (tensor<2x3xbf16>, tensor<2x3xi64>, tensor<2x3xbf16>) -> tensor<2x3xbf16>
  return %y : tensor<2x3xbf16>
}
