// A parameter of 16 bits, an activation that is rounded on its way.
func.func @forward(%x: tensor<8x16xbf16> {train.binding = #train.batch<"x">}, %w: tensor<16x4xbf16> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %y = nn.dot %x, %w : (tensor<8x16xbf16>, tensor<16x4xbf16>) -> tensor<8x4xbf16>
  %h = nn.cast %y : tensor<8x4xbf16> -> tensor<8x4xf16>
  %f = nn.cast %h : tensor<8x4xf16> -> tensor<8x4xf32>
  %q = nn.mul %f, %f : tensor<8x4xf32>
  %s = nn.reduce_sum %q dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
  return %s : tensor<f32>
}
