// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @floats(%c: tensor<3x5xi1> {test.value = dense<[[true, false, true, true, false], [true, true, false, true, true], [false, true, true, false, true]]> : tensor<3x5xi1>},
    %a: tensor<3x5xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57], [-0.96, 1.51, -0.02, -1.54, 0.93], [-0.6, 1.87, 0.35, -1.18, 1.29]]> : tensor<3x5xf32>},
    %b: tensor<3x5xf32> {test.value = dense<[[3.17, 3.79, 3.41, 3.02, 3.64], [3.26, 3.88, 3.5, 3.11, 3.73], [3.35, 3.97, 3.59, 3.2, 3.82]]> : tensor<3x5xf32>})
    -> (tensor<3x5xf32> {test.value = dense<[[-1.32, 3.79, -0.38, -1.9, 3.64], [-0.96, 1.51, 3.5, -1.54, 0.93], [3.35, 1.87, 0.35, 3.2, 1.29]]> : tensor<3x5xf32>, test.tolerance = 0.0}) {
  %y = nn.select %c, %a, %b : tensor<3x5xi1>, tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

func.func @scalar(%c: tensor<i1> {test.value = dense<true> : tensor<i1>},
    %a: tensor<f32> {test.value = dense<-1.32> : tensor<f32>},
    %b: tensor<f32> {test.value = dense<5.17> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<-1.32> : tensor<f32>, test.tolerance = 0.0}) {
  %y = nn.select %c, %a, %b : tensor<i1>, tensor<f32>
  return %y : tensor<f32>
}

func.func @nothing_leaks(%c: tensor<1x3xi1> {test.value = dense<[[true, false, true]]> : tensor<1x3xi1>},
    %a: tensor<1x3xf32> {test.value = dense<[[0x7FC00000, 1.0, 0x7F800000]]> : tensor<1x3xf32>},
    %b: tensor<1x3xf32> {test.value = dense<[[2.0, 0x7FC00000, 0x7FC00000]]> : tensor<1x3xf32>})
    -> (tensor<1x3xf32> {test.value = dense<[[0x7FC00000, 0x7FC00000, 0x7F800000]]> : tensor<1x3xf32>, test.tolerance = 0.0}) {
  %y = nn.select %c, %a, %b : tensor<1x3xi1>, tensor<1x3xf32>
  return %y : tensor<1x3xf32>
}

func.func @integers(%c: tensor<4xi1> {test.value = dense<[true, false, true, true]> : tensor<4xi1>},
    %a: tensor<4xi64> {test.value = dense<[1, 2, 3, 4]> : tensor<4xi64>},
    %b: tensor<4xi64> {test.value = dense<[5, 6, 7, 8]> : tensor<4xi64>})
    -> (tensor<4xi64> {test.value = dense<[1, 6, 3, 4]> : tensor<4xi64>}) {
  %y = nn.select %c, %a, %b : tensor<4xi1>, tensor<4xi64>
  return %y : tensor<4xi64>
}

func.func @logic(%c: tensor<3xi1> {test.value = dense<[true, false, true]> : tensor<3xi1>},
    %a: tensor<3xi1> {test.value = dense<[true, false, true]> : tensor<3xi1>},
    %b: tensor<3xi1> {test.value = dense<[false, true, true]> : tensor<3xi1>})
    -> (tensor<3xi1> {test.value = dense<[true, true, true]> : tensor<3xi1>}) {
  %y = nn.select %c, %a, %b : tensor<3xi1>, tensor<3xi1>
  return %y : tensor<3xi1>
}
