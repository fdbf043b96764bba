// RUN: lowtide-execute %s
// PyTorch's values in f64 (Inputs/layers.py).

func.func @rows(%x: tensor<3x5xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57], [-0.96, 1.51, -0.02, -1.54, 0.93], [-0.6, 1.87, 0.35, -1.18, 1.29]]> : tensor<3x5xf32>},
    %t: tensor<3xi64> {test.value = dense<[2, 0, 4]> : tensor<3xi64>})
    -> (tensor<3xf32> {test.value = dense<[2.1762536, 3.1162536, 1.2273933]> : tensor<3xf32>},
        tensor<3xf32> {test.value = dense<[1.7962536, 2.1562536, 2.5173934]> : tensor<3xf32>}) {
  %y0, %y1 = nn.softmax_cross_entropy %x, %t : (tensor<3x5xf32>, tensor<3xi64>) -> (tensor<3xf32>, tensor<3xf32>)
  return %y0, %y1 : tensor<3xf32>, tensor<3xf32>
}

func.func @images(%x: tensor<2x3x2x2xf32> {test.value = dense<[[[[-1.32, 1.15], [-0.38, -1.9]], [[0.57, -0.96], [1.51, -0.02]], [[-1.54, 0.93], [-0.6, 1.87]]], [[[0.35, -1.18], [1.29, -0.24]], [[-1.77, 0.71], [-0.82, 1.65]], [[0.12, -1.41], [1.07, -0.46]]]]> : tensor<2x3x2x2xf32>},
    %t: tensor<2x2x2xi64> {test.value = dense<[[[0, 1], [2, 1]], [[1, 1], [0, 2]]]> : tensor<2x2x2xi64>})
    -> (tensor<2x2x2xf32> {test.value = dense<[[[2.130834, 2.7642798], [2.350834, 2.0505223]], [[2.7694905, 0.23988539], [0.65427995, 2.350834]]]> : tensor<2x2x2xf32>},
        tensor<2x2x2xf32> {test.value = dense<[[[0.810834, 1.8042799], [1.750834, 2.0305223]], [[0.99949056, 0.94988537], [1.9442799, 1.890834]]]> : tensor<2x2x2xf32>}) {
  %y0, %y1 = nn.softmax_cross_entropy %x, %t : (tensor<2x3x2x2xf32>, tensor<2x2x2xi64>) -> (tensor<2x2x2xf32>, tensor<2x2x2xf32>)
  return %y0, %y1 : tensor<2x2x2xf32>, tensor<2x2x2xf32>
}

func.func @weights(%x: tensor<3x5xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57], [-0.96, 1.51, -0.02, -1.54, 0.93], [-0.6, 1.87, 0.35, -1.18, 1.29]]> : tensor<3x5xf32>},
    %t: tensor<3xi64> {test.value = dense<[2, 0, 4]> : tensor<3xi64>},
    %w: tensor<5xf32> {test.value = dense<[0.51, 1.62, 0.93, 0.24, 1.36]> : tensor<5xf32>})
    -> (tensor<3xf32> {test.value = dense<[2.0239158, 1.5892893, 1.6692549]> : tensor<3xf32>},
        tensor<3xf32> {test.value = dense<[1.7962536, 2.1562536, 2.5173934]> : tensor<3xf32>}) {
  %y0, %y1 = nn.softmax_cross_entropy %x, %t weights %w : (tensor<3x5xf32>, tensor<3xi64>, tensor<5xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  return %y0, %y1 : tensor<3xf32>, tensor<3xf32>
}

func.func @ignored(%x: tensor<3x5xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57], [-0.96, 1.51, -0.02, -1.54, 0.93], [-0.6, 1.87, 0.35, -1.18, 1.29]]> : tensor<3x5xf32>},
    %t: tensor<3xi64> {test.value = dense<[2, -100, 4]> : tensor<3xi64>})
    -> (tensor<3xf32> {test.value = dense<[2.1762536, 0.0, 1.2273933]> : tensor<3xf32>},
        tensor<3xf32> {test.value = dense<[1.7962536, 2.1562536, 2.5173934]> : tensor<3xf32>}) {
  %y0, %y1 = nn.softmax_cross_entropy %x, %t ignore_index = -100 : (tensor<3x5xf32>, tensor<3xi64>) -> (tensor<3xf32>, tensor<3xf32>)
  return %y0, %y1 : tensor<3xf32>, tensor<3xf32>
}

func.func @ignored_class(%x: tensor<3x5xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57], [-0.96, 1.51, -0.02, -1.54, 0.93], [-0.6, 1.87, 0.35, -1.18, 1.29]]> : tensor<3x5xf32>},
    %t: tensor<3xi32> {test.value = dense<[2, 1, 1]> : tensor<3xi32>},
    %w: tensor<5xf32> {test.value = dense<[0.51, 1.62, 0.93, 0.24, 1.36]> : tensor<5xf32>})
    -> (tensor<3xf32> {test.value = dense<[2.0239158, 0.0, 0.0]> : tensor<3xf32>},
        tensor<3xf32> {test.value = dense<[1.7962536, 2.1562536, 2.5173934]> : tensor<3xf32>}) {
  %y0, %y1 = nn.softmax_cross_entropy %x, %t weights %w ignore_index = 1 : (tensor<3x5xf32>, tensor<3xi32>, tensor<5xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  return %y0, %y1 : tensor<3xf32>, tensor<3xf32>
}

func.func @one_class(%x: tensor<3x1xf32> {test.value = dense<[[-1.32], [1.15], [-0.38]]> : tensor<3x1xf32>},
    %t: tensor<3xi64> {test.value = dense<[0, 0, 0]> : tensor<3xi64>})
    -> (tensor<3xf32> {test.value = dense<[-0.0, -0.0, -0.0]> : tensor<3xf32>},
        tensor<3xf32> {test.value = dense<[-1.32, 1.15, -0.38]> : tensor<3xf32>}) {
  %y0, %y1 = nn.softmax_cross_entropy %x, %t : (tensor<3x1xf32>, tensor<3xi64>) -> (tensor<3xf32>, tensor<3xf32>)
  return %y0, %y1 : tensor<3xf32>, tensor<3xf32>
}

func.func @large(%x: tensor<1x3xf32> {test.value = dense<[[1000.0, -1000.0, 998.0]]> : tensor<1x3xf32>},
    %t: tensor<1xi64> {test.value = dense<[2]> : tensor<1xi64>})
    -> (tensor<1xf32> {test.value = dense<[2.126928]> : tensor<1xf32>},
        tensor<1xf32> {test.value = dense<[1000.12695]> : tensor<1xf32>}) {
  %y0, %y1 = nn.softmax_cross_entropy %x, %t : (tensor<1x3xf32>, tensor<1xi64>) -> (tensor<1xf32>, tensor<1xf32>)
  return %y0, %y1 : tensor<1xf32>, tensor<1xf32>
}
