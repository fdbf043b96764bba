// Steps that read one parameter rounded, by rows and in f32, and another in f32 alone (train-state-layouts.mlir).
func.func @train(%w: tensor<4x8xf32> {train.binding = #train.param<"w">}, %norm: tensor<8xf32> {train.binding = #train.param<"norm">},
    %x: tensor<2x8xbf16> {train.binding = #train.batch<"x">}, %i: tensor<2xi64> {train.binding = #train.batch<"i">},
    %gw: tensor<4x8xf32> {train.binding = #train.batch<"gw", dim = -1>}, %gn: tensor<8xf32> {train.binding = #train.batch<"gn", dim = -1>},
    %finite: tensor<i1> {train.binding = #train.batch<"finite", dim = -1>}, %lr: tensor<f32> {train.binding = #train.scalar<"lr">},
    %step: tensor<i64> {train.binding = #train.scalar<"step">},
    %wm: tensor<4x8xf32> {train.binding = #train.state<"w.momentum_buffer">}, %nm: tensor<8xf32> {train.binding = #train.state<"norm.momentum_buffer">})
    -> (tensor<4x8xf32> {train.binding = #train.param<"w">}, tensor<4x8xf32> {train.binding = #train.state<"w.momentum_buffer">},
        tensor<8xf32> {train.binding = #train.param<"norm">}, tensor<8xf32> {train.binding = #train.state<"norm.momentum_buffer">}) {
  %w1, %wm1 = train.momentum %w gradient %gw lr %lr step %step state %wm {dampening = 0.0, lr_scale = 1.0, momentum = 0.9, nesterov = 0.0, weight_decay = 0.0} : tensor<4x8xf32>, tensor<f32>, tensor<i64>
  %w2 = train.commit %w1 or %w if %finite : (tensor<i1>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %wm2 = train.commit %wm1 or %wm if %finite : (tensor<i1>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %turned = nn.transpose %w [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  %half = nn.cast %turned : tensor<8x4xf32> -> tensor<8x4xbf16>
  %rows = nn.gather %w[%i] axis = 0 : (tensor<4x8xf32>, tensor<2xi64>) -> tensor<2x8xf32>
  %y = nn.dot %x, %half : (tensor<2x8xbf16>, tensor<8x4xbf16>) -> tensor<2x4xbf16>
  %n1, %nm1 = train.momentum %norm gradient %gn lr %lr step %step state %nm {dampening = 0.0, lr_scale = 1.0, momentum = 0.9, nesterov = 0.0, weight_decay = 0.0} : tensor<8xf32>, tensor<f32>, tensor<i64>
  return %w2, %wm2, %n1, %nm1 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>
}
func.func @gradient(%w: tensor<4x8xf32> {train.binding = #train.param<"w">}) -> (tensor<4xf32> {train.binding = #train.output<"sums">}) {
  %sums = nn.reduce_sum %w dims = [1] : tensor<4x8xf32> -> tensor<4xf32>
  return %sums : tensor<4xf32>
}
func.func @eval(%w: tensor<4x8xf32> {train.binding = #train.param<"w">}) -> (tensor<4x8xbf16> {train.binding = #train.output<"half">}) {
  %half = nn.cast %w : tensor<4x8xf32> -> tensor<4x8xbf16>
  return %half : tensor<4x8xbf16>
}
