// RUN: lowtide-random-steps --replay=%s

// Instructions that run for a second and a third time read what was made last, not what they read first.
module attributes {test.settings = {optimizer = "adagrad", lr = "0.002", precision = "", loss_scale = "1024", clip_norm = 0.0000 : f64, micro_batches = 1 : i64, loss_head = false, seed = 100 : i64}} {
func.func @forward(%x0: tensor<4x6x6xf32> {train.binding = #train.batch<"x0">, test.low = -1.0000 : f64, test.high = 1.0000 : f64},
                   %x1: tensor<4x1x6x5xf32> {train.binding = #train.batch<"x1">, test.low = -1.0000 : f64, test.high = 1.0000 : f64},
                   %p2: tensor<1x1x3x3xf32> {train.binding = #train.param<"p2">, onnx.initializer = "p2", test.low = -0.5774 : f64, test.high = 0.5774 : f64},
                   %p4: tensor<1x1x3x3xf32> {train.binding = #train.param<"p4">, onnx.initializer = "p4", test.low = -0.5774 : f64, test.high = 0.5774 : f64},
                   %p21: tensor<1x1xf32> {train.binding = #train.param<"p21">, onnx.initializer = "p21", test.low = -0.5000 : f64, test.high = 0.5000 : f64},
                   %x36: tensor<4x1x6x5xi64> {train.binding = #train.batch<"x36">, test.low = 0.0000 : f64, test.high = 1.0000 : f64},
                   %p40: tensor<10x8xf32> {train.binding = #train.param<"p40">, onnx.initializer = "p40", test.low = -0.6124 : f64, test.high = 0.6124 : f64},
                   %x44: tensor<4x6x10xf32> {train.binding = #train.batch<"x44">, test.low = 0.0000 : f64, test.high = 1.0000 : f64},
                   %x51: tensor<4x1x6x5xf32> {train.binding = #train.batch<"x51">, test.low = -1.0000 : f64, test.high = 1.0000 : f64})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %v3 = nn.conv %x1, %p2 strides = [1, 1] pads = [1, 1], [1, 1] dilations = [1, 1] groups = 1 : (tensor<4x1x6x5xf32>, tensor<1x1x3x3xf32>) -> tensor<4x1x6x5xf32>
  %v5 = nn.conv %x1, %p4 strides = [1, 1] pads = [1, 1], [1, 1] dilations = [1, 1] groups = 1 : (tensor<4x1x6x5xf32>, tensor<1x1x3x3xf32>) -> tensor<4x1x6x5xf32>
  %v6 = nn.cast %v5 : tensor<4x1x6x5xf32> -> tensor<4x1x6x5xbf16>
  %v7 = nn.tanh %v6 : tensor<4x1x6x5xbf16>
  %v8 = nn.cast %v7 : tensor<4x1x6x5xbf16> -> tensor<4x1x6x5xf32>
  %v9 = nn.reduce_sum %x0 dims = [1, 2] : tensor<4x6x6xf32> -> tensor<4xf32>
  %v10 = nn.constant dense<2.777778E-02> : tensor<4xf32>
  %v11 = nn.mul %v9, %v10 : tensor<4xf32>
  %v12 = nn.sigmoid %v11 : tensor<4xf32>
  %v13 = nn.broadcast %v12 dims = [0] : tensor<4xf32> -> tensor<4x6x6xf32>
  %v14 = nn.mul %x0, %v13 : tensor<4x6x6xf32>
  %v15 = nn.gelu %v8 : tensor<4x1x6x5xf32>
  %v16 = nn.gelu %v15 : tensor<4x1x6x5xf32>
  %v17 = nn.ceil %v16 : tensor<4x1x6x5xf32>
  %v18 = nn.constant dense<2.500000E-01> : tensor<4x1x6x5xf32>
  %v19 = nn.mul %v17, %v18 : tensor<4x1x6x5xf32>
  %v20 = nn.add %v16, %v19 : tensor<4x1x6x5xf32>
  %v22 = nn.broadcast %p21 dims = [1, 2] : tensor<1x1xf32> -> tensor<4x1x6x5xf32>
  %v23 = nn.compare ge %v20, %v22 : tensor<4x1x6x5xf32> -> tensor<4x1x6x5xi1>
  %v24 = nn.select %v23, %v20, %v22 : tensor<4x1x6x5xi1>, tensor<4x1x6x5xf32>
  %v25 = nn.add %v8, %v24 : tensor<4x1x6x5xf32>
  %v26 = nn.tanh %v25 : tensor<4x1x6x5xf32>
  %v27 = nn.constant dense<7.000000E+00> : tensor<4x1x6x5xf32>
  %v28 = nn.mul %v26, %v27 : tensor<4x1x6x5xf32>
  %v29 = nn.cast %v28 : tensor<4x1x6x5xf32> -> tensor<4x1x6x5xi64>
  %v30 = nn.constant dense<3> : tensor<4x1x6x5xi64>
  %v31 = nn.and %v29, %v30 : tensor<4x1x6x5xi64>
  %v32 = nn.cast %v31 : tensor<4x1x6x5xi64> -> tensor<4x1x6x5xf32>
  %v33 = nn.constant dense<1.250000E-01> : tensor<4x1x6x5xf32>
  %v34 = nn.mul %v32, %v33 : tensor<4x1x6x5xf32>
  %v35 = nn.add %v25, %v34 : tensor<4x1x6x5xf32>
  %v37 = nn.gather_elements %v35[%x36] axis = 1 : (tensor<4x1x6x5xf32>, tensor<4x1x6x5xi64>) -> tensor<4x1x6x5xf32>
  %v38 = nn.concat %x0, %v14 dim = 2 : (tensor<4x6x6xf32>, tensor<4x6x6xf32>) -> tensor<4x6x12xf32>
  %v39 = nn.slice %v38 starts = [0, 0, 4] strides = [1, 1, 1] : tensor<4x6x12xf32> -> tensor<4x6x8xf32>
  %v41 = nn.reshape %v39 : tensor<4x6x8xf32> -> tensor<24x8xf32>
  %v42 = nn.dot %v41, %p40 {transpose_b} : (tensor<24x8xf32>, tensor<10x8xf32>) -> tensor<24x10xf32>
  %v43 = nn.reshape %v42 : tensor<24x10xf32> -> tensor<4x6x10xf32>
  %v45 = nn.softplus %v43 : tensor<4x6x10xf32>
  %v46 = nn.mul %v43, %x44 : tensor<4x6x10xf32>
  %v47 = nn.sub %v45, %v46 : tensor<4x6x10xf32>
  %v48 = nn.reduce_sum %v47 dims = [0, 1, 2] : tensor<4x6x10xf32> -> tensor<f32>
  %v49 = nn.constant dense<4.166667E-03> : tensor<f32>
  %v50 = nn.mul %v48, %v49 : tensor<f32>
  %v52 = nn.sub %v3, %x51 : tensor<4x1x6x5xf32>
  %v53 = nn.mul %v52, %v52 : tensor<4x1x6x5xf32>
  %v54 = nn.reduce_sum %v53 dims = [0, 1, 2, 3] : tensor<4x1x6x5xf32> -> tensor<f32>
  %v55 = nn.constant dense<8.333333E-03> : tensor<f32>
  %v56 = nn.mul %v54, %v55 : tensor<f32>
  %v57 = nn.constant dense<2.500000E-01> : tensor<f32>
  %v58 = nn.mul %v56, %v57 : tensor<f32>
  %v59 = nn.add %v50, %v58 : tensor<f32>
  %v60 = nn.abs %v37 : tensor<4x1x6x5xf32>
  %v61 = nn.reduce_sum %v60 dims = [0, 1, 2, 3] : tensor<4x1x6x5xf32> -> tensor<f32>
  %v62 = nn.constant dense<8.333333E-03> : tensor<f32>
  %v63 = nn.mul %v61, %v62 : tensor<f32>
  %v64 = nn.constant dense<2.500000E-01> : tensor<f32>
  %v65 = nn.mul %v63, %v64 : tensor<f32>
  %v66 = nn.add %v59, %v65 : tensor<f32>
  return %v66 : tensor<f32>
}
}
