// RUN: lowtide-random-steps --replay=%s

// A loss head with 16-bit parameters.
module attributes {test.settings = {optimizer = "sgd", lr = "0.002", precision = "bf16", loss_scale = "none", clip_norm = 0.0000 : f64, micro_batches = 1 : i64, loss_head = true, seed = 116 : i64}} {
func.func @forward(%x0: tensor<40x3xf32> {train.binding = #train.batch<"x0">, test.low = -1.0000 : f64, test.high = 1.0000 : f64},
                   %p1: tensor<27x3xf32> {train.binding = #train.param<"p1">, onnx.initializer = "p1", test.low = -1.0000 : f64, test.high = 1.0000 : f64},
                   %x3: tensor<40xi64> {train.binding = #train.batch<"x3">, test.low = 0.0000 : f64, test.high = 1.0000 : f64})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %v2 = nn.dot %x0, %p1 {transpose_b} : (tensor<40x3xf32>, tensor<27x3xf32>) -> tensor<40x27xf32>
  %v4:2 = nn.softmax_cross_entropy %v2, %x3 : (tensor<40x27xf32>, tensor<40xi64>) -> (tensor<40xf32>, tensor<40xf32>)
  %v5 = nn.reduce_sum %v4#0 dims = [0] : tensor<40xf32> -> tensor<f32>
  return %v5 : tensor<f32>
}
}
