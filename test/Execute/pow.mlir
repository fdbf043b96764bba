// RUN: lowtide-execute %s
// NumPy's and PyTorch's values (Inputs/elementwise.py).

func.func @odd(%a: tensor<11xf32> {test.value = dense<[2.0, 2.0, 0.0, 0.0, -2.0, -2.0, -2.0, 1.0, 0x7FC00000, 4.0, 10.0]> : tensor<11xf32>},
    %b: tensor<11xf32> {test.value = dense<[3.0, -1.0, 0.0, 2.0, 2.0, 3.0, 0.5, 0x7FC00000, 0.0, 0.5, -3.0]> : tensor<11xf32>})
    -> (tensor<11xf32> {test.value = dense<[8.0, 0.5, 1.0, 0.0, 4.0, -8.0, 0x7FC00000, 1.0, 1.0, 2.0, 0.001]> : tensor<11xf32>, test.tolerance = 1.0e-6}) {
  %y = nn.pow %a, %b : tensor<11xf32>
  return %y : tensor<11xf32>
}

func.func @scalar(%a: tensor<f32> {test.value = dense<0.51> : tensor<f32>},
    %b: tensor<f32> {test.value = dense<0.59> : tensor<f32>})
    -> (tensor<f32> {test.value = dense<0.6721503> : tensor<f32>, test.tolerance = 1.0e-6}) {
  %y = nn.pow %a, %b : tensor<f32>
  return %y : tensor<f32>
}

func.func @ones(%a: tensor<1x5x1xf32> {test.value = dense<[[[0.51], [1.62], [0.93], [0.24], [1.36]]]> : tensor<1x5x1xf32>},
    %b: tensor<1x5x1xf32> {test.value = dense<[[[0.59], [1.64], [0.99], [0.34], [1.39]]]> : tensor<1x5x1xf32>})
    -> (tensor<1x5x1xf32> {test.value = dense<[[[0.6721503], [2.2059956], [0.93067515], [0.615562], [1.5332716]]]> : tensor<1x5x1xf32>, test.tolerance = 1.0e-6}) {
  %y = nn.pow %a, %b : tensor<1x5x1xf32>
  return %y : tensor<1x5x1xf32>
}

func.func @double(%a: tensor<5xf64> {test.value = dense<[0.51, 1.62, 0.93, 0.24, 1.36]> : tensor<5xf64>},
    %b: tensor<5xf64> {test.value = dense<[0.59, 1.64, 0.99, 0.34, 1.39]> : tensor<5xf64>})
    -> (tensor<5xf64> {test.value = dense<[0.6721503109744729, 2.205995508432673, 0.9306751523951187, 0.6155620285621395, 1.5332715685721974]> : tensor<5xf64>, test.tolerance = 1.0e-15}) {
  %y = nn.pow %a, %b : tensor<5xf64>
  return %y : tensor<5xf64>
}
