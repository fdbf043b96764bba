// RUN: lowtide-execute %s
// An update that a step makes only when it is finite.

func.func @commit(%new: tensor<2xf32> {test.value = dense<[1.0, 0x7FC00000]> : tensor<2xf32>},
    %old: tensor<2xf32> {test.value = dense<[3.0, 4.0]> : tensor<2xf32>},
    %yes: tensor<i1> {test.value = dense<true> : tensor<i1>},
    %no: tensor<i1> {test.value = dense<false> : tensor<i1>})
    -> (tensor<2xf32> {test.value = dense<[1.0, 0x7FC00000]> : tensor<2xf32>},
        tensor<2xf32> {test.value = dense<[3.0, 4.0]> : tensor<2xf32>}) {
  %a = train.commit %new or %old if %yes : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %b = train.commit %new or %old if %no : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %a, %b : tensor<2xf32>, tensor<2xf32>
}
