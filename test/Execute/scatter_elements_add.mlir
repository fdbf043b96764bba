// RUN: lowtide-execute %s
// NumPy's sums in f64 (Inputs/tensors.py); an index outside adds nothing.

func.func @last(%i: tensor<2x3xi64> {test.value = dense<[[4, 4, 0], [1, 1, 1]]> : tensor<2x3xi64>},
    %u: tensor<2x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96]]> : tensor<2x3xf32>})
    -> (tensor<2x5xf32> {test.value = dense<[[-0.38, 0.0, 0.0, 0.0, -0.17000008], [0.0, -2.29, 0.0, 0.0, 0.0]]> : tensor<2x5xf32>}) {
  %y = nn.scatter_elements_add [%i] %u axis = 1 : (tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<2x5xf32>
  return %y : tensor<2x5xf32>
}

func.func @first(%i: tensor<3x2xi32> {test.value = dense<[[0, 2], [0, 0], [3, 2]]> : tensor<3x2xi32>},
    %u: tensor<3x2xf32> {test.value = dense<[[-1.32, 1.15], [-0.38, -1.9], [0.57, -0.96]]> : tensor<3x2xf32>})
    -> (tensor<4x2xf32> {test.value = dense<[[-1.7, -1.9], [0.0, 0.0], [0.0, 0.19], [0.57, 0.0]]> : tensor<4x2xf32>}) {
  %y = nn.scatter_elements_add [%i] %u axis = 0 : (tensor<3x2xi32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

func.func @one(%i: tensor<1x1xi64> {test.value = dense<[[1]]> : tensor<1x1xi64>},
    %u: tensor<1x1xf32> {test.value = dense<[[-1.32]]> : tensor<1x1xf32>})
    -> (tensor<1x3xf32> {test.value = dense<[[0.0, -1.32, 0.0]]> : tensor<1x3xf32>}) {
  %y = nn.scatter_elements_add [%i] %u axis = 1 : (tensor<1x1xi64>, tensor<1x1xf32>) -> tensor<1x3xf32>
  return %y : tensor<1x3xf32>
}

func.func @outside(%i: tensor<4xi64> {test.value = dense<[2, -1, 3, 2]> : tensor<4xi64>},
    %u: tensor<4xf32> {test.value = dense<[-1.32, 1.15, -0.38, -1.9]> : tensor<4xf32>})
    -> (tensor<3xf32> {test.value = dense<[0.0, 0.0, -3.22]> : tensor<3xf32>}) {
  %y = nn.scatter_elements_add [%i] %u axis = 0 : (tensor<4xi64>, tensor<4xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

func.func @integers(%i: tensor<3xi64> {test.value = dense<[1, 1, 0]> : tensor<3xi64>},
    %u: tensor<3xi64> {test.value = dense<[0, 1, 2]> : tensor<3xi64>})
    -> (tensor<2xi64> {test.value = dense<[2, 1]> : tensor<2xi64>}) {
  %y = nn.scatter_elements_add [%i] %u axis = 0 : (tensor<3xi64>, tensor<3xi64>) -> tensor<2xi64>
  return %y : tensor<2xi64>
}
