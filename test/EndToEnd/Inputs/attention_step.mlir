// The smallest step with an attention that cuDNN takes.
func.func @forward(%w: tensor<1x2x16x8xf32> {train.binding = #train.param<"w">},
                   %x: tensor<1x2x16x8xf32> {train.binding = #train.batch<"x", dim = 0>})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %q = nn.mul %w, %x : tensor<1x2x16x8xf32>
  %o, %lse = nn.attention %q, %q, %q scale = 0.35 causal : (tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>) -> (tensor<1x2x16x8xf32>, tensor<1x2x16xf32>)
  %y = nn.mul %o, %x : tensor<1x2x16x8xf32>
  %loss = nn.reduce_sum %y dims = [0, 1, 2, 3] : tensor<1x2x16x8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
