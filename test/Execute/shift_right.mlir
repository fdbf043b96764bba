// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @bytes(%a: tensor<6xui8> {test.value = dense<[1, 255, 129, 16, 7, 200]> : tensor<6xui8>},
    %b: tensor<6xui8> {test.value = dense<[0, 1, 7, 4, 8, 9]> : tensor<6xui8>})
    -> (tensor<6xui8> {test.value = dense<[1, 127, 1, 1, 0, 0]> : tensor<6xui8>}) {
  %y = nn.shift_right %a, %b : tensor<6xui8>
  return %y : tensor<6xui8>
}

func.func @words(%a: tensor<4xui64> {test.value = dense<[1, 9223372036854775808, 12345, 3]> : tensor<4xui64>},
    %b: tensor<4xui64> {test.value = dense<[63, 1, 0, 64]> : tensor<4xui64>})
    -> (tensor<4xui64> {test.value = dense<[0, 4611686018427387904, 12345, 0]> : tensor<4xui64>}) {
  %y = nn.shift_right %a, %b : tensor<4xui64>
  return %y : tensor<4xui64>
}
