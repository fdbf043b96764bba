// RUN: lowtide-execute %s
// The values are those of torch.nn.functional.cross_entropy(x @ weight.T + bias, labels, reduction="none") and of
// torch.logsumexp(x @ weight.T + bias, 1).

func.func @bias_and_ignored(%x: tensor<4x2xf32> {test.value = dense<[[1.0, 1.75], [-0.75, -2.0], [-1.25, 0.75], [-1.25, -0.25]]> : tensor<4x2xf32>},
    %w: tensor<3x2xf32> {test.value = dense<[[0.25, -1.25], [-0.75, -1.5], [-1.0, -0.25]]> : tensor<3x2xf32>},
    %b: tensor<3xf32> {test.value = dense<[-0.5, 0.0, 0.0]> : tensor<3xf32>},
    %y: tensor<4xi64> {test.value = dense<[2, 0, -100, 1]> : tensor<4xi64>})
    -> (tensor<4xf32> {test.value = dense<[0.4133956449545904, 1.9912092606996947, 0.0, 0.771609646056221]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[-1.0241043550454096, 3.8037092606996947, 1.360052794756692, 2.0841096460562207]> : tensor<4xf32>}) {
  %loss, %lse = nn.linear_cross_entropy %x, %w bias %b labels %y ignore_index = -100
      : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<3xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>)
  return %loss, %lse : tensor<4xf32>, tensor<4xf32>
}

func.func @class_last(%x: tensor<4x2xf32> {test.value = dense<[[1.0, 1.75], [-0.75, -2.0], [-1.25, 0.75], [-1.25, -0.25]]> : tensor<4x2xf32>},
    %w: tensor<2x3xf32> {test.value = dense<[[0.25, -0.75, -1.0], [-1.25, -1.5, -0.25]]> : tensor<2x3xf32>},
    %y: tensor<4xi64> {test.value = dense<[2, 0, 0, 1]> : tensor<4xi64>})
    -> (tensor<4xf32> {test.value = dense<[0.5599553410316513, 1.5760742250570279, 2.638574225057028, 0.8194037029372804]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[-0.8775446589683487, 3.888574225057028, 1.3885742250570279, 2.1319037029372803]> : tensor<4xf32>}) {
  %loss, %lse = nn.linear_cross_entropy %x, %w labels %y class_last
      : (tensor<4x2xf32>, tensor<2x3xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>)
  return %loss, %lse : tensor<4xf32>, tensor<4xf32>
}
