// RUN: lowtide-execute %s
// The values are those of torch.nn.functional.batch_norm(x, None, None, scale, bias, training=True, eps=0.5).backward(dy).

func.func @grad(%x: tensor<2x2x3xf32> {test.value = dense<[[[1.0, 0.5, -1.75], [-0.5, -0.25, -0.25]], [[1.5, 0.0, -1.75], [-0.75, 0.25, 1.25]]]> : tensor<2x2x3xf32>},
    %dy: tensor<2x2x3xf32> {test.value = dense<[[[0.0, 0.25, -1.0], [-1.25, -2.0, -1.25]], [[-0.75, 1.5, 1.75], [1.75, -2.0, -1.5]]]> : tensor<2x2x3xf32>},
    %scale: tensor<2xf32> {test.value = dense<[1.5, -0.5]> : tensor<2xf32>},
    %mean: tensor<2xf32> {test.value = dense<[-0.08333333333333333, -0.041666666666666664]> : tensor<2xf32>},
    %variance: tensor<2xf32> {test.value = dense<[1.5972222222222223, 0.42534722222222215]> : tensor<2xf32>})
    -> (tensor<2x2x3xf32> {test.value = dense<[[[-0.1088944686973779, 0.06087801005916398, -1.6351319039834613], [0.21600517851571294, 0.5470830932158689, 0.15724981957407994]], [[-0.7965587513375122, 1.2664340965828904, 1.2132730173762967], [-1.28457255710981, 0.4295723753326029, -0.06533790952845502]]]> : tensor<2x2x3xf32>},
        tensor<2xf32> {test.value = dense<[-1.4961318778859336, -2.6097171929908654]> : tensor<2xf32>},
        tensor<2xf32> {test.value = dense<[1.75, -6.25]> : tensor<2xf32>}) {
  %dx, %dscale, %dbias = nn.batch_norm_grad %x, %dy, %scale, %mean, %variance epsilon = 5.0e-01
      : (tensor<2x2x3xf32>, tensor<2x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  return %dx, %dscale, %dbias : tensor<2x2x3xf32>, tensor<2xf32>, tensor<2xf32>
}
