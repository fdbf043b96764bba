// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/tensors.py).

func.func @first_of_ties(%x: tensor<3x4xf32> {test.value = dense<[[1.0, 5.0, 5.0, -2.0], [-2.0, 3.0, -2.0, 3.0], [7.0, 7.0, 7.0, 7.0]]> : tensor<3x4xf32>})
    -> (tensor<3xi64> {test.value = dense<[3, 0, 0]> : tensor<3xi64>}) {
  %y = nn.argmin %x dim = 1 : tensor<3x4xf32> -> tensor<3xi64>
  return %y : tensor<3xi64>
}

func.func @last_of_ties(%x: tensor<3x4xf32> {test.value = dense<[[1.0, 5.0, 5.0, -2.0], [-2.0, 3.0, -2.0, 3.0], [7.0, 7.0, 7.0, 7.0]]> : tensor<3x4xf32>})
    -> (tensor<3xi64> {test.value = dense<[3, 2, 3]> : tensor<3xi64>}) {
  %y = nn.argmin %x dim = 1 {select_last} : tensor<3x4xf32> -> tensor<3xi64>
  return %y : tensor<3xi64>
}

func.func @leading(%x: tensor<5x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96], [1.51, -0.02, -1.54], [0.93, -0.6, 1.87], [0.35, -1.18, 1.29]]> : tensor<5x3xf32>})
    -> (tensor<3xi32> {test.value = dense<[1, 4, 2]> : tensor<3xi32>}) {
  %y = nn.argmin %x dim = 0 : tensor<5x3xf32> -> tensor<3xi32>
  return %y : tensor<3xi32>
}

func.func @one(%x: tensor<3x1xf32> {test.value = dense<[[-1.32], [1.15], [-0.38]]> : tensor<3x1xf32>})
    -> (tensor<3xi64> {test.value = dense<[0, 0, 0]> : tensor<3xi64>}) {
  %y = nn.argmin %x dim = 1 : tensor<3x1xf32> -> tensor<3xi64>
  return %y : tensor<3xi64>
}

func.func @vector(%x: tensor<19xf32> {test.value = dense<[-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51, -0.02, -1.54, 0.93, -0.6, 1.87, 0.35, -1.18, 1.29, -0.24, -1.77, 0.71, -0.82]> : tensor<19xf32>})
    -> (tensor<i64> {test.value = dense<3> : tensor<i64>}) {
  %y = nn.argmin %x dim = 0 : tensor<19xf32> -> tensor<i64>
  return %y : tensor<i64>
}

func.func @integers(%x: tensor<2x3xi64> {test.value = dense<[[3, -1, 1099511627776], [0, 0, -5]]> : tensor<2x3xi64>})
    -> (tensor<2xi64> {test.value = dense<[1, 2]> : tensor<2xi64>}) {
  %y = nn.argmin %x dim = 1 : tensor<2x3xi64> -> tensor<2xi64>
  return %y : tensor<2xi64>
}

func.func @unsigned(%x: tensor<1x3xui8> {test.value = dense<[[200, 3, 100]]> : tensor<1x3xui8>})
    -> (tensor<1xi64> {test.value = dense<[1]> : tensor<1xi64>}) {
  %y = nn.argmin %x dim = 1 : tensor<1x3xui8> -> tensor<1xi64>
  return %y : tensor<1xi64>
}

func.func @lanes(%x: tensor<5x19xf32> {test.value = dense<[[-3.0, -2.0, -1.0, 0.0, -1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0, -9.0, -10.0, -11.0, -12.0, -13.0, -14.0, -15.0], [-17.0, -16.0, -15.0, -14.0, -13.0, -12.0, -11.0, -10.0, -9.0, -8.0, -7.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0, 0.0, -1.0], [-18.0, -17.0, -16.0, -15.0, -14.0, -13.0, -12.0, -11.0, -10.0, -9.0, -8.0, -7.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0, 0.0], [7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0], [1.0, 0.0, 2.0, 1.0, 0.0, 2.0, 1.0, 0.0, 2.0, 1.0, 0.0, 2.0, 1.0, 0.0, 2.0, 1.0, 0.0, 2.0, 0.0]]> : tensor<5x19xf32>})
    -> (tensor<5xi64> {test.value = dense<[18, 0, 0, 0, 1]> : tensor<5xi64>}) {
  %y = nn.argmin %x dim = 1 : tensor<5x19xf32> -> tensor<5xi64>
  return %y : tensor<5xi64>
}

func.func @last_lane(%x: tensor<5x19xf32> {test.value = dense<[[-3.0, -2.0, -1.0, 0.0, -1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0, -9.0, -10.0, -11.0, -12.0, -13.0, -14.0, -15.0], [-17.0, -16.0, -15.0, -14.0, -13.0, -12.0, -11.0, -10.0, -9.0, -8.0, -7.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0, 0.0, -1.0], [-18.0, -17.0, -16.0, -15.0, -14.0, -13.0, -12.0, -11.0, -10.0, -9.0, -8.0, -7.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0, 0.0], [7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0], [1.0, 0.0, 2.0, 1.0, 0.0, 2.0, 1.0, 0.0, 2.0, 1.0, 0.0, 2.0, 1.0, 0.0, 2.0, 1.0, 0.0, 2.0, 0.0]]> : tensor<5x19xf32>})
    -> (tensor<5xi64> {test.value = dense<[18, 0, 0, 18, 18]> : tensor<5xi64>}) {
  %y = nn.argmin %x dim = 1 {select_last} : tensor<5x19xf32> -> tensor<5xi64>
  return %y : tensor<5xi64>
}

func.func @not_a_number(%x: tensor<18xf32> {test.value = dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 0x7FC00000, 10.0, 11.0, 0x7FC00000, 13.0, 14.0, 15.0, 16.0, 0x7FC00000]> : tensor<18xf32>})
    -> (tensor<i64> {test.value = dense<9> : tensor<i64>}) {
  %y = nn.argmin %x dim = 0 : tensor<18xf32> -> tensor<i64>
  return %y : tensor<i64>
}
