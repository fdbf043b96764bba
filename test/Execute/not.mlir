// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @logic(%x: tensor<1x4xi1> {test.value = dense<[[false, false, true, true]]> : tensor<1x4xi1>})
    -> (tensor<1x4xi1> {test.value = dense<[[true, true, false, false]]> : tensor<1x4xi1>}) {
  %y = nn.not %x : tensor<1x4xi1>
  return %y : tensor<1x4xi1>
}

func.func @unsigned(%x: tensor<5xui8> {test.value = dense<[0, 1, 240, 170, 255]> : tensor<5xui8>})
    -> (tensor<5xui8> {test.value = dense<[255, 254, 15, 85, 0]> : tensor<5xui8>}) {
  %y = nn.not %x : tensor<5xui8>
  return %y : tensor<5xui8>
}

func.func @integers(%x: tensor<4xi64> {test.value = dense<[-1, 0, 1099511627781, -6]> : tensor<4xi64>})
    -> (tensor<4xi64> {test.value = dense<[0, -1, -1099511627782, 5]> : tensor<4xi64>}) {
  %y = nn.not %x : tensor<4xi64>
  return %y : tensor<4xi64>
}
