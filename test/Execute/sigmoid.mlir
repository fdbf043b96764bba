// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, 0x7F800000, 0xFF800000, 0x7FC00000, 30.0, -30.0, -1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0.5, 1.0, 0.0, 0x7FC00000, 1.0, 9.357623e-14, 0.12131884, 0.84941244, 0.36354744, 0.054166704, 0.7005671, 0.19154534, 0.90636176]> : tensor<13xf32>}) {
  %y = nn.sigmoid %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-1.98> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<0.12131884> : tensor<f32>}) {
  %y = nn.sigmoid %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[-1.98], [1.73], [-0.56]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[0.12131884], [0.84941244], [0.36354744]]]> : tensor<1x3x1xf32>}) {
  %y = nn.sigmoid %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[0.12131883789173686, 0.8494124202541561, 0.36354745971843366, 0.05416670048123607, 0.7005671424739729]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.sigmoid %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02, -2.31]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[0.1213, 0.8496, 0.3635, 0.0542, 0.7007, 0.1915, 0.9062, 0.495, 0.0903]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.sigmoid %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[-1.9765625, 1.7265625, -0.55859375, -2.859375, 0.8515625, -1.4375, 2.265625, -0.020019531, -2.3125]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[0.12158203, 0.84765625, 0.36328125, 0.05419922, 0.69921875, 0.19238281, 0.90625, 0.49414062, 0.09033203]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.sigmoid %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
