// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, -0.0, 0x7F800000, 0xFF800000, 0x7FC00000, 1.0e-6, 5.0, -1.98, 1.73, -0.56, -2.86, 0.85, -1.44]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0.0, -0.0, 1.0, -1.0, 0x7FC00000, 1.1283792e-6, 1.0, -0.994892, 0.9855785, -0.57161576, -0.9999476, 0.7706681, -0.9582966]> : tensor<13xf32>}) {
  %y = nn.erf %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-1.98> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<-0.994892> : tensor<f32>}) {
  %y = nn.erf %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[-1.98], [1.73], [-0.56]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[-0.994892], [0.9855785], [-0.57161576]]]> : tensor<1x3x1xf32>}) {
  %y = nn.erf %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[-0.9948920003868136, 0.9855784998281805, -0.5716157638237684, -0.9999475988269556, 0.7706680576083526]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.erf %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02, -2.31]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[-0.995, 0.986, -0.572, -1.0, 0.7705, -0.9585, 0.9985, -0.02257, -0.999]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.erf %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[-1.9765625, 1.7265625, -0.55859375, -2.859375, 0.8515625, -1.4375, 2.265625, -0.020019531, -2.3125]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[-0.99609375, 0.984375, -0.5703125, -1.0, 0.7734375, -0.95703125, 1.0, -0.022583008, -1.0]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.erf %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
