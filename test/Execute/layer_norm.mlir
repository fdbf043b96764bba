// RUN: lowtide-execute %s
// PyTorch's values in f64 (Inputs/layers.py).

func.func @rows(%x: tensor<3x7xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51], [-0.02, -1.54, 0.93, -0.6, 1.87, 0.35, -1.18], [1.29, -0.24, -1.77, 0.71, -0.82, 1.65, 0.12]]> : tensor<3x7xf32>},
    %g: tensor<7xf32> {test.value = dense<[0.76, 1.68, 1.11, 0.54, 1.46, 0.89, 1.82]> : tensor<7xf32>},
    %b: tensor<7xf32> {test.value = dense<[-0.49, 1.36, 0.22, -0.93, 0.93, -0.22, 1.63]> : tensor<7xf32>})
    -> (tensor<3x7xf32> {test.value = dense<[[-1.2027314, 3.2283053, 0.044970863, -1.6963438, 1.8508741, -0.78874093, 4.197758], [-0.4851232, -0.9232735, 1.1744441, -1.2079015, 3.4183054, 0.08154118, -0.25494048], [0.2973355, 0.7963516, -1.6747454, -0.65132594, -0.3188983, 0.9892139, 1.606694]]> : tensor<3x7xf32>},
        tensor<3xf32> {test.value = dense<[-0.19000001, -0.027142847, 0.1342857]> : tensor<3xf32>},
        tensor<3xf32> {test.value = dense<[0.82991534, 0.8983607, 0.8963875]> : tensor<3xf32>}) {
  %y0, %y1, %y2 = nn.layer_norm %x, %g, %b axis = 1 epsilon = 1.0e-2 : (tensor<3x7xf32>, tensor<7xf32>, tensor<7xf32>) -> (tensor<3x7xf32>, tensor<3xf32>, tensor<3xf32>)
  return %y0, %y1, %y2 : tensor<3x7xf32>, tensor<3xf32>, tensor<3xf32>
}

func.func @two_dims(%x: tensor<2x3x5xf32> {test.value = dense<[[[-1.32, 1.15, -0.38, -1.9, 0.57], [-0.96, 1.51, -0.02, -1.54, 0.93], [-0.6, 1.87, 0.35, -1.18, 1.29]], [[-0.24, -1.77, 0.71, -0.82, 1.65], [0.12, -1.41, 1.07, -0.46, -1.99], [0.48, -1.04, 1.43, -0.1, -1.63]]]> : tensor<2x3x5xf32>},
    %g: tensor<3x5xf32> {test.value = dense<[[0.76, 1.68, 1.11, 0.54, 1.46], [0.89, 1.82, 1.24, 0.67, 1.6], [1.03, 1.95, 1.38, 0.81, 1.73]]> : tensor<3x5xf32>},
    %b: tensor<3x5xf32> {test.value = dense<[[-0.49, 1.36, 0.22, -0.93, 0.93], [-0.22, 1.63, 0.49, -0.66, 1.2], [0.05, 1.91, 0.76, -0.39, 1.47]]> : tensor<3x5xf32>})
    -> (tensor<2x3x5xf32> {test.value = dense<[[[-1.332735, 3.0239387, -0.12403046, -1.7949802, 1.65633], [-0.9345727, 3.9894676, 0.48508182, -1.5282155, 2.4855318], [-0.46182728, 5.0346446, 1.1884954, -1.1917971, 3.389311]], [[-0.47223213, -0.8542046, 1.1704352, -1.1919593, 3.3833113], [0.08170321, -0.19430502, 1.9431084, -0.7735625, -1.2173663], [0.7242441, 0.5879297, 2.8127155, -0.2716449, -0.5977658]]]> : tensor<2x3x5xf32>},
        tensor<2xf32> {test.value = dense<[-0.015333334, -0.26666665]> : tensor<2xf32>},
        tensor<2xf32> {test.value = dense<[0.8499196, 0.8767044]> : tensor<2xf32>}) {
  %y0, %y1, %y2 = nn.layer_norm %x, %g, %b axis = 1 epsilon = 1.0e-2 : (tensor<2x3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>) -> (tensor<2x3x5xf32>, tensor<2xf32>, tensor<2xf32>)
  return %y0, %y1, %y2 : tensor<2x3x5xf32>, tensor<2xf32>, tensor<2xf32>
}

