// RUN: lowtide-execute %s
// The values are PyTorch's: cross_entropy(x @ weight.T + bias, labels, reduction="none").backward(dloss), together with
// logsumexp(x @ weight.T + bias, 1).backward(dlse). Tiles and sums to start from change nothing but the order of additions.

func.func @whole(%x: tensor<4x2xf32> {test.value = dense<[[1.0, 1.75], [-0.75, -2.0], [-1.25, 0.75], [-1.25, -0.25]]> : tensor<4x2xf32>},
    %w: tensor<3x2xf32> {test.value = dense<[[0.25, -1.25], [-0.75, -1.5], [-1.0, -0.25]]> : tensor<3x2xf32>},
    %b: tensor<3xf32> {test.value = dense<[-0.5, 0.0, 0.0]> : tensor<3xf32>},
    %y: tensor<4xi64> {test.value = dense<[2, 0, -100, 1]> : tensor<4xi64>},
    %d: tensor<4xf32> {test.value = dense<[0.5, 1.0, 2.0, 0.25]> : tensor<4xf32>})
    -> (tensor<4xf32> {test.value = dense<[0.4133956449545904, 1.9912092606996947, 0.0, 0.771609646056221]> : tensor<4xf32>},
        tensor<4x2xf32> {test.value = dense<[[0.16398276368673065, -0.1812101973114451], [-0.8829179193625157, -0.1186267222257925], [0.0, 0.0], [-0.01002596411810286, 0.14917532137270093]]> : tensor<4x2xf32>},
        tensor<3x2xf32> {test.value = dense<[[0.7456779017949053, 1.9351243047323925], [-0.3735748755495428, -1.4543728588366187], [-0.3721030262453626, -0.48075144589577373]]> : tensor<3x2xf32>},
        tensor<3xf32> {test.value = dense<[-0.722946132787424, 0.6988861847615687, 0.02405994802585544]> : tensor<3xf32>}) {
  %loss, %lse, %dx, %dw, %db = nn.linear_cross_entropy_grad %x, %w bias %b labels %y dloss %d ignore_index = -100
      : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<3xf32>, tensor<4xi64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4x2xf32>, tensor<3x2xf32>, tensor<3xf32>)
  return %loss, %dx, %dw, %db : tensor<4xf32>, tensor<4x2xf32>, tensor<3x2xf32>, tensor<3xf32>
}

func.func @tiles(%x: tensor<4x2xf32> {test.value = dense<[[1.0, 1.75], [-0.75, -2.0], [-1.25, 0.75], [-1.25, -0.25]]> : tensor<4x2xf32>},
    %w: tensor<3x2xf32> {test.value = dense<[[0.25, -1.25], [-0.75, -1.5], [-1.0, -0.25]]> : tensor<3x2xf32>},
    %b: tensor<3xf32> {test.value = dense<[-0.5, 0.0, 0.0]> : tensor<3xf32>},
    %y: tensor<4xi64> {test.value = dense<[2, 0, -100, 1]> : tensor<4xi64>},
    %d: tensor<4xf32> {test.value = dense<[0.5, 1.0, 2.0, 0.25]> : tensor<4xf32>},
    %sw: tensor<3x2xf32> {test.value = dense<[[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]> : tensor<3x2xf32>},
    %sb: tensor<3xf32> {test.value = dense<[-2.0, -2.0, -2.0]> : tensor<3xf32>})
    -> (tensor<4xf32> {test.value = dense<[0.4133956449545904, 1.9912092606996947, 0.0, 0.771609646056221]> : tensor<4xf32>},
        tensor<4x2xf32> {test.value = dense<[[0.16398276368673065, -0.1812101973114451], [-0.8829179193625157, -0.1186267222257925], [0.0, 0.0], [-0.01002596411810286, 0.14917532137270093]]> : tensor<4x2xf32>},
        tensor<3x2xf32> {test.value = dense<[[1.7456779017949053, 2.9351243047323923], [0.6264251244504573, -0.4543728588366187], [0.6278969737546374, 0.5192485541042262]]> : tensor<3x2xf32>},
        tensor<3xf32> {test.value = dense<[-2.722946132787424, -1.3011138152384314, -1.9759400519741446]> : tensor<3xf32>}) {
  %loss, %lse, %dx, %dw, %db = nn.linear_cross_entropy_grad %x, %w bias %b labels %y dloss %d onto %sw bias_onto %sb ignore_index = -100 tile = 2
      : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<3xf32>, tensor<4xi64>, tensor<4xf32>, tensor<3x2xf32>, tensor<3xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4x2xf32>, tensor<3x2xf32>, tensor<3xf32>)
  return %loss, %dx, %dw, %db : tensor<4xf32>, tensor<4x2xf32>, tensor<3x2xf32>, tensor<3xf32>
}

func.func @logarithms(%x: tensor<4x2xf32> {test.value = dense<[[1.0, 1.75], [-0.75, -2.0], [-1.25, 0.75], [-1.25, -0.25]]> : tensor<4x2xf32>},
    %w: tensor<3x2xf32> {test.value = dense<[[0.25, -1.25], [-0.75, -1.5], [-1.0, -0.25]]> : tensor<3x2xf32>},
    %b: tensor<3xf32> {test.value = dense<[-0.5, 0.0, 0.0]> : tensor<3xf32>},
    %y: tensor<4xi64> {test.value = dense<[2, 0, -100, 1]> : tensor<4xi64>},
    %d: tensor<4xf32> {test.value = dense<[0.5, 1.0, 2.0, 0.25]> : tensor<4xf32>},
    %e: tensor<4xf32> {test.value = dense<[1.0, -0.5, 0.25, 2.0]> : tensor<4xf32>})
    -> (tensor<4xf32> {test.value = dense<[0.4133956449545904, 1.9912092606996947, 0.0, 0.771609646056221]> : tensor<4xf32>},
        tensor<4xf32> {test.value = dense<[-1.0241043550454096, 3.8037092606996947, 1.360052794756692, 2.0841096460562207]> : tensor<4xf32>},
        tensor<4x2xf32> {test.value = dense<[[-0.5080517089398081, -0.7936305919343354], [-0.5664589596812579, 0.5656866388871038], [-0.22276493576337925, -0.14013965775668097], [-1.5902336770629262, -1.657422107645692]]> : tensor<4x2xf32>},
        tensor<3x2xf32> {test.value = dense<[[0.8375972418901686, 2.468087562045688], [-1.2058231020347772, -0.6931892255842445], [-1.069274139855392, 0.6626016635385568]]> : tensor<3x2xf32>},
        tensor<3xf32> {test.value = dense<[-0.38581945251170635, 1.3790601367690487, 1.7567593157426584]> : tensor<3xf32>}) {
  %loss, %lse, %dx, %dw, %db = nn.linear_cross_entropy_grad %x, %w bias %b labels %y dloss %d dlse %e ignore_index = -100 tile = 2
      : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<3xf32>, tensor<4xi64>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4x2xf32>, tensor<3x2xf32>, tensor<3xf32>)
  return %loss, %lse, %dx, %dw, %db : tensor<4xf32>, tensor<4xf32>, tensor<4x2xf32>, tensor<3x2xf32>, tensor<3xf32>
}
