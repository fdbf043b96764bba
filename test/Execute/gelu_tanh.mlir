// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, 0x7FC00000, 9.0, -9.0, -1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02, -2.31]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0.0, 0x7FC00000, 9.0, -0.0, -0.047145855, 1.6575456, -0.16116011, -0.005603919, 0.6818866, -0.10813331, 2.2439773, -0.0098404335, -0.023780854]> : tensor<13xf32>}) {
  %y = nn.gelu_tanh %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-1.98> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<-0.047145855> : tensor<f32>}) {
  %y = nn.gelu_tanh %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[-1.98], [1.73], [-0.56]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[-0.047145855], [1.6575456], [-0.16116011]]]> : tensor<1x3x1xf32>}) {
  %y = nn.gelu_tanh %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[-0.0471458555082256, 1.6575455854976364, -0.16116010538267675, -0.0056039172180400365, 0.6818865882996429]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.gelu_tanh %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02, -2.31]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[-0.04712, 1.658, -0.1611, -0.005615, 0.682, -0.1081, 2.244, -0.00984, -0.02376]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.gelu_tanh %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[-1.9765625, 1.7265625, -0.55859375, -2.859375, 0.8515625, -1.4375, 2.265625, -0.020019531, -2.3125]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[-0.04736328, 1.65625, -0.16113281, -0.0056152344, 0.68359375, -0.10839844, 2.234375, -0.00982666, -0.02368164]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.gelu_tanh %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
