// RUN: lowtide-execute %s
// Elements stay in row-major order.

func.func @blocks(%x: tensor<2x3x2xf32> {test.value = dense<[[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[7.0, 8.0], [9.0, 10.0], [11.0, 12.0]]]> : tensor<2x3x2xf32>})
    -> (tensor<3x4xf32> {test.value = dense<[[2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0], [10.0, 11.0, 12.0, 13.0]]> : tensor<3x4xf32>}) {
  %one = nn.constant dense<1.0> : tensor<3x4xf32>
  %rows = nn.regroup %x : tensor<2x3x2xf32> -> tensor<3x4xf32>
  %y = nn.add %rows, %one : tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

func.func @codes(%x: tensor<4x2xui8> {test.value = dense<[[1, 200], [3, 4], [5, 6], [7, 255]]> : tensor<4x2xui8>})
    -> (tensor<2x4xui8> {test.value = dense<[[1, 200, 3, 4], [5, 6, 7, 255]]> : tensor<2x4xui8>}) {
  %y = nn.regroup %x : tensor<4x2xui8> -> tensor<2x4xui8>
  return %y : tensor<2x4xui8>
}
