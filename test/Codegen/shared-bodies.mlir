// RUN: lowtide-execute %s
// RUN: lowtide-execute %s --print=cpu | FileCheck %s
// Layers that each read one array more than the one before: rows of a concatenation that grows, whose kernels differ in
// counts alone and share one body; its values are those of kernels compiled by themselves.

// CHECK: func.func private @row_0.body(
// CHECK: func.func private @row_4.body(
func.func @growing(%x0: tensor<2x3x3x7xf32>, %x1: tensor<2x1x3x7xf32>, %x2: tensor<2x2x3x7xf32>, %x3: tensor<2x4x3x7xf32>, %x4: tensor<2x2x3x7xf32>, %x5: tensor<2x1x3x7xf32>, %x6: tensor<2x3x3x7xf32>)
    -> (tensor<2x6x3x7xf32>, tensor<2x10x3x7xf32>, tensor<2x12x3x7xf32>, tensor<2x13x3x7xf32>, tensor<2x16x3x7xf32>) {
  %c3 = nn.concat %x0, %x1, %x2 dim = 1 : (tensor<2x3x3x7xf32>, tensor<2x1x3x7xf32>, tensor<2x2x3x7xf32>) -> tensor<2x6x3x7xf32>
  %s3 = nn.reduce_sum %c3 dims = [0, 2, 3] : tensor<2x6x3x7xf32> -> tensor<6xf32>
  %b3 = nn.broadcast %s3 dims = [1] : tensor<6xf32> -> tensor<2x6x3x7xf32>
  %d3 = nn.sub %c3, %b3 : tensor<2x6x3x7xf32>
  %c4 = nn.concat %x0, %x1, %x2, %x3 dim = 1 : (tensor<2x3x3x7xf32>, tensor<2x1x3x7xf32>, tensor<2x2x3x7xf32>, tensor<2x4x3x7xf32>) -> tensor<2x10x3x7xf32>
  %s4 = nn.reduce_sum %c4 dims = [0, 2, 3] : tensor<2x10x3x7xf32> -> tensor<10xf32>
  %b4 = nn.broadcast %s4 dims = [1] : tensor<10xf32> -> tensor<2x10x3x7xf32>
  %d4 = nn.sub %c4, %b4 : tensor<2x10x3x7xf32>
  %c5 = nn.concat %x0, %x1, %x2, %x3, %x4 dim = 1 : (tensor<2x3x3x7xf32>, tensor<2x1x3x7xf32>, tensor<2x2x3x7xf32>, tensor<2x4x3x7xf32>, tensor<2x2x3x7xf32>) -> tensor<2x12x3x7xf32>
  %s5 = nn.reduce_sum %c5 dims = [0, 2, 3] : tensor<2x12x3x7xf32> -> tensor<12xf32>
  %b5 = nn.broadcast %s5 dims = [1] : tensor<12xf32> -> tensor<2x12x3x7xf32>
  %d5 = nn.sub %c5, %b5 : tensor<2x12x3x7xf32>
  %c6 = nn.concat %x0, %x1, %x2, %x3, %x4, %x5 dim = 1 : (tensor<2x3x3x7xf32>, tensor<2x1x3x7xf32>, tensor<2x2x3x7xf32>, tensor<2x4x3x7xf32>, tensor<2x2x3x7xf32>, tensor<2x1x3x7xf32>) -> tensor<2x13x3x7xf32>
  %s6 = nn.reduce_sum %c6 dims = [0, 2, 3] : tensor<2x13x3x7xf32> -> tensor<13xf32>
  %b6 = nn.broadcast %s6 dims = [1] : tensor<13xf32> -> tensor<2x13x3x7xf32>
  %d6 = nn.sub %c6, %b6 : tensor<2x13x3x7xf32>
  %c7 = nn.concat %x0, %x1, %x2, %x3, %x4, %x5, %x6 dim = 1 : (tensor<2x3x3x7xf32>, tensor<2x1x3x7xf32>, tensor<2x2x3x7xf32>, tensor<2x4x3x7xf32>, tensor<2x2x3x7xf32>, tensor<2x1x3x7xf32>, tensor<2x3x3x7xf32>) -> tensor<2x16x3x7xf32>
  %s7 = nn.reduce_sum %c7 dims = [0, 2, 3] : tensor<2x16x3x7xf32> -> tensor<16xf32>
  %b7 = nn.broadcast %s7 dims = [1] : tensor<16xf32> -> tensor<2x16x3x7xf32>
  %d7 = nn.sub %c7, %b7 : tensor<2x16x3x7xf32>
  return %d3, %d4, %d5, %d6, %d7 : tensor<2x6x3x7xf32>, tensor<2x10x3x7xf32>, tensor<2x12x3x7xf32>, tensor<2x13x3x7xf32>, tensor<2x16x3x7xf32>
}
