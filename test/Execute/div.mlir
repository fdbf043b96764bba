// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%a: tensor<9xf32> {test.value = dense<[1.5, -2.25, 1.0, -1.0, 0.0, 0x7F800000, 0x7FC00000, 1.0, 7.0]> : tensor<9xf32>},
    %b: tensor<9xf32> {test.value = dense<[2.5, 0.5, 0.0, 0.0, 0.0, 2.0, 1.0, 0x7F800000, -3.0]> : tensor<9xf32>})
    -> (tensor<9xf32> {test.value = dense<[0.6, -4.5, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800000, 0x7FC00000, 0.0, -2.3333333]> : tensor<9xf32>, test.tolerance = 1.0e-7}) {
  %y = nn.div %a, %b : tensor<9xf32>
  return %y : tensor<9xf32>
}

func.func @scalar(%a: tensor<f32> {test.value = dense<-2.98> : tensor<f32>},
    %b: tensor<f32> {test.value = dense<0.59> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<-5.0508475> : tensor<f32>, test.tolerance = 1.0e-7}) {
  %y = nn.div %a, %b : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%a: tensor<1x5x1xf32> {test.value = dense<[[[-2.98], [0.73], [-1.56], [-3.86], [-0.15]]]> : tensor<1x5x1xf32>},
    %b: tensor<1x5x1xf32> {test.value = dense<[[[0.59], [1.64], [0.99], [0.34], [1.39]]]> : tensor<1x5x1xf32>})
    -> (tensor<1x5x1xf32> {test.value = dense<[[[-5.0508475], [0.44512197], [-1.5757575], [-11.352941], [-0.10791367]]]> : tensor<1x5x1xf32>, test.tolerance = 1.0e-7}) {
  %y = nn.div %a, %b : tensor<1x5x1xf32>
  return %y : tensor<1x5x1xf32>
}

func.func @double(%a: tensor<5xf64> {test.value = dense<[-2.98, 0.73, -1.56, -3.86, -0.15]> : tensor<5xf64>},
    %b: tensor<5xf64> {test.value = dense<[0.59, 1.64, 0.99, 0.34, 1.39]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[-5.0508474576271185, 0.4451219512195122, -1.575757575757576, -11.352941176470587, -0.10791366906474821]> : tensor<5xf64>, test.tolerance = 1.0e-15}) {
  %y = nn.div %a, %b : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%a: tensor<9xf16> {test.value = dense<[-2.98, 0.73, -1.56, -3.86, -0.15, -2.44, 1.27, -1.02, -3.31]> : tensor<9xf16>},
    %b: tensor<9xf16> {test.value = dense<[0.59, 1.64, 0.99, 0.34, 1.39, 0.74, 1.79, 1.14, 0.49]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[-5.055, 0.4453, -1.575, -11.35, -0.108, -3.295, 0.709, -0.8945, -6.758]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.div %a, %b : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%a: tensor<9xbf16> {test.value = dense<[-2.984375, 0.73046875, -1.5625, -3.859375, -0.15039062, -2.4375, 1.2734375, -1.0234375, -3.3125]> : tensor<9xbf16>},
    %b: tensor<9xbf16> {test.value = dense<[0.58984375, 1.640625, 0.98828125, 0.33984375, 1.390625, 0.73828125, 1.7890625, 1.140625, 0.49023438]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[-5.0625, 0.4453125, -1.578125, -11.375, -0.107910156, -3.296875, 0.7109375, -0.8984375, -6.75]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.div %a, %b : tensor<9xbf16>
  return %y : tensor<9xbf16>
}

func.func @i32(%a: tensor<5xi32> {test.value = dense<[7, -7, 7, -7, 0]> : tensor<5xi32>},
    %b: tensor<5xi32> {test.value = dense<[2, 2, -2, -2, 5]> : tensor<5xi32>})
    -> (tensor<5xi32> {test.value = dense<[3, -3, -3, 3, 0]> : tensor<5xi32>}) {
  %y = nn.div %a, %b : tensor<5xi32>
  return %y : tensor<5xi32>
}

func.func @ui8(%a: tensor<5xui8> {test.value = dense<[200, 255, 7, 0, 128]> : tensor<5xui8>},
    %b: tensor<5xui8> {test.value = dense<[100, 1, 2, 3, 127]> : tensor<5xui8>})
    -> (tensor<5xui8> {test.value = dense<[2, 255, 3, 0, 1]> : tensor<5xui8>}) {
  %y = nn.div %a, %b : tensor<5xui8>
  return %y : tensor<5xui8>
}
