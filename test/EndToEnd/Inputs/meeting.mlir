// Every sample with every other: a batch of fewer is no part of it.
func.func @eval(%x: tensor<4x3xf32> {train.binding = #train.batch<"x">}) -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %products = nn.dot %x, %x {transpose_b} : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x4xf32>
  %sum = nn.reduce_sum %products dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  %count = nn.constant dense<16.0> : tensor<f32>
  %loss = nn.div %sum, %count : tensor<f32>
  return %loss : tensor<f32>
}
