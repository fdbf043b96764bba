// RUN: lowtide-execute %s
// torch.lerp (Inputs/codes.py).

func.func @slow(%average: tensor<2x3xf32> {test.value = dense<[[0.5, -1.25, 3.0], [0.001, 0.0, -7.5]]> : tensor<2x3xf32>},
    %now: tensor<2x3xf32> {test.value = dense<[[0.75, -1.0, -2.0], [1000.0, 1.0, -7.5]]> : tensor<2x3xf32>},
    %updates: tensor<i64> {test.value = dense<7> : tensor<i64>})
    -> (tensor<2x3xf32> {test.value = dense<[[0.50025, -1.24975, 2.995], [1.000999, 0.001, -7.5]]> : tensor<2x3xf32>, test.tolerance = 1.0e-6}) {
  %y = train.moving_average %average to %now updates %updates {decay = 0.999} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<i64>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

func.func @fast(%average: tensor<2x3xf32> {test.value = dense<[[0.5, -1.25, 3.0], [0.001, 0.0, -7.5]]> : tensor<2x3xf32>},
    %now: tensor<2x3xf32> {test.value = dense<[[0.75, -1.0, -2.0], [1000.0, 1.0, -7.5]]> : tensor<2x3xf32>},
    %updates: tensor<i64> {test.value = dense<1> : tensor<i64>})
    -> (tensor<2x3xf32> {test.value = dense<[[0.6875, -1.0625, -0.75], [750.00024, 0.75, -7.5]]> : tensor<2x3xf32>, test.tolerance = 1.0e-6}) {
  %y = train.moving_average %average to %now updates %updates {decay = 0.25} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<i64>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

func.func @first(%average: tensor<2x3xf32> {test.value = dense<[[0.5, -1.25, 3.0], [0.001, 0.0, -7.5]]> : tensor<2x3xf32>},
    %now: tensor<2x3xf32> {test.value = dense<[[0.75, -1.0, -2.0], [1000.0, 1.0, -7.5]]> : tensor<2x3xf32>},
    %updates: tensor<i64> {test.value = dense<0> : tensor<i64>})
    -> (tensor<2x3xf32> {test.value = dense<[[0.75, -1.0, -2.0], [1000.0, 1.0, -7.5]]> : tensor<2x3xf32>, test.tolerance = 0.0}) {
  %y = train.moving_average %average to %now updates %updates {decay = 0.999} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<i64>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
