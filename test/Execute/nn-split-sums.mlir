// RUN: lowtide-execute %s
// RUN: lowtide-opt %s --nn-split-sums=min-bytes=1 --canonicalize | lowtide-execute
// RUN: lowtide-opt %s --nn-split-sums=min-bytes=1 --canonicalize 2>/dev/null | FileCheck %s
// CHECK-NOT: {{-> tensor<3x(3|18)x4xf32>}}
// Experts as written and one after the other, in as many parts as divide them: PyTorch's values in f64 (Inputs/split_sums.py).

func.func @three(%x: tensor<3x2xf32> {test.value = dense<[[-1.32, 1.15], [-0.38, -1.9], [0.57, -0.96]]> : tensor<3x2xf32>},
    %gate: tensor<3x3xf32> {test.value = dense<[[0.17, 0.79, 0.41], [0.02, 0.64, 0.26], [0.88, 0.5, 0.11]]> : tensor<3x3xf32>},
    %up: tensor<3x2x4xf32> {train.binding = #train.param<"up">, test.value = dense<[[[-0.57, 0.97, 0.02, -0.94], [0.61, -0.35, 1.2, 0.24]], [[-0.71, 0.83, -0.12, 1.42], [0.47, -0.49, 1.06, 0.1]], [[-0.85, 0.69, -0.26, 1.28], [0.33, -0.63, 0.92, -0.04]]]> : tensor<3x2x4xf32>},
    %down: tensor<3x4x2xf32> {train.binding = #train.param<"down">, test.value = dense<[[[-1.08, 0.47], [-0.48, -1.44], [0.11, -0.85], [0.7, -0.26]], [[-1.21, 0.33], [-0.62, 0.92], [-0.03, -0.99], [0.56, -0.4]], [[-1.35, 0.19], [-0.76, 0.78], [-0.17, -1.13], [0.42, -0.54]]]> : tensor<3x4x2xf32>})
    -> (tensor<3x2xf32> {test.value = dense<[[-2.236089, -1.2777795], [-0.23222163, 0.4921147], [-0.26748246, -0.48723915]]> : tensor<3x2xf32>}) {
  %t = nn.transpose %up [1, 0, 2] : tensor<3x2x4xf32> -> tensor<2x3x4xf32>
  %r = nn.reshape %t : tensor<2x3x4xf32> -> tensor<2x12xf32>
  %h = nn.dot %x, %r : (tensor<3x2xf32>, tensor<2x12xf32>) -> tensor<3x12xf32>
  %g = nn.gelu %h : tensor<3x12xf32>
  %s = nn.reshape %g : tensor<3x12xf32> -> tensor<3x3x4xf32>
  %p = nn.transpose %s [1, 0, 2] : tensor<3x3x4xf32> -> tensor<3x3x4xf32>
  %o = nn.dot %p, %down : (tensor<3x3x4xf32>, tensor<3x4x2xf32>) -> tensor<3x3x2xf32>
  %q = nn.transpose %o [1, 0, 2] : tensor<3x3x2xf32> -> tensor<3x3x2xf32>
  %w = nn.broadcast %gate dims = [0, 1] : tensor<3x3xf32> -> tensor<3x3x2xf32>
  %m = nn.mul %w, %q : tensor<3x3x2xf32>
  %y = nn.reduce_sum %m dims = [1] : tensor<3x3x2xf32> -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

func.func @two(%x: tensor<3x2xf32> {test.value = dense<[[-1.32, 1.15], [-0.38, -1.9], [0.57, -0.96]]> : tensor<3x2xf32>},
    %gate: tensor<3x2xf32> {test.value = dense<[[0.17, 0.79], [0.41, 0.02], [0.64, 0.26]]> : tensor<3x2xf32>},
    %up: tensor<2x2x4xf32> {train.binding = #train.param<"up">, test.value = dense<[[[-0.57, 0.97, 0.02, -0.94], [0.61, -0.35, 1.2, 0.24]], [[-0.71, 0.83, -0.12, 1.42], [0.47, -0.49, 1.06, 0.1]]]> : tensor<2x2x4xf32>},
    %down: tensor<2x4x2xf32> {train.binding = #train.param<"down">, test.value = dense<[[[-1.08, 0.47], [-0.48, -1.44], [0.11, -0.85], [0.7, -0.26]], [[-1.21, 0.33], [-0.62, 0.92], [-0.03, -0.99], [0.56, -0.4]]]> : tensor<2x4x2xf32>})
    -> (tensor<3x2xf32> {test.value = dense<[[-1.3842108, -0.7792964], [0.018588142, -0.11612439], [-0.18693359, -0.4540109]]> : tensor<3x2xf32>}) {
  %t = nn.transpose %up [1, 0, 2] : tensor<2x2x4xf32> -> tensor<2x2x4xf32>
  %r = nn.reshape %t : tensor<2x2x4xf32> -> tensor<2x8xf32>
  %h = nn.dot %x, %r : (tensor<3x2xf32>, tensor<2x8xf32>) -> tensor<3x8xf32>
  %g = nn.gelu %h : tensor<3x8xf32>
  %s = nn.reshape %g : tensor<3x8xf32> -> tensor<3x2x4xf32>
  %p = nn.transpose %s [1, 0, 2] : tensor<3x2x4xf32> -> tensor<2x3x4xf32>
  %o = nn.dot %p, %down : (tensor<2x3x4xf32>, tensor<2x4x2xf32>) -> tensor<2x3x2xf32>
  %q = nn.transpose %o [1, 0, 2] : tensor<2x3x2xf32> -> tensor<3x2x2xf32>
  %w = nn.broadcast %gate dims = [0, 1] : tensor<3x2xf32> -> tensor<3x2x2xf32>
  %m = nn.mul %w, %q : tensor<3x2x2xf32>
  %y = nn.reduce_sum %m dims = [1] : tensor<3x2x2xf32> -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

func.func @eighteen(%x: tensor<3x2xf32> {test.value = dense<[[-1.32, 1.15], [-0.38, -1.9], [0.57, -0.96]]> : tensor<3x2xf32>},
    %gate: tensor<3x18xf32> {test.value = dense<[[0.17, 0.79, 0.41, 0.02, 0.64, 0.26, 0.88, 0.5, 0.11, 0.73, 0.35, 0.97, 0.59, 0.2, 0.82, 0.44, 0.06, 0.68], [0.29, 0.91, 0.53, 0.15, 0.77, 0.38, 0.0, 0.62, 0.24, 0.86, 0.47, 0.09, 0.71, 0.33, 0.95, 0.57, 0.18, 0.8], [0.42, 0.04, 0.66, 0.27, 0.89, 0.51, 0.13, 0.75, 0.36, 0.98, 0.6, 0.22, 0.84, 0.45, 0.07, 0.69, 0.31, 0.93]]> : tensor<3x18xf32>},
    %up: tensor<18x2x4xf32> {train.binding = #train.param<"up">, test.value = dense<[[[-0.57, 0.97, 0.02, -0.94], [0.61, -0.35, 1.2, 0.24]], [[-0.71, 0.83, -0.12, 1.42], [0.47, -0.49, 1.06, 0.1]], [[-0.85, 0.69, -0.26, 1.28], [0.33, -0.63, 0.92, -0.04]], [[-0.99, 0.55, -0.4, 1.14], [0.19, -0.77, 0.78, -0.18]], [[1.37, 0.41, -0.54, 1.0], [0.05, -0.91, 0.64, -0.32]], [[1.23, 0.27, -0.68, 0.86], [-0.09, 1.45, 0.5, -0.46]], [[1.09, 0.13, -0.82, 0.72], [-0.23, 1.31, 0.36, -0.6]], [[0.95, -0.01, -0.96, 0.59], [-0.37, 1.18, 0.22, -0.73]], [[0.81, -0.14, 1.4, 0.45], [-0.51, 1.04, 0.08, -0.87]], [[0.67, -0.28, 1.26, 0.31], [-0.65, 0.9, -0.06, 1.49]], [[0.53, -0.42, 1.12, 0.17], [-0.79, 0.76, -0.2, 1.35]], [[0.39, -0.56, 0.98, 0.03], [-0.93, 0.62, -0.34, 1.21]], [[0.25, -0.7, 0.84, -0.11], [1.43, 0.48, -0.48, 1.07]], [[0.11, -0.84, 0.7, -0.25], [1.29, 0.34, -0.62, 0.93]], [[-0.03, -0.98, 0.56, -0.39], [1.15, 0.2, -0.75, 0.79]], [[-0.16, 1.38, 0.43, -0.53], [1.02, 0.06, -0.89, 0.65]], [[-0.3, 1.24, 0.29, -0.67], [0.88, -0.08, 1.47, 0.51]], [[-0.44, 1.1, 0.15, -0.81], [0.74, -0.22, 1.33, 0.37]]]> : tensor<18x2x4xf32>},
    %down: tensor<18x4x2xf32> {train.binding = #train.param<"down">, test.value = dense<[[[-1.08, 0.47], [-0.48, -1.44], [0.11, -0.85], [0.7, -0.26]], [[-1.21, 0.33], [-0.62, 0.92], [-0.03, -0.99], [0.56, -0.4]], [[-1.35, 0.19], [-0.76, 0.78], [-0.17, -1.13], [0.42, -0.54]], [[-1.49, 0.05], [-0.9, 0.64], [-0.31, -1.27], [0.28, -0.68]], [[0.87, -0.09], [-1.04, 0.5], [-0.45, -1.41], [0.14, -0.82]], [[0.73, -0.23], [-1.18, 0.36], [-0.59, 0.95], [-0.0, -0.96]], [[0.59, -0.37], [-1.32, 0.22], [-0.73, 0.81], [-0.14, -1.1]], [[0.45, -0.51], [-1.46, 0.09], [-0.87, 0.68], [-0.28, -1.23]], [[0.31, -0.64], [0.9, -0.05], [-1.01, 0.54], [-0.42, -1.37]], [[0.17, -0.78], [0.76, -0.19], [-1.15, 0.4], [-0.56, 0.99]], [[0.03, -0.92], [0.62, -0.33], [-1.29, 0.26], [-0.7, 0.85]], [[-0.11, -1.06], [0.48, -0.47], [-1.43, 0.12], [-0.84, 0.71]], [[-0.25, -1.2], [0.34, -0.61], [0.93, -0.02], [-0.98, 0.57]], [[-0.39, -1.34], [0.2, -0.75], [0.79, -0.16], [-1.12, 0.43]], [[-0.53, -1.48], [0.06, -0.89], [0.65, -0.3], [-1.25, 0.29]], [[-0.66, 0.88], [-0.07, -1.03], [0.52, -0.44], [-1.39, 0.15]], [[-0.8, 0.74], [-0.21, -1.17], [0.38, -0.58], [0.97, 0.01]], [[-0.94, 0.6], [-0.35, -1.31], [0.24, -0.72], [0.83, -0.13]]]> : tensor<18x4x2xf32>})
    -> (tensor<3x2xf32> {test.value = dense<[[-10.8193865, -1.8411812], [0.12366183, -1.861321], [-0.066710316, -5.1446514]]> : tensor<3x2xf32>}) {
  %t = nn.transpose %up [1, 0, 2] : tensor<18x2x4xf32> -> tensor<2x18x4xf32>
  %r = nn.reshape %t : tensor<2x18x4xf32> -> tensor<2x72xf32>
  %h = nn.dot %x, %r : (tensor<3x2xf32>, tensor<2x72xf32>) -> tensor<3x72xf32>
  %g = nn.gelu %h : tensor<3x72xf32>
  %s = nn.reshape %g : tensor<3x72xf32> -> tensor<3x18x4xf32>
  %p = nn.transpose %s [1, 0, 2] : tensor<3x18x4xf32> -> tensor<18x3x4xf32>
  %o = nn.dot %p, %down : (tensor<18x3x4xf32>, tensor<18x4x2xf32>) -> tensor<18x3x2xf32>
  %q = nn.transpose %o [1, 0, 2] : tensor<18x3x2xf32> -> tensor<3x18x2xf32>
  %w = nn.broadcast %gate dims = [0, 1] : tensor<3x18xf32> -> tensor<3x18x2xf32>
  %m = nn.mul %w, %q : tensor<3x18x2xf32>
  %y = nn.reduce_sum %m dims = [1] : tensor<3x18x2xf32> -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}