func.func @all(%x: tensor<3x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96], [1.51, -0.02, -1.54]]> : tensor<3x3xf32>},
    %g: tensor<3x3xf32> {test.value = dense<[[0.76, 1.68, 1.11], [0.54, 1.46, 0.89], [1.82, 1.24, 0.67]]> : tensor<3x3xf32>},
    %b: tensor<3x3xf32> {test.value = dense<[[-0.49, 1.36, 0.22], [-0.93, 0.93, -0.22], [1.63, 0.49, -0.66]]> : tensor<3x3xf32>})
    -> (tensor<3x3xf32> {test.value = dense<[[-1.1507633, 3.5111456, 0.16310535], [-1.6720965, 2.0623999, -0.71491474], [4.530689, 0.81498516, -1.3708107]]> : tensor<3x3xf32>},
        tensor<f32> {test.value = dense<-0.3211111> : tensor<f32>},
        tensor<f32> {test.value = dense<0.8703924> : tensor<f32>}) {
  %y0, %y1, %y2 = nn.layer_norm %x, %g, %b axis = 0 epsilon = 1.0e-2 : (tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<f32>, tensor<f32>)
  return %y0, %y1, %y2 : tensor<3x3xf32>, tensor<f32>, tensor<f32>
}

func.func @one(%x: tensor<3x1xf32> {test.value = dense<[[-1.32], [1.15], [-0.38]]> : tensor<3x1xf32>},
    %g: tensor<1xf32> {test.value = dense<[0.76]> : tensor<1xf32>},
    %b: tensor<1xf32> {test.value = dense<[-0.49]> : tensor<1xf32>})
    -> (tensor<3x1xf32> {test.value = dense<[[-0.49], [-0.49], [-0.49]]> : tensor<3x1xf32>},
        tensor<3xf32> {test.value = dense<[-1.32, 1.15, -0.38]> : tensor<3xf32>},
        tensor<3xf32> {test.value = dense<[10.0, 10.0, 10.0]> : tensor<3xf32>}) {
  %y0, %y1, %y2 = nn.layer_norm %x, %g, %b axis = 1 epsilon = 1.0e-2 : (tensor<3x1xf32>, tensor<1xf32>, tensor<1xf32>) -> (tensor<3x1xf32>, tensor<3xf32>, tensor<3xf32>)
  return %y0, %y1, %y2 : tensor<3x1xf32>, tensor<3xf32>, tensor<3xf32>
}

func.func @brain(%x: tensor<3x7xbf16> {test.value = dense<[[-1.3203125, 1.1484375, -0.38085938, -1.8984375, 0.5703125, -0.9609375, 1.5078125], [-0.020019531, -1.5390625, 0.9296875, -0.6015625, 1.8671875, 0.34960938, -1.1796875], [1.2890625, -0.24023438, -1.7734375, 0.7109375, -0.8203125, 1.6484375, 0.12011719]]> : tensor<3x7xbf16>},
    %g: tensor<7xbf16> {test.value = dense<[0.76171875, 1.6796875, 1.109375, 0.5390625, 1.4609375, 0.890625, 1.8203125]> : tensor<7xbf16>},
    %b: tensor<7xbf16> {test.value = dense<[-0.49023438, 1.359375, 0.21972656, -0.9296875, 0.9296875, -0.21972656, 1.6328125]> : tensor<7xbf16>})
    -> (tensor<3x7xbf16> {test.value = dense<[[-1.203125, 3.234375, 0.044433594, -1.6953125, 1.8515625, -0.7890625, 4.1875], [-0.484375, -0.921875, 1.171875, -1.2109375, 3.421875, 0.08251953, -0.25195312], [0.29882812, 0.796875, -1.671875, -0.65234375, -0.31835938, 0.98828125, 1.609375]]> : tensor<3x7xbf16>, test.tolerance = 0.00390625},
        tensor<3xbf16> {test.value = dense<[-0.19042969, -0.027709961, 0.13378906]> : tensor<3xbf16>, test.tolerance = 0.00390625},
        tensor<3xbf16> {test.value = dense<[0.83203125, 0.8984375, 0.89453125]> : tensor<3xbf16>, test.tolerance = 0.00390625}) {
  %y0, %y1, %y2 = nn.layer_norm %x, %g, %b axis = 1 epsilon = 1.0e-2 : (tensor<3x7xbf16>, tensor<7xbf16>, tensor<7xbf16>) -> (tensor<3x7xbf16>, tensor<3xbf16>, tensor<3xbf16>)
  return %y0, %y1, %y2 : tensor<3x7xbf16>, tensor<3xbf16>, tensor<3xbf16>
}
