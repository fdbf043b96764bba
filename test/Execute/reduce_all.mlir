// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/tensors.py).

func.func @last(%x: tensor<3x3xi1> {test.value = dense<[[true, false, true], [false, false, false], [true, true, true]]> : tensor<3x3xi1>})
    -> (tensor<3xi1> {test.value = dense<[false, false, true]> : tensor<3xi1>}) {
  %y = nn.reduce_all %x dims = [1] : tensor<3x3xi1> -> tensor<3xi1>
  return %y : tensor<3xi1>
}

func.func @first(%x: tensor<5x3xi1> {test.value = dense<[[true, false, false], [true, false, true], [false, false, true], [false, true, false], [false, true, false]]> : tensor<5x3xi1>})
    -> (tensor<3xi1> {test.value = dense<[false, false, false]> : tensor<3xi1>}) {
  %y = nn.reduce_all %x dims = [0] : tensor<5x3xi1> -> tensor<3xi1>
  return %y : tensor<3xi1>
}

func.func @all(%x: tensor<2x2xi1> {test.value = dense<[[true, true], [true, true]]> : tensor<2x2xi1>})
    -> (tensor<i1> {test.value = dense<true> : tensor<i1>}) {
  %y = nn.reduce_all %x dims = [0, 1] : tensor<2x2xi1> -> tensor<i1>
  return %y : tensor<i1>
}

func.func @one(%x: tensor<1x3xi1> {test.value = dense<[[true, false, false]]> : tensor<1x3xi1>})
    -> (tensor<3xi1> {test.value = dense<[true, false, false]> : tensor<3xi1>}) {
  %y = nn.reduce_all %x dims = [0] : tensor<1x3xi1> -> tensor<3xi1>
  return %y : tensor<3xi1>
}
