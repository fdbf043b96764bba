// RUN: lowtide-execute %s
// PyTorch's values in f64 (Inputs/layers.py).

func.func @vectors(%v: tensor<3xf32> {test.value = dense<[1.716584, 0.67978394, 1.716584]> : tensor<3xf32>},
    %x: tensor<5x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96], [1.51, -0.02, -1.54], [0.93, -0.6, 1.87], [0.35, -1.18, 1.29]]> : tensor<5x3xf32>})
    -> (tensor<3xf32> {test.value = dense<[2.14573, 0.84972996, 2.14573]> : tensor<3xf32>}) {
  %y = nn.unbiased_variance %v, %x : (tensor<3xf32>, tensor<5x3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

func.func @images(%v: tensor<2xf32> {test.value = dense<[1.2882904, 1.2906061]> : tensor<2xf32>},
    %x: tensor<2x2x3x3xf32> {test.value = dense<[[[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96], [1.51, -0.02, -1.54]], [[0.93, -0.6, 1.87], [0.35, -1.18, 1.29], [-0.24, -1.77, 0.71]]], [[[-0.82, 1.65, 0.12], [-1.41, 1.07, -0.46], [-1.99, 0.48, -1.04]], [[1.43, -0.1, -1.63], [0.84, -0.68, 1.79], [0.26, -1.27, 1.2]]]]> : tensor<2x2x3x3xf32>})
    -> (tensor<2xf32> {test.value = dense<[1.3640722, 1.3665241]> : tensor<2xf32>}) {
  %y = nn.unbiased_variance %v, %x : (tensor<2xf32>, tensor<2x2x3x3xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

func.func @one(%v: tensor<3xf32> {test.value = dense<[0.0, 0.0, 0.0]> : tensor<3xf32>},
    %x: tensor<1x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38]]> : tensor<1x3xf32>})
    -> (tensor<3xf32> {test.value = dense<[0.0, 0.0, 0.0]> : tensor<3xf32>}) {
  %y = nn.unbiased_variance %v, %x : (tensor<3xf32>, tensor<1x3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}
