// RUN: lowtide-execute %s
// As torch.nn.utils.clip_grad_value_.

// As clamp_: NaN stays NaN.
func.func @clip_value(%a: tensor<4xf32> {test.value = dense<[3.0, -4.0, 0.25, 0x7FC00000]> : tensor<4xf32>})
    -> (tensor<4xf32> {test.value = dense<[1.0, -1.0, 0.25, 0x7FC00000]> : tensor<4xf32>}) {
  %c = train.clip_value %a {limit = 1.0} : (tensor<4xf32>) -> tensor<4xf32>
  return %c : tensor<4xf32>
}
