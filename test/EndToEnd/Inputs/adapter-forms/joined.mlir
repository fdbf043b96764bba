// The forms in which exporters leave products.
func.func @forward(%x: tensor<4x6xf32> {train.binding = #train.batch<"x">}, %u: tensor<4x24xf32> {train.binding = #train.batch<"u">},
    %q: tensor<4x6xf32> {train.binding = #train.constant<"q.weight">}, %k: tensor<2x6xf32> {train.binding = #train.constant<"k.weight">},
    %v: tensor<6x6xf32> {train.binding = #train.constant<"v.weight">}, %w: tensor<12x6xf32> {train.binding = #train.constant<"w.weight">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  // Three weights in one matrix, turned and joined along the outputs; one weight as it is.
  %qt = nn.transpose %q [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
  %kt = nn.transpose %k [1, 0] : tensor<2x6xf32> -> tensor<6x2xf32>
  %vt = nn.transpose %v [1, 0] : tensor<6x6xf32> -> tensor<6x6xf32>
  %all = nn.concat %qt, %kt, %vt dim = 1 : (tensor<6x4xf32>, tensor<6x2xf32>, tensor<6x6xf32>) -> tensor<6x12xf32>
  %qkv = nn.dot %x, %all : (tensor<4x6xf32>, tensor<6x12xf32>) -> tensor<4x12xf32>
  %ww = nn.dot %x, %w {transpose_b} : (tensor<4x6xf32>, tensor<12x6xf32>) -> tensor<4x12xf32>
  %y = nn.concat %qkv, %ww dim = 1 : (tensor<4x12xf32>, tensor<4x12xf32>) -> tensor<4x24xf32>
  %d = nn.sub %y, %u : tensor<4x24xf32>
  %s = nn.mul %d, %d : tensor<4x24xf32>
  %loss = nn.reduce_sum %s dims = [0, 1] : tensor<4x24xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
