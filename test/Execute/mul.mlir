// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%a: tensor<11xf32> {test.value = dense<[1.5, -2.25, 0.0, -0.0, 0x7F800000, 0x7F800000, 0xFF800000, 0x7FC00000, 1.0, 1.0e+15, 3.0]> : tensor<11xf32>},
    %b: tensor<11xf32> {test.value = dense<[2.5, 0.5, -0.0, 0.0, 1.0, 0xFF800000, 2.0, 1.0, 0x7FC00000, 1.0e+15, -3.0]> : tensor<11xf32>})
    -> (tensor<11xf32> {test.value = dense<[3.75, -1.125, -0.0, -0.0, 0x7F800000, 0xFF800000, 0xFF800000, 0x7FC00000, 0x7FC00000, 9.9999994e+29, -9.0]> : tensor<11xf32>, test.tolerance = 1.0e-7}) {
  %y = nn.mul %a, %b : tensor<11xf32>
  return %y : tensor<11xf32>
}

func.func @scalar(%a: tensor<f32> {test.value = dense<-2.98> : tensor<f32>},
    %b: tensor<f32> {test.value = dense<0.59> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<-1.7581999> : tensor<f32>, test.tolerance = 1.0e-7}) {
  %y = nn.mul %a, %b : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%a: tensor<1x5x1xf32> {test.value = dense<[[[-2.98], [0.73], [-1.56], [-3.86], [-0.15]]]> : tensor<1x5x1xf32>},
    %b: tensor<1x5x1xf32> {test.value = dense<[[[0.59], [1.64], [0.99], [0.34], [1.39]]]> : tensor<1x5x1xf32>})
    -> (tensor<1x5x1xf32> {test.value = dense<[[[-1.7581999], [1.1972001], [-1.5444], [-1.3124], [-0.20850001]]]> : tensor<1x5x1xf32>, test.tolerance = 1.0e-7}) {
  %y = nn.mul %a, %b : tensor<1x5x1xf32>
  return %y : tensor<1x5x1xf32>
}

func.func @double(%a: tensor<5xf64> {test.value = dense<[-2.98, 0.73, -1.56, -3.86, -0.15]> : tensor<5xf64>},
    %b: tensor<5xf64> {test.value = dense<[0.59, 1.64, 0.99, 0.34, 1.39]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[-1.7582, 1.1971999999999998, -1.5444, -1.3124, -0.2085]> : tensor<5xf64>, test.tolerance = 1.0e-15}) {
  %y = nn.mul %a, %b : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%a: tensor<9xf16> {test.value = dense<[-2.98, 0.73, -1.56, -3.86, -0.15, -2.44, 1.27, -1.02, -3.31]> : tensor<9xf16>},
    %b: tensor<9xf16> {test.value = dense<[0.59, 1.64, 0.99, 0.34, 1.39, 0.74, 1.79, 1.14, 0.49]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[-1.758, 1.197, -1.544, -1.3125, -0.2085, -1.806, 2.273, -1.162, -1.622]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.mul %a, %b : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%a: tensor<9xbf16> {test.value = dense<[-2.984375, 0.73046875, -1.5625, -3.859375, -0.15039062, -2.4375, 1.2734375, -1.0234375, -3.3125]> : tensor<9xbf16>},
    %b: tensor<9xbf16> {test.value = dense<[0.58984375, 1.640625, 0.98828125, 0.33984375, 1.390625, 0.73828125, 1.7890625, 1.140625, 0.49023438]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[-1.7578125, 1.1953125, -1.546875, -1.3125, -0.20898438, -1.796875, 2.28125, -1.1640625, -1.625]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.mul %a, %b : tensor<9xbf16>
  return %y : tensor<9xbf16>
}

func.func @i32(%a: tensor<7xi32> {test.value = dense<[7, -7, 7, -7, 2147483647, -2147483648, 0]> : tensor<7xi32>},
    %b: tensor<7xi32> {test.value = dense<[2, 2, -2, -2, 1, 3, 5]> : tensor<7xi32>})
    -> (tensor<7xi32> {test.value = dense<[14, -14, -14, 14, 2147483647, -2147483648, 0]> : tensor<7xi32>}) {
  %y = nn.mul %a, %b : tensor<7xi32>
  return %y : tensor<7xi32>
}

func.func @ui8(%a: tensor<5xui8> {test.value = dense<[200, 255, 7, 0, 128]> : tensor<5xui8>},
    %b: tensor<5xui8> {test.value = dense<[100, 1, 2, 3, 127]> : tensor<5xui8>})
    -> (tensor<5xui8> {test.value = dense<[32, 255, 14, 0, 128]> : tensor<5xui8>}) {
  %y = nn.mul %a, %b : tensor<5xui8>
  return %y : tensor<5xui8>
}

func.func @i64(%a: tensor<2xi64> {test.value = dense<[4611686018427387904, -5]> : tensor<2xi64>},
    %b: tensor<2xi64> {test.value = dense<[1, 6]> : tensor<2xi64>})
    -> (tensor<2xi64> {test.value = dense<[4611686018427387904, -30]> : tensor<2xi64>}) {
  %y = nn.mul %a, %b : tensor<2xi64>
  return %y : tensor<2xi64>
}
