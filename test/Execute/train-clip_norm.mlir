// RUN: lowtide-execute %s
// As torch.nn.utils.clip_grad_norm_.

// Norm 13 of (3, 4), (12): limited to 6.5 by a factor of 6.5 / (13 + 1e-6); to 26 by none.
func.func @clip_norm(%a: tensor<2xf32> {test.value = dense<[3.0, -4.0]> : tensor<2xf32>},
    %b: tensor<1x1xf32> {test.value = dense<[[12.0]]> : tensor<1x1xf32>})
    -> (tensor<f32> {test.value = dense<13.0> : tensor<f32>},
        tensor<2xf32> {test.value = dense<[1.49999988, -1.99999985]> : tensor<2xf32>},
        tensor<1x1xf32> {test.value = dense<[[5.99999954]]> : tensor<1x1xf32>},
        tensor<2xf32> {test.value = dense<[3.0, -4.0]> : tensor<2xf32>}) {
  %norm = train.global_norm %a, %b : (tensor<2xf32>, tensor<1x1xf32>) -> tensor<f32>
  %ca, %cb = train.clip_norm %a, %b norm %norm {max_norm = 6.5}
      : (tensor<2xf32>, tensor<1x1xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<1x1xf32>)
  %da, %db = train.clip_norm %a, %b norm %norm {max_norm = 26.0}
      : (tensor<2xf32>, tensor<1x1xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<1x1xf32>)
  return %norm, %ca, %cb, %da : tensor<f32>, tensor<2xf32>, tensor<1x1xf32>, tensor<2xf32>
}
