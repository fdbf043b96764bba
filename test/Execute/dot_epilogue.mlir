// RUN: lowtide-execute %s
// PyTorch's values in f64: linear layers, their activations, and autograd's derivative of gelu.

func.func @bias(%a: tensor<3x5xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57], [-0.96, 1.51, -0.02, -1.54, 0.93], [-0.6, 1.87, 0.35, -1.18, 1.29]]> : tensor<3x5xf32>},
    %b: tensor<5x4xf32> {test.value = dense<[[-0.82, 1.65, 0.12, -1.41], [1.07, -0.46, -1.99, 0.48], [-1.04, 1.43, -0.1, -1.63], [0.84, -0.68, -1.32, 1.15], [-0.38, -1.9, 0.57, -0.96]]> : tensor<5x4xf32>},
    %c: tensor<4xf32> {test.value = dense<[0.93, -0.6, 1.87, 0.35]> : tensor<4xf32>})
    -> (tensor<3x4xf32> {test.value = dense<[[1.8255, -3.6414, 2.294, 0.6504], [1.7067, -3.627, 1.3148, -0.2028], [1.5775, -3.5983, 0.3346, -1.0723]]> : tensor<3x4xf32>}) {
  %y0 = nn.dot_epilogue "none" %a, %b addend %c : (tensor<3x5xf32>, tensor<5x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  return %y0 : tensor<3x4xf32>
}

func.func @sum(%a: tensor<5x3xf32> {test.value = dense<[[-1.77, 0.71, -0.82], [1.65, 0.12, -1.41], [1.07, -0.46, -1.99], [0.48, -1.04, 1.43], [-0.1, -1.63, 0.84]]> : tensor<5x3xf32>},
    %b: tensor<4x5xf32> {test.value = dense<[[-0.38, -1.9, 0.57, -0.96, 1.51], [-0.02, -1.54, 0.93, -0.6, 1.87], [0.35, -1.18, 1.29, -0.24, -1.77], [0.71, -0.82, 1.65, 0.12, -1.41]]> : tensor<4x5xf32>},
    %c: tensor<3x4xf32> {test.value = dense<[[0.48, -1.04, 1.43, -0.1], [-1.63, 0.84, -0.68, -1.32], [1.15, -0.38, -1.9, 0.57]]> : tensor<3x4xf32>})
    -> (tensor<3x4xf32> {test.value = dense<[[-1.9843, -3.0255, 0.3056, -0.7456], [-3.8529, -2.2109, 1.9682, 0.5002], [2.9019, 0.6699, -4.9203, -3.1523]]> : tensor<3x4xf32>}) {
  %y0 = nn.dot_epilogue "none" %a, %b addend %c {transpose_a, transpose_b} : (tensor<5x3xf32>, tensor<4x5xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return %y0 : tensor<3x4xf32>
}

func.func @relu(%a: tensor<3x5xf32> {test.value = dense<[[-1.54, 0.93, -0.6, 1.87, 0.35], [-1.18, 1.29, -0.24, -1.77, 0.71], [-0.82, 1.65, 0.12, -1.41, 1.07]]> : tensor<3x5xf32>},
    %b: tensor<5x4xf32> {test.value = dense<[[-1.04, 1.43, -0.1, -1.63], [0.84, -0.68, -1.32, 1.15], [-0.38, -1.9, 0.57, -0.96], [1.51, -0.02, -1.54, 0.93], [-0.6, 1.87, 0.35, -1.18]]> : tensor<5x4xf32>},
    %c: tensor<4xf32> {test.value = dense<[0.71, -0.82, 1.65, 0.12]> : tensor<4xf32>})
    -> (tensor<3x4xf32> {test.value = dense<[[5.9345, 0.0, 0.0, 5.6018], [0.0133, 0.0, 2.9027, 1.2734], [0.1321, 0.0, 2.1683, 0.665]]> : tensor<3x4xf32>}) {
  %y0 = nn.dot_epilogue "relu" %a, %b addend %c : (tensor<3x5xf32>, tensor<5x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  return %y0 : tensor<3x4xf32>
}

func.func @gelu(%a: tensor<3x5xf32> {test.value = dense<[[-1.99, 0.48, -1.04, 1.43, -0.1], [-1.63, 0.84, -0.68, -1.32, 1.15], [-0.38, -1.9, 0.57, -0.96, 1.51]]> : tensor<3x5xf32>},
    %b: tensor<5x4xf32> {test.value = dense<[[-0.6, 1.87, 0.35, -1.18], [1.29, -0.24, -1.77, 0.71], [-0.82, 1.65, 0.12, -1.41], [1.07, -0.46, -1.99, 0.48], [-1.04, 1.43, -0.1, -1.63]]> : tensor<5x4xf32>},
    %c: tensor<4xf32> {test.value = dense<[1.15, -0.38, -1.9, 0.57]> : tensor<4xf32>})
    -> (tensor<3x4xf32> {test.value = dense<[[5.4501, -5.0459387e-14, -1.6515817e-12, 5.5748], [1.0179783, -0.015084266, -0.096979775, 1.4452152], [-3.5750535e-05, 2.9019353, 3.1556382, -5.3522325e-05]]> : tensor<3x4xf32>},
        tensor<3x4xf32> {test.value = dense<[[5.4501, -6.7333, -6.4066, 5.5748], [1.1608, -2.5, -1.5271, 1.5405], [-4.138, 2.9068, 3.1578, -4.0564]]> : tensor<3x4xf32>}) {
  %y0, %y1 = nn.dot_epilogue "gelu" %a, %b addend %c : (tensor<3x5xf32>, tensor<5x4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>)
  return %y0, %y1 : tensor<3x4xf32>, tensor<3x4xf32>
}

func.func @derivative(%a: tensor<3x5xf32> {test.value = dense<[[-1.54, 0.93, -0.6, 1.87, 0.35], [-1.18, 1.29, -0.24, -1.77, 0.71], [-0.82, 1.65, 0.12, -1.41, 1.07]]> : tensor<3x5xf32>},
    %b: tensor<4x5xf32> {test.value = dense<[[-1.04, 1.43, -0.1, -1.63, 0.84], [-0.68, -1.32, 1.15, -0.38, -1.9], [0.57, -0.96, 1.51, -0.02, -1.54], [0.93, -0.6, 1.87, 0.35, -1.18]]> : tensor<4x5xf32>},
    %x: tensor<3x4xf32> {test.value = dense<[[0.71, -0.82, 1.65, 0.12], [-1.41, 1.07, -0.46, -1.99], [0.48, -1.04, 1.43, -0.1]]> : tensor<3x4xf32>})
    -> (tensor<3x4xf32> {test.value = dense<[[0.23289593, 0.061312305, -3.6426449, -1.708887], [-0.84834102, -2.0347006, -0.52559647, 0.32931357], [5.4693203, 0.27435579, -3.9398663, -1.3809766]]> : tensor<3x4xf32>},
        tensor<4xf32> {test.value = dense<[4.8538752, -1.6990325, -8.1081077, -2.76055]> : tensor<4xf32>}) {
  %y0, %y1 = nn.dot_epilogue "dgelu" %a, %b input %x {transpose_b} : (tensor<3x5xf32>, tensor<4x5xf32>, tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<4xf32>)
  return %y0, %y1 : tensor<3x4xf32>, tensor<4xf32>
}

// PyTorch's ReLU, and which of its elements pass a gradient on, packed by NumPy.
func.func @relu_bits(%a: tensor<3x5xf32> {test.value = dense<[[-1.47, -1.1, -0.73, -0.36, 0.01], [0.38, 0.75, 1.12, 1.49, 1.86], [-1.77, -1.4, -1.03, -0.66, -0.29]]> : tensor<3x5xf32>},
    %b: tensor<5x10xf32> {test.value = dense<[[-0.94, -0.57, -0.2, 0.17, 0.54, 0.91, 1.28, 1.65, -1.98, -1.61], [-1.24, -0.87, -0.5, -0.13, 0.24, 0.61, 0.98, 1.35, 1.72, -1.91], [-1.54, -1.17, -0.8, -0.43, -0.06, 0.31, 0.68, 1.05, 1.42, 1.79], [-1.84, -1.47, -1.1, -0.73, -0.36, 0.01, 0.38, 0.75, 1.12, 1.49], [1.86, -1.77, -1.4, -1.03, -0.66, -0.29, 0.08, 0.45, 0.82, 1.19]]> : tensor<5x10xf32>},
    %c: tensor<10xf32> {test.value = dense<[-0.41, -0.04, 0.33, 0.7, 1.07, 1.44, 1.81, -1.82, -1.45, -1.08]> : tensor<10xf32>})
    -> (tensor<3x10xf32> {test.value = dense<[[4.141, 3.1205, 2.14, 1.1595, 0.179, 0.0, 0.0, 0.0, 0.0, 1.5565], [0.0, 0.0, 0.0, 0.0, 0.0, 2.066, 4.508, 2.95, 3.872, 3.314], [5.251, 4.8755, 3.34, 1.8045, 0.269, 0.0, 0.0, 0.0, 0.0, 1.2715]]> : tensor<3x10xf32>},
        tensor<3x16xui8> {test.value = dense<[[31, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [224, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [31, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]> : tensor<3x16xui8>}) {
  %y0, %y1 = nn.dot_epilogue "relu" %a, %b addend %c : (tensor<3x5xf32>, tensor<5x10xf32>, tensor<10xf32>) -> (tensor<3x10xf32>, tensor<3x16xui8>)
  return %y0, %y1 : tensor<3x10xf32>, tensor<3x16xui8>
}

func.func @relu_derivative(%a: tensor<3x5xf32> {test.value = dense<[[1.18, 1.55, 1.92, -1.71, -1.34], [-0.97, -0.6, -0.23, 0.14, 0.51], [0.88, 1.25, 1.62, 1.99, -1.64]]> : tensor<3x5xf32>},
    %b: tensor<10x5xf32> {test.value = dense<[[1.71, -1.92, -1.55, -1.18, -0.81], [-0.44, -0.07, 0.3, 0.67, 1.04], [1.41, 1.78, -1.85, -1.48, -1.11], [-0.74, -0.37, 0.0, 0.37, 0.74], [1.11, 1.48, 1.85, -1.78, -1.41], [-1.04, -0.67, -0.3, 0.07, 0.44], [0.81, 1.18, 1.55, 1.92, -1.71], [-1.34, -0.97, -0.6, -0.23, 0.14], [0.51, 0.88, 1.25, 1.62, 1.99], [-1.64, -1.27, -0.9, -0.53, -0.16]]> : tensor<10x5xf32>},
    %x: tensor<3x16xui8> {test.value = dense<[[15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [31, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [63, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]> : tensor<3x16xui8>})
    -> (tensor<3x10xf32> {test.value = dense<[[-0.831, -2.591, 4.889, -3.071, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [-0.7285, 1.024, -2.7835, 1.369, -3.3585, 0.0, 0.0, 0.0, 0.0, 0.0], [-4.426, -0.361, -0.656, -1.591, 4.594, -2.821, 0.0, 0.0, 0.0, 0.0]]> : tensor<3x10xf32>},
        tensor<10xf32> {test.value = dense<[-5.9855, -1.928, 1.4495, -3.293, 1.2355, -2.821, 0.0, 0.0, 0.0, 0.0]> : tensor<10xf32>}) {
  %y0, %y1 = nn.dot_epilogue "drelu" %a, %b input %x {transpose_b} : (tensor<3x5xf32>, tensor<10x5xf32>, tensor<3x16xui8>) -> (tensor<3x10xf32>, tensor<10xf32>)
  return %y0, %y1 : tensor<3x10xf32>, tensor<10xf32>
}

// The gradients of a linear layer's weight and bias.
func.func @sums_of_a(%a: tensor<5x3xf32> {test.value = dense<[[-1.23, -0.86, -0.49], [-0.12, 0.25, 0.62], [0.99, 1.36, 1.73], [-1.9, -1.53, -1.16], [-0.79, -0.42, -0.05]]> : tensor<5x3xf32>},
    %b: tensor<5x4xf32> {test.value = dense<[[-1.76, -1.39, -1.02, -0.65], [-0.28, 0.09, 0.46, 0.83], [1.2, 1.57, 1.94, -1.69], [-1.32, -0.95, -0.58, -0.21], [0.16, 0.53, 0.9, 1.27]]> : tensor<5x4xf32>})
    -> (tensor<3x4xf32> {test.value = dense<[[5.768, 4.6395, 3.511, -1.5775], [5.028, 4.584, 4.14, -1.744], [4.288, 4.5285, 4.769, -1.9105]]> : tensor<3x4xf32>},
        tensor<3xf32> {test.value = dense<[-3.05, -1.2, 0.65]> : tensor<3xf32>}) {
  %y0, %y1 = nn.dot_epilogue "bgrad_a" %a, %b {transpose_a} : (tensor<5x3xf32>, tensor<5x4xf32>) -> (tensor<3x4xf32>, tensor<3xf32>)
  return %y0, %y1 : tensor<3x4xf32>, tensor<3xf32>
}
