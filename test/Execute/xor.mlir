// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @logic(%a: tensor<1x4xi1> {test.value = dense<[[false, false, true, true]]> : tensor<1x4xi1>},
    %b: tensor<1x4xi1> {test.value = dense<[[false, true, false, true]]> : tensor<1x4xi1>})
    -> (tensor<1x4xi1> {test.value = dense<[[false, true, true, false]]> : tensor<1x4xi1>}) {
  %y = nn.xor %a, %b : tensor<1x4xi1>
  return %y : tensor<1x4xi1>
}

func.func @unsigned(%a: tensor<5xui8> {test.value = dense<[0, 1, 240, 170, 255]> : tensor<5xui8>},
    %b: tensor<5xui8> {test.value = dense<[255, 3, 60, 85, 255]> : tensor<5xui8>})
    -> (tensor<5xui8> {test.value = dense<[255, 2, 204, 255, 0]> : tensor<5xui8>}) {
  %y = nn.xor %a, %b : tensor<5xui8>
  return %y : tensor<5xui8>
}

func.func @integers(%a: tensor<4xi64> {test.value = dense<[-1, 0, 1099511627781, -6]> : tensor<4xi64>},
    %b: tensor<4xi64> {test.value = dense<[7, 9, 1099511627779, 3]> : tensor<4xi64>})
    -> (tensor<4xi64> {test.value = dense<[-8, 9, 6, -7]> : tensor<4xi64>}) {
  %y = nn.xor %a, %b : tensor<4xi64>
  return %y : tensor<4xi64>
}
