// RUN: lowtide-random-steps --replay=%s

// A model that computes in 16 bits itself, in mixed precision.
module attributes {test.settings = {optimizer = "sgd", lr = "0.05", precision = "mixed-bf16", loss_scale = "none", clip_norm = 0.0000 : f64, micro_batches = 1 : i64, loss_head = false, seed = 109 : i64}} {
func.func @forward(%x0: tensor<4x3x9xbf16> {train.binding = #train.batch<"x0">, test.low = -1.0000 : f64, test.high = 1.0000 : f64},
                   %p3: tensor<9x3xf32> {train.binding = #train.param<"p3">, onnx.initializer = "p3", test.low = -0.5774 : f64, test.high = 0.5774 : f64})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %v1 = nn.tanh %x0 : tensor<4x3x9xbf16>
  %v2 = nn.cast %v1 : tensor<4x3x9xbf16> -> tensor<4x3x9xf32>
  %v4 = nn.reshape %v2 : tensor<4x3x9xf32> -> tensor<12x9xf32>
  %v5 = nn.dot %v4, %p3 : (tensor<12x9xf32>, tensor<9x3xf32>) -> tensor<12x3xf32>
  %v6 = nn.reshape %v5 : tensor<12x3xf32> -> tensor<4x3x3xf32>
  %v7 = nn.reduce_sum %v6 dims = [0, 1, 2] : tensor<4x3x3xf32> -> tensor<f32>
  return %v7 : tensor<f32>
}
}
