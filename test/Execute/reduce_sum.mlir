// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/tensors.py).

func.func @last(%x: tensor<3x19xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51, -0.02, -1.54, 0.93, -0.6, 1.87, 0.35, -1.18, 1.29, -0.24, -1.77, 0.71, -0.82], [1.65, 0.12, -1.41, 1.07, -0.46, -1.99, 0.48, -1.04, 1.43, -0.1, -1.63, 0.84, -0.68, 1.79, 0.26, -1.27, 1.2, -0.32, -1.85], [0.62, -0.91, 1.57, 0.04, -1.49, 0.98, -0.55, 1.93, 0.4, -1.13, 1.34, -0.19, -1.71, 0.76, -0.77, 1.7, 0.18, -1.35, 1.12]]> : tensor<3x19xf32>})
    -> (tensor<3xf32> {test.value = dense<[-2.35, -1.91, 2.54]> : tensor<3xf32>}) {
  %y = nn.reduce_sum %x dims = [1] : tensor<3x19xf32> -> tensor<3xf32>
  return %y : tensor<3xf32>
}

func.func @first(%x: tensor<5x9xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51, -0.02, -1.54], [0.93, -0.6, 1.87, 0.35, -1.18, 1.29, -0.24, -1.77, 0.71], [-0.82, 1.65, 0.12, -1.41, 1.07, -0.46, -1.99, 0.48, -1.04], [1.43, -0.1, -1.63, 0.84, -0.68, 1.79, 0.26, -1.27, 1.2], [-0.32, -1.85, 0.62, -0.91, 1.57, 0.04, -1.49, 0.98, -0.55]]> : tensor<5x9xf32>})
    -> (tensor<9xf32> {test.value = dense<[-0.10000008, 0.24999991, 0.6, -3.03, 1.3500001, 1.6999999, -1.95, -1.5999999, -1.2199999]> : tensor<9xf32>}) {
  %y = nn.reduce_sum %x dims = [0] : tensor<5x9xf32> -> tensor<9xf32>
  return %y : tensor<9xf32>
}

func.func @all(%x: tensor<2x3x3xf32> {test.value = dense<[[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96], [1.51, -0.02, -1.54]], [[0.93, -0.6, 1.87], [0.35, -1.18, 1.29], [-0.24, -1.77, 0.71]]]> : tensor<2x3x3xf32>})
    -> (tensor<f32> {test.value = dense<-1.53> : tensor<f32>}) {
  %y = nn.reduce_sum %x dims = [0, 1, 2] : tensor<2x3x3xf32> -> tensor<f32>
  return %y : tensor<f32>
}

func.func @around(%x: tensor<3x2x5xf32> {test.value = dense<[[[-1.32, 1.15, -0.38, -1.9, 0.57], [-0.96, 1.51, -0.02, -1.54, 0.93]], [[-0.6, 1.87, 0.35, -1.18, 1.29], [-0.24, -1.77, 0.71, -0.82, 1.65]], [[0.12, -1.41, 1.07, -0.46, -1.99], [0.48, -1.04, 1.43, -0.1, -1.63]]]> : tensor<3x2x5xf32>})
    -> (tensor<2xf32> {test.value = dense<[-2.82, -1.41]> : tensor<2xf32>}) {
  %y = nn.reduce_sum %x dims = [0, 2] : tensor<3x2x5xf32> -> tensor<2xf32>
  return %y : tensor<2xf32>
}

func.func @one(%x: tensor<1x3x1xf32> {test.value = dense<[[[-1.32], [1.15], [-0.38]]]> : tensor<1x3x1xf32>})
    -> (tensor<3xf32> {test.value = dense<[-1.32, 1.15, -0.38]> : tensor<3xf32>}) {
  %y = nn.reduce_sum %x dims = [0, 2] : tensor<1x3x1xf32> -> tensor<3xf32>
  return %y : tensor<3xf32>
}

func.func @nothing(%x: tensor<2x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96]]> : tensor<2x3xf32>})
    -> (tensor<2x3xf32> {test.value = dense<[[-1.32, 1.15, -0.38], [-1.9, 0.57, -0.96]]> : tensor<2x3xf32>}) {
  %y = nn.reduce_sum %x dims = [] : tensor<2x3xf32> -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

func.func @half(%x: tensor<3x7xf16> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57, -0.96, 1.51], [-0.02, -1.54, 0.93, -0.6, 1.87, 0.35, -1.18], [1.29, -0.24, -1.77, 0.71, -0.82, 1.65, 0.12]]> : tensor<3x7xf16>})
    -> (tensor<3xf16> {test.value = dense<[-1.33, -0.1895, 0.941]> : tensor<3xf16>, test.tolerance = 0.0}) {
  %y = nn.reduce_sum %x dims = [1] : tensor<3x7xf16> -> tensor<3xf16>
  return %y : tensor<3xf16>
}

func.func @brain(%x: tensor<3x7xbf16> {test.value = dense<[[-1.3203125, 1.1484375, -0.38085938, -1.8984375, 0.5703125, -0.9609375, 1.5078125], [-0.020019531, -1.5390625, 0.9296875, -0.6015625, 1.8671875, 0.34960938, -1.1796875], [1.2890625, -0.24023438, -1.7734375, 0.7109375, -0.8203125, 1.6484375, 0.12011719]]> : tensor<3x7xbf16>})
    -> (tensor<7xbf16> {test.value = dense<[-0.05126953, -0.6328125, -1.2265625, -1.7890625, 1.6171875, 1.0390625, 0.44921875]> : tensor<7xbf16>, test.tolerance = 0.0}) {
  %y = nn.reduce_sum %x dims = [0] : tensor<3x7xbf16> -> tensor<7xbf16>
  return %y : tensor<7xbf16>
}

func.func @integers(%x: tensor<2x2xi64> {test.value = dense<[[1099511627776, 3], [-5, 7]]> : tensor<2x2xi64>})
    -> (tensor<2xi64> {test.value = dense<[1099511627771, 10]> : tensor<2xi64>}) {
  %y = nn.reduce_sum %x dims = [0] : tensor<2x2xi64> -> tensor<2xi64>
  return %y : tensor<2xi64>
}

func.func @unsigned(%x: tensor<2x2xui8> {test.value = dense<[[200, 3], [5, 17]]> : tensor<2x2xui8>})
    -> (tensor<2xui8> {test.value = dense<[203, 22]> : tensor<2xui8>}) {
  %y = nn.reduce_sum %x dims = [1] : tensor<2x2xui8> -> tensor<2xui8>
  return %y : tensor<2xui8>
}
