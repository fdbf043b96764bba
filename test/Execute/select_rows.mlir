// RUN: lowtide-execute %s
// Numbers of what holds, in order, then the first of them again: numpy.flatnonzero(condition), padded by its first.

func.func @some(%c: tensor<6xi1> {test.value = dense<[false, true, false, true, true, false]> : tensor<6xi1>})
    -> (tensor<6xi64> {test.value = dense<[1, 3, 4, 1, 1, 1]> : tensor<6xi64>},
        tensor<6xi1> {test.value = dense<[true, true, true, false, false, false]> : tensor<6xi1>}) {
  %rows, %valid = nn.select_rows %c : (tensor<6xi1>) -> (tensor<6xi64>, tensor<6xi1>)
  return %rows, %valid : tensor<6xi64>, tensor<6xi1>
}

// Two elements in each row.
func.func @elements(%c: tensor<4xi1> {test.value = dense<[false, true, false, true]> : tensor<4xi1>})
    -> (tensor<8xi64> {test.value = dense<[2, 3, 6, 7, 2, 3, 2, 3]> : tensor<8xi64>},
        tensor<4xi1> {test.value = dense<[true, true, false, false]> : tensor<4xi1>}) {
  %rows, %valid = nn.select_rows %c : (tensor<4xi1>) -> (tensor<8xi64>, tensor<4xi1>)
  return %rows, %valid : tensor<8xi64>, tensor<4xi1>
}

func.func @none(%c: tensor<3xi1> {test.value = dense<false> : tensor<3xi1>})
    -> (tensor<3xi64> {test.value = dense<0> : tensor<3xi64>}, tensor<3xi1> {test.value = dense<false> : tensor<3xi1>}) {
  %rows, %valid = nn.select_rows %c : (tensor<3xi1>) -> (tensor<3xi64>, tensor<3xi1>)
  return %rows, %valid : tensor<3xi64>, tensor<3xi1>
}

func.func @all(%c: tensor<3xi1> {test.value = dense<true> : tensor<3xi1>})
    -> (tensor<3xi64> {test.value = dense<[0, 1, 2]> : tensor<3xi64>}, tensor<3xi1> {test.value = dense<true> : tensor<3xi1>}) {
  %rows, %valid = nn.select_rows %c : (tensor<3xi1>) -> (tensor<3xi64>, tensor<3xi1>)
  return %rows, %valid : tensor<3xi64>, tensor<3xi1>
}
