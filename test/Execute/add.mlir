// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%a: tensor<11xf32> {test.value = dense<[1.5, -2.25, 0.0, -0.0, 0x7F800000, 0x7F800000, 0xFF800000, 0x7FC00000, 1.0, 1.0e+15, 3.0]> : tensor<11xf32>},
    %b: tensor<11xf32> {test.value = dense<[2.5, 0.5, -0.0, 0.0, 1.0, 0xFF800000, 2.0, 1.0, 0x7FC00000, 1.0e+15, -3.0]> : tensor<11xf32>})
    -> (tensor<11xf32> {test.value = dense<[4.0, -1.75, 0.0, 0.0, 0x7F800000, 0x7FC00000, 0xFF800000, 0x7FC00000, 0x7FC00000, 2.0e+15, 0.0]> : tensor<11xf32>, test.tolerance = 1.0e-7}) {
  %y = nn.add %a, %b : tensor<11xf32>
  return %y : tensor<11xf32>
}

func.func @scalar(%a: tensor<f32> {test.value = dense<-2.98> : tensor<f32>},
    %b: tensor<f32> {test.value = dense<0.59> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<-2.39> : tensor<f32>, test.tolerance = 1.0e-7}) {
  %y = nn.add %a, %b : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%a: tensor<1x5x1xf32> {test.value = dense<[[[-2.98], [0.73], [-1.56], [-3.86], [-0.15]]]> : tensor<1x5x1xf32>},
    %b: tensor<1x5x1xf32> {test.value = dense<[[[0.59], [1.64], [0.99], [0.34], [1.39]]]> : tensor<1x5x1xf32>})
    -> (tensor<1x5x1xf32> {test.value = dense<[[[-2.39], [2.37], [-0.56999993], [-3.52], [1.24]]]> : tensor<1x5x1xf32>, test.tolerance = 1.0e-7}) {
  %y = nn.add %a, %b : tensor<1x5x1xf32>
  return %y : tensor<1x5x1xf32>
}

func.func @double(%a: tensor<5xf64> {test.value = dense<[-2.98, 0.73, -1.56, -3.86, -0.15]> : tensor<5xf64>},
    %b: tensor<5xf64> {test.value = dense<[0.59, 1.64, 0.99, 0.34, 1.39]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[-2.39, 2.37, -0.5700000000000001, -3.52, 1.24]> : tensor<5xf64>, test.tolerance = 1.0e-15}) {
  %y = nn.add %a, %b : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%a: tensor<9xf16> {test.value = dense<[-2.98, 0.73, -1.56, -3.86, -0.15, -2.44, 1.27, -1.02, -3.31]> : tensor<9xf16>},
    %b: tensor<9xf16> {test.value = dense<[0.59, 1.64, 0.99, 0.34, 1.39, 0.74, 1.79, 1.14, 0.49]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[-2.39, 2.37, -0.5693, -3.52, 1.239, -1.699, 3.059, 0.1201, -2.82]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.add %a, %b : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%a: tensor<9xbf16> {test.value = dense<[-2.984375, 0.73046875, -1.5625, -3.859375, -0.15039062, -2.4375, 1.2734375, -1.0234375, -3.3125]> : tensor<9xbf16>},
    %b: tensor<9xbf16> {test.value = dense<[0.58984375, 1.640625, 0.98828125, 0.33984375, 1.390625, 0.73828125, 1.7890625, 1.140625, 0.49023438]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[-2.390625, 2.375, -0.57421875, -3.515625, 1.2421875, -1.703125, 3.0625, 0.1171875, -2.828125]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.add %a, %b : tensor<9xbf16>
  return %y : tensor<9xbf16>
}

func.func @i32(%a: tensor<7xi32> {test.value = dense<[7, -7, 7, -7, 2147483647, -2147483648, 0]> : tensor<7xi32>},
    %b: tensor<7xi32> {test.value = dense<[2, 2, -2, -2, 1, 3, 5]> : tensor<7xi32>})
    -> (tensor<7xi32> {test.value = dense<[9, -5, 5, -9, -2147483648, -2147483645, 5]> : tensor<7xi32>}) {
  %y = nn.add %a, %b : tensor<7xi32>
  return %y : tensor<7xi32>
}

func.func @ui8(%a: tensor<5xui8> {test.value = dense<[200, 255, 7, 0, 128]> : tensor<5xui8>},
    %b: tensor<5xui8> {test.value = dense<[100, 1, 2, 3, 127]> : tensor<5xui8>})
    -> (tensor<5xui8> {test.value = dense<[44, 0, 9, 3, 255]> : tensor<5xui8>}) {
  %y = nn.add %a, %b : tensor<5xui8>
  return %y : tensor<5xui8>
}

func.func @i64(%a: tensor<2xi64> {test.value = dense<[4611686018427387904, -5]> : tensor<2xi64>},
    %b: tensor<2xi64> {test.value = dense<[1, 6]> : tensor<2xi64>})
    -> (tensor<2xi64> {test.value = dense<[4611686018427387905, 1]> : tensor<2xi64>}) {
  %y = nn.add %a, %b : tensor<2xi64>
  return %y : tensor<2xi64>
}
