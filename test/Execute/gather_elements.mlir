// RUN: lowtide-execute %s
// PyTorch's gather (Inputs/tensors.py); indices outside as the op's record says.

func.func @last(%x: tensor<3x5xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57], [-0.96, 1.51, -0.02, -1.54, 0.93], [-0.6, 1.87, 0.35, -1.18, 1.29]]> : tensor<3x5xf32>},
    %i: tensor<3x2xi64> {test.value = dense<[[4, 0], [1, 1], [2, 3]]> : tensor<3x2xi64>})
    -> (tensor<3x2xf32> {test.value = dense<[[0.57, -1.32], [1.51, 1.51], [0.35, -1.18]]> : tensor<3x2xf32>, test.tolerance = 0.0}) {
  %y = nn.gather_elements %x[%i] axis = 1 : (tensor<3x5xf32>, tensor<3x2xi64>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

func.func @first(%x: tensor<4x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96], [1.51, -0.02, -1.54], [0.93, -0.6, 1.87]]> : tensor<4x3xf32>},
    %i: tensor<2x3xi32> {test.value = dense<[[3, 0, 1], [0, 0, 2]]> : tensor<2x3xi32>})
    -> (tensor<2x3xf32> {test.value = dense<[[0.93, 1.15, -0.96], [-1.32, 1.15, -1.54]]> : tensor<2x3xf32>, test.tolerance = 0.0}) {
  %y = nn.gather_elements %x[%i] axis = 0 : (tensor<4x3xf32>, tensor<2x3xi32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

func.func @one(%x: tensor<1x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38]]> : tensor<1x3xf32>},
    %i: tensor<1x1xi64> {test.value = dense<[[2]]> : tensor<1x1xi64>})
    -> (tensor<1x1xf32> {test.value = dense<[[-0.38]]> : tensor<1x1xf32>, test.tolerance = 0.0}) {
  %y = nn.gather_elements %x[%i] axis = 1 : (tensor<1x3xf32>, tensor<1x1xi64>) -> tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}

func.func @integers(%x: tensor<5xi64> {test.value = dense<[0, 1, 2, 3, 4]> : tensor<5xi64>},
    %i: tensor<3xi64> {test.value = dense<[4, 4, 0]> : tensor<3xi64>})
    -> (tensor<3xi64> {test.value = dense<[4, 4, 0]> : tensor<3xi64>}) {
  %y = nn.gather_elements %x[%i] axis = 0 : (tensor<5xi64>, tensor<3xi64>) -> tensor<3xi64>
  return %y : tensor<3xi64>
}

func.func @outside(%x: tensor<3xf32> {test.value = dense<[-1.32, 1.15, -0.38]> : tensor<3xf32>},
    %i: tensor<3xi64> {test.value = dense<[3, -1, 1]> : tensor<3xi64>})
    -> (tensor<3xf32> {test.value = dense<[0x7FC00000, 0x7FC00000, 1.15]> : tensor<3xf32>, test.tolerance = 0.0}) {
  %y = nn.gather_elements %x[%i] axis = 0 : (tensor<3xf32>, tensor<3xi64>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}
