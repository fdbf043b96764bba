// A step whose parameter is large enough for moments in blocks, read rounded (train-state-layouts.mlir).
func.func @train(%w: tensor<64x80xf32> {train.binding = #train.param<"w">}, %x: tensor<2x64xbf16> {train.binding = #train.batch<"x">},
    %gw: tensor<64x80xf32> {train.binding = #train.batch<"gw", dim = -1>}, %finite: tensor<i1> {train.binding = #train.batch<"finite", dim = -1>},
    %lr: tensor<f32> {train.binding = #train.scalar<"lr">}, %step: tensor<i64> {train.binding = #train.scalar<"step">},
    %wm: tensor<64x80xf32> {train.binding = #train.state<"w.momentum_buffer">})
    -> (tensor<64x80xf32> {train.binding = #train.param<"w">}, tensor<64x80xf32> {train.binding = #train.state<"w.momentum_buffer">},
        tensor<2x80xbf16> {train.binding = #train.output<"y">}) {
  %w1, %wm1 = train.momentum %w gradient %gw lr %lr step %step state %wm {dampening = 0.0, lr_scale = 1.0, momentum = 0.9, nesterov = 0.0, weight_decay = 0.0} : tensor<64x80xf32>, tensor<f32>, tensor<i64>
  %w2 = train.commit %w1 or %w if %finite : (tensor<i1>, tensor<64x80xf32>, tensor<64x80xf32>) -> tensor<64x80xf32>
  %wm2 = train.commit %wm1 or %wm if %finite : (tensor<i1>, tensor<64x80xf32>, tensor<64x80xf32>) -> tensor<64x80xf32>
  %half = nn.cast %w : tensor<64x80xf32> -> tensor<64x80xbf16>
  %y = nn.dot %x, %half : (tensor<2x64xbf16>, tensor<64x80xbf16>) -> tensor<2x80xbf16>
  return %w2, %wm2, %y : tensor<64x80xf32>, tensor<64x80xf32>, tensor<2x80xbf16>
}
