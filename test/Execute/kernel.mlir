// RUN: lowtide-execute %s
// Ops in one kernel compute what they compute alone: NumPy's values (Inputs/layers.py).

func.func @row(%x: tensor<3x5xf32> {test.value = dense<[[-1.32, 1.15, -0.38, -1.9, 0.57], [-0.96, 1.51, -0.02, -1.54, 0.93], [-0.6, 1.87, 0.35, -1.18, 1.29]]> : tensor<3x5xf32>},
    %w: tensor<5xf32> {test.value = dense<[0.76, 1.68, 1.11, 0.54, 1.46]> : tensor<5xf32>})
    -> (tensor<3x5xf32> {test.value = dense<[[-1.0032, 1.9319999, -0.4218, -1.026, 0.8322], [-0.72959995, 2.5368, -0.0222, -0.8316, 1.3578], [-0.456, 3.1416, 0.3885, -0.6372, 1.8834]]> : tensor<3x5xf32>},
        tensor<3xf32> {test.value = dense<[0.31319985, 2.3112, 4.3203]> : tensor<3xf32>}) {
  %y0, %y1 = nn.kernel row (%a = %x, %b = %w) : (tensor<3x5xf32>, tensor<5xf32>) -> (tensor<3x5xf32>, tensor<3xf32>) {
    %s = nn.broadcast %b dims = [1] : tensor<5xf32> -> tensor<3x5xf32>
    %p = nn.mul %a, %s : tensor<3x5xf32>
    %r = nn.reduce_sum %p dims = [1] : tensor<3x5xf32> -> tensor<3xf32>
    nn.yield %p, %r : tensor<3x5xf32>, tensor<3xf32>
  }
  return %y0, %y1 : tensor<3x5xf32>, tensor<3xf32>
}
