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

