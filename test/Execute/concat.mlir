// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/tensors.py).

func.func @last(%x0: tensor<3x2xf32> {test.value = dense<[[-1.32, 1.15], [-0.38, -1.9], [0.57, -0.96]]> : tensor<3x2xf32>},
    %x1: tensor<3x5xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57], [-0.96, 1.51, -0.02, -1.54, 0.93], [-0.6, 1.87, 0.35, -1.18, 1.29]]> : tensor<3x5xf32>},
    %x2: tensor<3x1xf32> {test.value = dense<[[-1.32], [1.15], [-0.38]]> : tensor<3x1xf32>})
    -> (tensor<3x8xf32> {test.value = dense<[[-1.32, 1.15, -1.32, 1.15, -0.38, -1.9, 0.57, -1.32], [-0.38, -1.9, -0.96, 1.51, -0.02, -1.54, 0.93, 1.15], [0.57, -0.96, -0.6, 1.87, 0.35, -1.18, 1.29, -0.38]]> : tensor<3x8xf32>, test.tolerance = 0.0}) {
  %y = nn.concat %x0, %x1, %x2 dim = 1 : (tensor<3x2xf32>, tensor<3x5xf32>, tensor<3x1xf32>) -> tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}

func.func @first(%x0: tensor<1x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38]]> : tensor<1x3xf32>},
    %x1: tensor<4x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96], [1.51, -0.02, -1.54], [0.93, -0.6, 1.87]]> : tensor<4x3xf32>})
    -> (tensor<5x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96], [1.51, -0.02, -1.54], [0.93, -0.6, 1.87]]> : tensor<5x3xf32>, test.tolerance = 0.0}) {
  %y = nn.concat %x0, %x1 dim = 0 : (tensor<1x3xf32>, tensor<4x3xf32>) -> tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}

func.func @middle(%x0: tensor<2x1x3xf32> {test.value = dense<[[[-1.32, 1.15, -0.38]], [[-1.9, 0.57, -0.96]]]> : tensor<2x1x3xf32>},
    %x1: tensor<2x2x3xf32> {test.value = dense<[[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96]], [[1.51, -0.02, -1.54], [0.93, -0.6, 1.87]]]> : tensor<2x2x3xf32>})
    -> (tensor<2x3x3xf32> {test.value = dense<[[[-1.32, 1.15, -0.38], [-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96]], [[-1.9, 0.57, -0.96], [1.51, -0.02, -1.54], [0.93, -0.6, 1.87]]]> : tensor<2x3x3xf32>, test.tolerance = 0.0}) {
  %y = nn.concat %x0, %x1 dim = 1 : (tensor<2x1x3xf32>, tensor<2x2x3xf32>) -> tensor<2x3x3xf32>
  return %y : tensor<2x3x3xf32>
}

func.func @alone(%x0: tensor<5xf32> {test.value = dense<[-1.32, 1.15, -0.38, -1.9, 0.57]> : tensor<5xf32>})
    -> (tensor<5xf32> {test.value = dense<[-1.32, 1.15, -0.38, -1.9, 0.57]> : tensor<5xf32>, test.tolerance = 0.0}) {
  %y = nn.concat %x0 dim = 0 : (tensor<5xf32>) -> tensor<5xf32>
  return %y : tensor<5xf32>
}

func.func @integers(%x0: tensor<2xi64> {test.value = dense<[0, 1]> : tensor<2xi64>},
    %x1: tensor<3xi64> {test.value = dense<[0, 1, 2]> : tensor<3xi64>})
    -> (tensor<5xi64> {test.value = dense<[0, 1, 0, 1, 2]> : tensor<5xi64>}) {
  %y = nn.concat %x0, %x1 dim = 0 : (tensor<2xi64>, tensor<3xi64>) -> tensor<5xi64>
  return %y : tensor<5xi64>
}

func.func @logic(%x0: tensor<2x1xi1> {test.value = dense<[[true], [false]]> : tensor<2x1xi1>},
    %x1: tensor<2x3xi1> {test.value = dense<[[true, false, false], [true, false, true]]> : tensor<2x3xi1>})
    -> (tensor<2x4xi1> {test.value = dense<[[true, true, false, false], [false, true, false, true]]> : tensor<2x4xi1>}) {
  %y = nn.concat %x0, %x1 dim = 1 : (tensor<2x1xi1>, tensor<2x3xi1>) -> tensor<2x4xi1>
  return %y : tensor<2x4xi1>
}
