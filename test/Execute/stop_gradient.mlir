// RUN: lowtide-execute %s

// The operand, bit for bit, returned and read.
func.func @values(%x: tensor<2x3xf32> {test.value = dense<[[0.0, 1.5, -2.25], [0x7F800000, -0.0, 3.0e-41]]> : tensor<2x3xf32>},
    %h: tensor<3xf16> {test.value = dense<[1.0, -0.5, 65504.0]> : tensor<3xf16>},
    %i: tensor<2xi64> {test.value = dense<[9223372036854775807, -1]> : tensor<2xi64>})
    -> (tensor<2x3xf32> {test.value = dense<[[0.0, 1.5, -2.25], [0x7F800000, -0.0, 3.0e-41]]> : tensor<2x3xf32>, test.tolerance = 0.0},
        tensor<3xf16> {test.value = dense<[1.0, 0.25, 0x7C00]> : tensor<3xf16>, test.tolerance = 0.0},
        tensor<2xi64> {test.value = dense<[-9223372036854775807, 1]> : tensor<2xi64>, test.tolerance = 0.0}) {
  %0 = nn.stop_gradient %x : tensor<2x3xf32>
  %1 = nn.stop_gradient %h : tensor<3xf16>
  %2 = nn.mul %h, %1 : tensor<3xf16>
  %3 = nn.stop_gradient %i : tensor<2xi64>
  %4 = nn.neg %3 : tensor<2xi64>
  return %0, %2, %4 : tensor<2x3xf32>, tensor<3xf16>, tensor<2xi64>
}
