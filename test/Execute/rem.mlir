// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%a: tensor<7xf32> {test.value = dense<[7.0, -7.0, 7.0, -7.0, 5.5, -0.75, 6.0]> : tensor<7xf32>},
    %b: tensor<7xf32> {test.value = dense<[3.0, 3.0, -3.0, -3.0, 0.25, 0.5, 1.5]> : tensor<7xf32>})
    -> (tensor<7xf32> {test.value = dense<[1.0, -1.0, 1.0, -1.0, 0.0, -0.25, 0.0]> : tensor<7xf32>, test.tolerance = 1.0e-6}) {
  %y = nn.rem %a, %b : tensor<7xf32>
  return %y : tensor<7xf32>
}

func.func @scalar(%a: tensor<f32> {test.value = dense<-2.98> : tensor<f32>},
    %b: tensor<f32> {test.value = dense<0.59> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<-0.03000015> : tensor<f32>, test.tolerance = 1.0e-6}) {
  %y = nn.rem %a, %b : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%a: tensor<1x5x1xf32> {test.value = dense<[[[-2.98], [0.73], [-1.56], [-3.86], [-0.15]]]> : tensor<1x5x1xf32>},
    %b: tensor<1x5x1xf32> {test.value = dense<[[[0.59], [1.64], [0.99], [0.34], [1.39]]]> : tensor<1x5x1xf32>})
    -> (tensor<1x5x1xf32> {test.value = dense<[[[-0.03000015], [0.73], [-0.56999993], [-0.119999856], [-0.15]]]> : tensor<1x5x1xf32>, test.tolerance = 1.0e-6}) {
  %y = nn.rem %a, %b : tensor<1x5x1xf32>
  return %y : tensor<1x5x1xf32>
}

func.func @double(%a: tensor<5xf64> {test.value = dense<[-2.98, 0.73, -1.56, -3.86, -0.15]> : tensor<5xf64>},
    %b: tensor<5xf64> {test.value = dense<[0.59, 1.64, 0.99, 0.34, 1.39]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[-0.030000000000000138, 0.73, -0.5700000000000001, -0.11999999999999961, -0.15]> : tensor<5xf64>, test.tolerance = 1.0e-15}) {
  %y = nn.rem %a, %b : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%a: tensor<9xf16> {test.value = dense<[-2.98, 0.73, -1.56, -3.86, -0.15, -2.44, 1.27, -1.02, -3.31]> : tensor<9xf16>},
    %b: tensor<9xf16> {test.value = dense<[0.59, 1.64, 0.99, 0.34, 1.39, 0.74, 1.79, 1.14, 0.49]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[-0.03125, 0.73, -0.5693, -0.1184, -0.15, -0.2188, 1.27, -1.02, -0.3706]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.rem %a, %b : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%a: tensor<9xbf16> {test.value = dense<[-2.984375, 0.73046875, -1.5625, -3.859375, -0.15039062, -2.4375, 1.2734375, -1.0234375, -3.3125]> : tensor<9xbf16>},
    %b: tensor<9xbf16> {test.value = dense<[0.58984375, 1.640625, 0.98828125, 0.33984375, 1.390625, 0.73828125, 1.7890625, 1.140625, 0.49023438]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[-0.03515625, 0.73046875, -0.57421875, -0.12109375, -0.15039062, -0.22265625, 1.2734375, -1.0234375, -0.37109375]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.rem %a, %b : tensor<9xbf16>
  return %y : tensor<9xbf16>
}

func.func @i32(%a: tensor<7xi32> {test.value = dense<[7, -7, 7, -7, 2147483647, -2147483648, 0]> : tensor<7xi32>},
    %b: tensor<7xi32> {test.value = dense<[2, 2, -2, -2, 1, 3, 5]> : tensor<7xi32>})
    -> (tensor<7xi32> {test.value = dense<[1, -1, 1, -1, 0, -2, 0]> : tensor<7xi32>}) {
  %y = nn.rem %a, %b : tensor<7xi32>
  return %y : tensor<7xi32>
}

func.func @ui8(%a: tensor<5xui8> {test.value = dense<[200, 255, 7, 0, 128]> : tensor<5xui8>},
    %b: tensor<5xui8> {test.value = dense<[100, 1, 2, 3, 127]> : tensor<5xui8>})
    -> (tensor<5xui8> {test.value = dense<[0, 0, 1, 0, 1]> : tensor<5xui8>}) {
  %y = nn.rem %a, %b : tensor<5xui8>
  return %y : tensor<5xui8>
}
