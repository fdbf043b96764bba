// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, 0xFF800000, 0x7FC00000, 1.0e-6, -1.0e-6, 20.0, -1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0.0, -1.0, 0x7FC00000, 1.0000005e-6, -9.999995e-7, 4.851652e+8, -0.8619308, 4.640654, -0.42879093, -0.94273126, 1.3396469, -0.76307225, 8.6794]> : tensor<13xf32>}) {
  %y = nn.expm1 %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-1.98> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<-0.8619308> : tensor<f32>}) {
  %y = nn.expm1 %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[-1.98], [1.73], [-0.56]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[-0.8619308], [4.640654], [-0.42879093]]]> : tensor<1x3x1xf32>}) {
  %y = nn.expm1 %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[-0.8619307626891072, 4.6406539084283205, -0.42879093615118513, -0.9427312397345327, 1.3396468519259908]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.expm1 %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02, -2.31]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[-0.862, 4.645, -0.4287, -0.943, 1.34, -0.763, 8.67, -0.0198, -0.901]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.expm1 %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[-1.9765625, 1.7265625, -0.55859375, -2.859375, 0.8515625, -1.4375, 2.265625, -0.020019531, -2.3125]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[-0.86328125, 4.625, -0.42773438, -0.94140625, 1.34375, -0.76171875, 8.625, -0.01977539, -0.90234375]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.expm1 %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
