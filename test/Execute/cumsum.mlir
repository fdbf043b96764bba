// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/tensors.py).

func.func @last(%x: tensor<3x7xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51], [-0.02, -1.54, 0.93, -0.6, 1.87, 0.35, -1.18], [1.29, -0.24, -1.77, 0.71, -0.82, 1.65, 0.12]]> : tensor<3x7xf32>})
    -> (tensor<3x7xf32> {test.value = dense<[[-1.32, -0.17000008, -0.5500001, -2.45, -1.8800001, -2.8400002, -1.33], [-0.02, -1.56, -0.62999994, -1.23, 0.64000005, 0.99, -0.18999992], [1.29, 1.05, -0.72, -0.010000035, -0.83000004, 0.81999993, 0.93999994]]> : tensor<3x7xf32>}) {
  %y = nn.cumsum %x dim = 1 : tensor<3x7xf32>
  return %y : tensor<3x7xf32>
}

func.func @first(%x: tensor<5x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96], [1.51, -0.02, -1.54], [0.93, -0.6, 1.87], [0.35, -1.18, 1.29]]> : tensor<5x3xf32>})
    -> (tensor<5x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-3.22, 1.72, -1.3399999], [-1.71, 1.6999999, -2.8799999], [-0.78000003, 1.0999999, -1.01], [-0.43000004, -0.08, 0.28000003]]> : tensor<5x3xf32>}) {
  %y = nn.cumsum %x dim = 0 : tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}

func.func @exclusive(%x: tensor<2x5xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57], [-0.96, 1.51, -0.02, -1.54, 0.93]]> : tensor<2x5xf32>})
    -> (tensor<2x5xf32> {test.value = dense<[[0.0, -1.32, -0.17000008, -0.5500001, -2.45], [0.0, -0.96, 0.55, 0.53000003, -1.01]]> : tensor<2x5xf32>}) {
  %y = nn.cumsum %x dim = 1 {exclusive} : tensor<2x5xf32>
  return %y : tensor<2x5xf32>
}

func.func @reverse(%x: tensor<2x5xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57], [-0.96, 1.51, -0.02, -1.54, 0.93]]> : tensor<2x5xf32>})
    -> (tensor<2x5xf32> {test.value = dense<[[-1.8800001, -0.56, -1.71, -1.3299999, 0.57], [-0.07999994, 0.88000005, -0.62999994, -0.60999995, 0.93]]> : tensor<2x5xf32>}) {
  %y = nn.cumsum %x dim = 1 {reverse} : tensor<2x5xf32>
  return %y : tensor<2x5xf32>
}

func.func @both(%x: tensor<9xf32> {test.value = dense<[-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51, -0.02, -1.54]> : tensor<9xf32>})
    -> (tensor<9xf32> {test.value = dense<[-1.5699999, -2.72, -2.34, -0.43999997, -1.01, -0.04999997, -1.56, -1.54, 0.0]> : tensor<9xf32>}) {
  %y = nn.cumsum %x dim = 0 {exclusive, reverse} : tensor<9xf32>
  return %y : tensor<9xf32>
}

func.func @one(%x: tensor<3x1x2xf32> {test.value = dense<[[[-1.32, 1.15]], [[-0.38, -1.9]], [[0.57, -0.96]]]> : tensor<3x1x2xf32>})
    -> (tensor<3x1x2xf32> {test.value = dense<[[[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]]]> : tensor<3x1x2xf32>}) {
  %y = nn.cumsum %x dim = 1 {exclusive} : tensor<3x1x2xf32>
  return %y : tensor<3x1x2xf32>
}

func.func @integers(%x: tensor<3x4xi64> {test.value = dense<[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]> : tensor<3x4xi64>})
    -> (tensor<3x4xi64> {test.value = dense<[[0, 1, 3, 6], [4, 9, 15, 22], [8, 17, 27, 38]]> : tensor<3x4xi64>}) {
  %y = nn.cumsum %x dim = 1 : tensor<3x4xi64>
  return %y : tensor<3x4xi64>
}
