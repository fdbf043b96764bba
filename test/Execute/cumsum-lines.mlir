// RUN: lowtide-execute %s
// Lines in one pass, next to the reference, which adds up for each element. Tiles of lines, the last of them narrow; what elementwise ops make of the sums goes along.
func.func @tiles(%x: tensor<2x70x1x301xi32>, %w: tensor<2x70x301xi32>) -> (tensor<2x70x301xi32>, tensor<2x70x1x301xi32>) {
  %y = nn.cumsum %x dim = 1 {reverse} : tensor<2x70x1x301xi32>
  %r = nn.reshape %y : tensor<2x70x1x301xi32> -> tensor<2x70x301xi32>
  %p = nn.mul %r, %w : tensor<2x70x301xi32>
  return %p, %y : tensor<2x70x301xi32>, tensor<2x70x1x301xi32>
}

func.func @stated(%x: tensor<3x20xi32> {test.value = dense<[[-5, 2, -2, 5, 1, -3, 4, 0, -4, 3, -1, -5, 2, -2, 5, 1, -3, 4, 0, -4], [-2, 5, 1, -3, 4, 0, -4, 3, -1, -5, 2, -2, 5, 1, -3, 4, 0, -4, 3, -1], [1, -3, 4, 0, -4, 3, -1, -5, 2, -2, 5, 1, -3, 4, 0, -4, 3, -1, -5, 2]]> : tensor<3x20xi32>})
    -> (tensor<3x20xi32> {test.value = dense<[[30, 8, -6, 10, 1, 0, -4, 0, 12, -12, -6, 30, 8, -6, 10, 1, 0, -4, 0, 12], [2, 10, 5, 9, 0, 0, 20, -6, -1, 35, 14, 2, 10, 5, 9, 0, 0, 20, -6, -1], [1, 9, 16, 0, 16, 9, 1, 25, 4, 4, 25, 1, 9, 16, 0, 16, 9, 1, 25, 4]]> : tensor<3x20xi32>}) {
  %y = nn.cumsum %x dim = 0 {reverse} : tensor<3x20xi32>
  %p = nn.mul %y, %x : tensor<3x20xi32>
  return %p : tensor<3x20xi32>
}

func.func @summed(%x: tensor<33x40xi32>) -> tensor<33xi32> {
  %y = nn.cumsum %x dim = 1 : tensor<33x40xi32>
  %s = nn.reduce_sum %y dims = [1] : tensor<33x40xi32> -> tensor<33xi32>
  return %s : tensor<33xi32>
}

func.func @twice(%x: tensor<33x40xbf16>) -> tensor<33x40xbf16> {
  %y = nn.cumsum %x dim = 1 : tensor<33x40xbf16>
  %z = nn.cumsum %y dim = 0 {exclusive, reverse} : tensor<33x40xbf16>
  return %z : tensor<33x40xbf16>
}

// Also where other ops share the kernel.
func.func @fed(%x: tensor<17x40xf32>) -> tensor<17x40xf32> {
  %r = nn.kernel loop (%a = %x) : (tensor<17x40xf32>) -> (tensor<17x40xf32>) {
    %e = nn.abs %a : tensor<17x40xf32>
    %c = nn.cumsum %e dim = 1 {exclusive} : tensor<17x40xf32>
    %d = nn.sub %c, %a : tensor<17x40xf32>
    nn.yield %d : tensor<17x40xf32>
  }
  return %r : tensor<17x40xf32>
}
