// The same layers in other forms.
func.func @forward(%x: tensor<4x6xf32> {train.binding = #train.batch<"x">}, %u: tensor<4x24xf32> {train.binding = #train.batch<"u">},
    %q: tensor<4x6xf32> {train.binding = #train.constant<"q.weight">}, %k: tensor<2x6xf32> {train.binding = #train.constant<"k.weight">},
    %v: tensor<6x6xf32> {train.binding = #train.constant<"v.weight">}, %w: tensor<12x6xf32> {train.binding = #train.constant<"w.weight">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  // Each weight in a product of its own, one of them from the left; one weight cut into rows, one piece through a reshape.
  %q0 = nn.dot %x, %q {transpose_b} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x4xf32>
  %k0 = nn.dot %x, %k {transpose_b} : (tensor<4x6xf32>, tensor<2x6xf32>) -> tensor<4x2xf32>
  %xt = nn.transpose %x [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
  %v0 = nn.dot %v, %xt : (tensor<6x6xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  %v1 = nn.transpose %v0 [1, 0] : tensor<6x4xf32> -> tensor<4x6xf32>
  %qkv = nn.concat %q0, %k0, %v1 dim = 1 : (tensor<4x4xf32>, tensor<4x2xf32>, tensor<4x6xf32>) -> tensor<4x12xf32>
  %h = nn.reshape %w : tensor<12x6xf32> -> tensor<2x6x6xf32>
  %h0 = nn.slice %h starts = [0, 0, 0] strides = [1, 1, 1] : tensor<2x6x6xf32> -> tensor<1x6x6xf32>
  %a = nn.reshape %h0 : tensor<1x6x6xf32> -> tensor<6x6xf32>
  %b = nn.slice %w starts = [6, 0] strides = [1, 1] : tensor<12x6xf32> -> tensor<6x6xf32>
  %a0 = nn.dot %x, %a {transpose_b} : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
  %b0 = nn.dot %x, %b {transpose_b} : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
  %ww = nn.concat %a0, %b0 dim = 1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x12xf32>
  %y = nn.concat %qkv, %ww dim = 1 : (tensor<4x12xf32>, tensor<4x12xf32>) -> tensor<4x24xf32>
  %d = nn.sub %y, %u : tensor<4x24xf32>
  %s = nn.mul %d, %d : tensor<4x24xf32>
  %loss = nn.reduce_sum %s dims = [0, 1] : tensor<4x24xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
