// RUN: lowtide-execute %s
// The root of the sum of all squares, over tensors of any rank.

func.func @norm(%a: tensor<2x2xf32> {test.value = dense<[[1.0, -2.0], [4.0, 6.0]]> : tensor<2x2xf32>},
    %b: tensor<f32> {test.value = dense<8.0> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<11.0> : tensor<f32>}) {
  %norm = train.global_norm %a, %b : (tensor<2x2xf32>, tensor<f32>) -> tensor<f32>
  return %norm : tensor<f32>
}

// An infinity stays one: the step is not finite.
func.func @infinite(%a: tensor<2xf32> {test.value = dense<[1.0, 0xFF800000]> : tensor<2xf32>})
    -> (tensor<f32> {test.value = dense<0x7F800000> : tensor<f32>}) {
  %norm = train.global_norm %a : (tensor<2xf32>) -> tensor<f32>
  return %norm : tensor<f32>
}
