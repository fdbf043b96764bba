// RUN: lowtide-execute %s
// PyTorch's values in f64 (Inputs/layers.py).

func.func @rows(%x: tensor<3x7xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51], [-0.02, -1.54, 0.93, -0.6, 1.87, 0.35, -1.18], [1.29, -0.24, -1.77, 0.71, -0.82, 1.65, 0.12]]> : tensor<3x7xf32>},
    %g: tensor<7xf32> {test.value = dense<[0.76, 1.68, 1.11, 0.54, 1.46, 0.89, 1.82]> : tensor<7xf32>})
    -> (tensor<3x7xf32> {test.value = dense<[[-0.8224096, 1.5838269, -0.34578583, -0.8411007, 0.6822261, -0.7004253, 2.2529366], [-0.013651025, -2.323548, 0.9271022, -0.2909824, 2.4519756, 0.2797562, -1.9287461], [0.87251985, -0.35883313, -1.7485106, 0.3412119, -1.0654639, 1.3069109, 0.19436796]]> : tensor<3x7xf32>},
        tensor<3xf32> {test.value = dense<[0.81978625, 0.89809376, 0.88996315]> : tensor<3xf32>}) {
  %y0, %y1 = nn.rms_norm %x, %g axis = 1 epsilon = 1.0e-2 : (tensor<3x7xf32>, tensor<7xf32>) -> (tensor<3x7xf32>, tensor<3xf32>)
  return %y0, %y1 : tensor<3x7xf32>, tensor<3xf32>
}

func.func @two_dims(%x: tensor<2x3x5xf32> {test.value = dense<[[[-1.32, 1.15, -0.38, -1.9, 0.57], [-0.96, 1.51, -0.02, -1.54, 0.93], [-0.6, 1.87, 0.35, -1.18, 1.29]], [[-0.24, -1.77, 0.71, -0.82, 1.65], [0.12, -1.41, 1.07, -0.46, -1.99], [0.48, -1.04, 1.43, -0.1, -1.63]]]> : tensor<2x3x5xf32>},
    %g: tensor<3x5xf32> {test.value = dense<[[0.76, 1.68, 1.11, 0.54, 1.46], [0.89, 1.82, 1.24, 0.67, 1.6], [1.03, 1.95, 1.38, 0.81, 1.73]]> : tensor<3x5xf32>})
    -> (tensor<2x3x5xf32> {test.value = dense<[[[-0.852567, 1.6419052, -0.35846564, -0.87194353, 0.7072431], [-0.7261096, 2.3355508, -0.021076217, -0.8768726, 1.2645731], [-0.52520573, 3.0989687, 0.4104763, -0.8122842, 1.8966045]], [[-0.15571213, -2.5385175, 0.6727891, -0.3780117, 2.0565271], [0.09117355, -2.1907263, 1.1326692, -0.26310572, -2.718133], [0.42206183, -1.731273, 1.6846619, -0.06914848, -2.4073062]]]> : tensor<2x3x5xf32>},
        tensor<2xf32> {test.value = dense<[0.84984744, 0.85368496]> : tensor<2xf32>}) {
  %y0, %y1 = nn.rms_norm %x, %g axis = 1 epsilon = 1.0e-2 : (tensor<2x3x5xf32>, tensor<3x5xf32>) -> (tensor<2x3x5xf32>, tensor<2xf32>)
  return %y0, %y1 : tensor<2x3x5xf32>, tensor<2xf32>
}

func.func @all(%x: tensor<3x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96], [1.51, -0.02, -1.54]]> : tensor<3x3xf32>},
    %g: tensor<3x3xf32> {test.value = dense<[[0.76, 1.68, 1.11], [0.54, 1.46, 0.89], [1.82, 1.24, 0.67]]> : tensor<3x3xf32>})
    -> (tensor<3x3xf32> {test.value = dense<[[-0.84094936, 1.6195315, -0.35358095], [-0.8600618, 0.69760567, -0.7162152], [2.303725, -0.020789018, -0.8649237]]> : tensor<3x3xf32>},
        tensor<f32> {test.value = dense<0.83826685> : tensor<f32>}) {
  %y0, %y1 = nn.rms_norm %x, %g axis = 0 epsilon = 1.0e-2 : (tensor<3x3xf32>, tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<f32>)
  return %y0, %y1 : tensor<3x3xf32>, tensor<f32>
}

func.func @one(%x: tensor<3x1xf32> {test.value = dense<[[-1.32], [1.15], [-0.38]]> : tensor<3x1xf32>},
    %g: tensor<1xf32> {test.value = dense<[0.76]> : tensor<1xf32>})
    -> (tensor<3x1xf32> {test.value = dense<[[-0.7578284], [0.75714284], [-0.73497665]]> : tensor<3x1xf32>},
        tensor<3xf32> {test.value = dense<[0.7554111, 0.8662962, 2.544933]> : tensor<3xf32>}) {
  %y0, %y1 = nn.rms_norm %x, %g axis = 1 epsilon = 1.0e-2 : (tensor<3x1xf32>, tensor<1xf32>) -> (tensor<3x1xf32>, tensor<3xf32>)
  return %y0, %y1 : tensor<3x1xf32>, tensor<3xf32>
}
