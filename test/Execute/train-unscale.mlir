// RUN: lowtide-execute %s
// As torch.amp.GradScaler: times the inverse of the scale; finite is false for one infinity or NaN anywhere.

func.func @unscale(%a: tensor<2x3xf32> {test.value = dense<[[8.0, -16.0, 0.0], [4.0, 2.0, 1.0]]> : tensor<2x3xf32>},
    %b: tensor<2xf32> {test.value = dense<[1.0, -3.0]> : tensor<2xf32>},
    %scale: tensor<f32> {test.value = dense<8.0> : tensor<f32>})
    -> (tensor<2x3xf32> {test.value = dense<[[1.0, -2.0, 0.0], [0.5, 0.25, 0.125]]> : tensor<2x3xf32>},
        tensor<2xf32> {test.value = dense<[0.125, -0.375]> : tensor<2xf32>},
        tensor<i1> {test.value = dense<true> : tensor<i1>}) {
  %ua, %ub, %finite = train.unscale %a, %b by %scale
      : (tensor<2x3xf32>, tensor<2xf32>, tensor<f32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<i1>)
  return %ua, %ub, %finite : tensor<2x3xf32>, tensor<2xf32>, tensor<i1>
}

func.func @infinite(%a: tensor<2x3xf32> {test.value = dense<[[8.0, -16.0, 0.0], [4.0, 0xFF800000, 1.0]]> : tensor<2x3xf32>},
    %b: tensor<2xf32> {test.value = dense<[1.0, -3.0]> : tensor<2xf32>},
    %scale: tensor<f32> {test.value = dense<8.0> : tensor<f32>})
    -> (tensor<i1> {test.value = dense<false> : tensor<i1>}) {
  %ua, %ub, %finite = train.unscale %a, %b by %scale
      : (tensor<2x3xf32>, tensor<2xf32>, tensor<f32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<i1>)
  return %finite : tensor<i1>
}

func.func @nan(%a: tensor<1xf32> {test.value = dense<[0x7FC00000]> : tensor<1xf32>},
    %scale: tensor<f32> {test.value = dense<8.0> : tensor<f32>})
    -> (tensor<i1> {test.value = dense<false> : tensor<i1>}) {
  %ua, %finite = train.unscale %a by %scale : (tensor<1xf32>, tensor<f32>) -> (tensor<1xf32>, tensor<i1>)
  return %finite : tensor<i1>
}
