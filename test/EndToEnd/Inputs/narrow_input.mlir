// A step that reads 16-bit numbers: the loss is a weight of ones times the sum of each feature.
func.func @forward(%x: tensor<2x3xbf16> {train.binding = #train.batch<"x">},
    %w: tensor<3xf32> {train.binding = #train.param<"w">}) -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %wide = nn.cast %x : tensor<2x3xbf16> -> tensor<2x3xf32>
  %sums = nn.reduce_sum %wide dims = [0] : tensor<2x3xf32> -> tensor<3xf32>
  %zero = nn.constant dense<0.0> : tensor<3xf32>
  %none = nn.mul %w, %zero : tensor<3xf32>
  %each = nn.add %sums, %none : tensor<3xf32>
  %loss = nn.reduce_sum %each dims = [0] : tensor<3xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
