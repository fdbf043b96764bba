// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @floats(%x: tensor<9xf32> {test.value = dense<[0.0, -0.0, 0x7F800000, 0xFF800000, 0x7FC00000, 1.5, -2.5, 1.0e-40, -1.0e-40]> : tensor<9xf32>})
    -> (tensor<9xf32> {test.value = dense<[-0.0, 0.0, 0xFF800000, 0x7F800000, 0x7FC00000, -1.5, 2.5, -1.0e-40, 1.0e-40]> : tensor<9xf32>, test.tolerance = 0.0}) {
  %y = nn.neg %x : tensor<9xf32>
  return %y : tensor<9xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-1.32> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<1.32> : tensor<f32>, test.tolerance = 0.0}) {
  %y = nn.neg %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @brain(%x: tensor<3x1xbf16> {test.value = dense<[[-1.3203125], [1.1484375], [-0.38085938]]> : tensor<3x1xbf16>})
    -> (tensor<3x1xbf16> {test.value = dense<[[1.3203125], [-1.1484375], [0.38085938]]> : tensor<3x1xbf16>, test.tolerance = 0.0}) {
  %y = nn.neg %x : tensor<3x1xbf16>
  return %y : tensor<3x1xbf16>
}

func.func @bytes(%x: tensor<7xi8> {test.value = dense<[0, 1, -1, 127, -128, 5, -7]> : tensor<7xi8>})
    -> (tensor<7xi8> {test.value = dense<[0, -1, 1, -127, -128, -5, 7]> : tensor<7xi8>, test.tolerance = 0.0}) {
  %y = nn.neg %x : tensor<7xi8>
  return %y : tensor<7xi8>
}

func.func @integers(%x: tensor<3x1xi64> {test.value = dense<[[1099511627777], [-1099511627776], [0]]> : tensor<3x1xi64>})
    -> (tensor<3x1xi64> {test.value = dense<[[-1099511627777], [1099511627776], [0]]> : tensor<3x1xi64>, test.tolerance = 0.0}) {
  %y = nn.neg %x : tensor<3x1xi64>
  return %y : tensor<3x1xi64>
}
