// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%x: tensor<13xf32> {test.value = dense<[0.0, 0x7F800000, 0xFF800000, 0x7FC00000, 100.0, -100.0, -1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27]> : tensor<13xf32>})
    -> (tensor<13xf32> {test.value = dense<[0.6931472, 0x7F800000, 0.0, 0x7FC00000, 100.0, 3.8e-44, 0.12933317, 1.8932104, 0.45184544, 0.055688947, 1.2058651, 0.21263067, 2.3683167]> : tensor<13xf32>}) {
  %y = nn.softplus %x : tensor<13xf32>
  return %y : tensor<13xf32>
}

func.func @scalar(%x: tensor<f32> {test.value = dense<-1.98> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<0.12933317> : tensor<f32>}) {
  %y = nn.softplus %x : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%x: tensor<1x3x1xf32> {test.value = dense<[[[-1.98], [1.73], [-0.56]]]> : tensor<1x3x1xf32>})
    -> (tensor<1x3x1xf32> {test.value = dense<[[[0.12933317], [1.8932104], [0.45184544]]]> : tensor<1x3x1xf32>}) {
  %y = nn.softplus %x : tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

func.func @double(%x: tensor<5xf64> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[0.12933317507561276, 1.8932104388244755, 0.45184542734430644, 0.05568894161167587, 1.2058650684421959]> : tensor<5xf64>, test.tolerance = 1.0e-14}) {
  %y = nn.softplus %x : tensor<5xf64>
  return %y : tensor<5xf64>
}

func.func @half(%x: tensor<9xf16> {test.value = dense<[-1.98, 1.73, -0.56, -2.86, 0.85, -1.44, 2.27, -0.02, -2.31]> : tensor<9xf16>})
    -> (tensor<9xf16> {test.value = dense<[0.1293, 1.894, 0.452, 0.05573, 1.206, 0.2125, 2.367, 0.683, 0.0946]> : tensor<9xf16>, test.tolerance = 0.0}) {
  %y = nn.softplus %x : tensor<9xf16>
  return %y : tensor<9xf16>
}

func.func @brain(%x: tensor<9xbf16> {test.value = dense<[-1.9765625, 1.7265625, -0.55859375, -2.859375, 0.8515625, -1.4375, 2.265625, -0.020019531, -2.3125]> : tensor<9xbf16>})
    -> (tensor<9xbf16> {test.value = dense<[0.12988281, 1.890625, 0.453125, 0.055664062, 1.203125, 0.21289062, 2.359375, 0.68359375, 0.09423828]> : tensor<9xbf16>, test.tolerance = 0.0}) {
  %y = nn.softplus %x : tensor<9xbf16>
  return %y : tensor<9xbf16>
}
