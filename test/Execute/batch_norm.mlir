// RUN: lowtide-execute %s
// PyTorch's values in f64 (Inputs/layers.py).

func.func @vectors(%x: tensor<5x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96], [1.51, -0.02, -1.54], [0.93, -0.6, 1.87], [0.35, -1.18, 1.29]]> : tensor<5x3xf32>},
    %g: tensor<3xf32> {test.value = dense<[0.76, 1.68, 1.11]> : tensor<3xf32>},
    %b: tensor<3xf32> {test.value = dense<[-0.49, 1.36, 0.22]> : tensor<3xf32>})
    -> (tensor<5x3xf32> {test.value = dense<[[-1.2037315, 3.7185836, -0.1483118], [-1.539197, 2.54536, -0.6382678], [0.4331082, 1.3519088, -1.1282239], [0.097642824, 0.17868538, 1.7523798], [-0.23782258, -0.99453783, 1.2624238]]> : tensor<5x3xf32>},
        tensor<3xf32> {test.value = dense<[-0.08600001, -0.016, 0.056000005]> : tensor<3xf32>},
        tensor<3xf32> {test.value = dense<[1.716584, 0.67978394, 1.716584]> : tensor<3xf32>}) {
  %y0, %y1, %y2 = nn.batch_norm %x, %g, %b epsilon = 1.0e-2 : (tensor<5x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<5x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %y0, %y1, %y2 : tensor<5x3xf32>, tensor<3xf32>, tensor<3xf32>
}

func.func @lines(%x: tensor<2x3x5xf32> {test.value = dense<[[[-1.32, 1.15, -0.38, -1.9, 0.57], [-0.96, 1.51, -0.02, -1.54, 0.93], [-0.6, 1.87, 0.35, -1.18, 1.29]], [[-0.24, -1.77, 0.71, -0.82, 1.65], [0.12, -1.41, 1.07, -0.46, -1.99], [0.48, -1.04, 1.43, -0.1, -1.63]]]> : tensor<2x3x5xf32>},
    %g: tensor<3xf32> {test.value = dense<[0.76, 1.68, 1.11]> : tensor<3xf32>},
    %b: tensor<3xf32> {test.value = dense<[-0.49, 1.36, 0.22]> : tensor<3xf32>})
    -> (tensor<2x3x5xf32> {test.value = dense<[[[-1.1924185, 0.40663543, -0.5838716, -1.5679047, 0.031149117], [0.35459706, 3.9799187, 1.7342741, -0.49669302, 3.1286285], [-0.44666755, 1.9502302, 0.47521624, -1.0095018, 1.387396]], [[-0.49323696, -1.483744, 0.12178374, -0.8687233, 0.7303305], [1.939758, -0.3058866, 3.3341124, 1.0884678, -1.1571767], [0.6013687, -0.87364525, 1.5232525, 0.038534462, -1.4461836]]]> : tensor<2x3x5xf32>},
        tensor<3xf32> {test.value = dense<[-0.23500001, -0.27499998, 0.087]> : tensor<3xf32>},
        tensor<3xf32> {test.value = dense<[1.368145, 1.300145, 1.298401]> : tensor<3xf32>}) {
  %y0, %y1, %y2 = nn.batch_norm %x, %g, %b epsilon = 1.0e-2 : (tensor<2x3x5xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x5xf32>, tensor<3xf32>, tensor<3xf32>)
  return %y0, %y1, %y2 : tensor<2x3x5xf32>, tensor<3xf32>, tensor<3xf32>
}

func.func @images(%x: tensor<2x2x3x3xf32> {test.value = dense<[[[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96], [1.51, -0.02, -1.54]], [[0.93, -0.6, 1.87], [0.35, -1.18, 1.29], [-0.24, -1.77, 0.71]]], [[[-0.82, 1.65, 0.12], [-1.41, 1.07, -0.46], [-1.99, 0.48, -1.04]], [[1.43, -0.1, -1.63], [0.84, -0.68, 1.79], [0.26, -1.27, 1.2]]]]> : tensor<2x2x3x3xf32>},
    %g: tensor<2xf32> {test.value = dense<[0.76, 1.68]> : tensor<2xf32>},
    %b: tensor<2xf32> {test.value = dense<[-0.49, 1.36]> : tensor<2xf32>})
    -> (tensor<2x2x3x3xf32> {test.value = dense<[[[[-1.174419, 0.47307792, -0.54743636], [-1.5612806, 0.08621629, -0.934298], [0.71319896, -0.30731535, -1.3211596]], [[2.4681091, 0.21424462, 3.8528364], [1.613703, -0.6401614, 2.99843], [0.7445657, -1.5092987, 2.144024]]], [[[-0.8409176, 0.8065793, -0.21393496], [-1.2344493, 0.41971773, -0.6007966], [-1.6213108, 0.026186042, -0.9876582]], [[3.2046661, 0.9508017, -1.3030628], [2.3355289, 0.09639552, 3.7349873], [1.4811227, -0.77274173, 2.86585]]]]> : tensor<2x2x3x3xf32>},
        tensor<2xf32> {test.value = dense<[-0.2938889, 0.17777777]> : tensor<2xf32>},
        tensor<2xf32> {test.value = dense<[1.2882904, 1.2906061]> : tensor<2xf32>}) {
  %y0, %y1, %y2 = nn.batch_norm %x, %g, %b epsilon = 1.0e-2 : (tensor<2x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>)
  return %y0, %y1, %y2 : tensor<2x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>
}

func.func @one_channel(%x: tensor<3x1x2xf32> {test.value = dense<[[[-1.32, 1.15]], [[-0.38, -1.9]], [[0.57, -0.96]]]> : tensor<3x1x2xf32>},
    %g: tensor<1xf32> {test.value = dense<[0.76]> : tensor<1xf32>},
    %b: tensor<1xf32> {test.value = dense<[-0.49]> : tensor<1xf32>})
    -> (tensor<3x1x2xf32> {test.value = dense<[[[-1.0952542, 0.67046744]], [[-0.42327908, -1.509877]], [[0.2558446, -0.83790195]]]> : tensor<3x1x2xf32>},
        tensor<1xf32> {test.value = dense<[-0.47333333]> : tensor<1xf32>},
        tensor<1xf32> {test.value = dense<[1.1202556]> : tensor<1xf32>}) {
  %y0, %y1, %y2 = nn.batch_norm %x, %g, %b epsilon = 1.0e-2 : (tensor<3x1x2xf32>, tensor<1xf32>, tensor<1xf32>) -> (tensor<3x1x2xf32>, tensor<1xf32>, tensor<1xf32>)
  return %y0, %y1, %y2 : tensor<3x1x2xf32>, tensor<1xf32>, tensor<1xf32>
}
