// RUN: lowtide-execute %s
// Kernels over so many columns that a thread of a GPU takes neighbours, as many as 16 bytes hold. Bits are those of one
// column after the other: sums, and rows that need them; a tile that is cut; columns of two dimensions; totals of blocks
// of rows.

func.func @sums_and_rows(%x: tensor<128x130x264xbf16>, %r: tensor<128x130x264xf32>, %f: tensor<264xf32>)
    -> (tensor<128x264xf32> {test.tolerance = 1.0e-4}, tensor<128x130x264xf32> {test.tolerance = 1.0e-4}, tensor<128x264xf32>) {
  %c = nn.cast %x : tensor<128x130x264xbf16> -> tensor<128x130x264xf32>
  %fb = nn.broadcast %f dims = [2] : tensor<264xf32> -> tensor<128x130x264xf32>
  %p = nn.mul %c, %fb : tensor<128x130x264xf32>
  %s = nn.reduce_sum %p dims = [1] : tensor<128x130x264xf32> -> tensor<128x264xf32>
  %m = nn.reduce_max %c dims = [1] : tensor<128x130x264xf32> -> tensor<128x264xf32>
  %sb = nn.broadcast %s dims = [0, 2] : tensor<128x264xf32> -> tensor<128x130x264xf32>
  %d = nn.sub %r, %sb : tensor<128x130x264xf32>
  return %s, %d, %m : tensor<128x264xf32>, tensor<128x130x264xf32>, tensor<128x264xf32>
}
func.func @columns_of_two_dimensions(%x: tensor<128x130x3x88xbf16>) -> (tensor<128x3x88xbf16> {test.tolerance = 0.2}) {
  %s = nn.reduce_sum %x dims = [1] : tensor<128x130x3x88xbf16> -> tensor<128x3x88xbf16>
  return %s : tensor<128x3x88xbf16>
}
func.func @two_kernels(%x: tensor<12x1100x264xbf16>, %z: tensor<12x264xf32>)
    -> (tensor<12x264xf32> {test.tolerance = 1.0e-3}, tensor<12x264xf32>) {
  %c = nn.cast %x : tensor<12x1100x264xbf16> -> tensor<12x1100x264xf32>
  %s = nn.reduce_sum %c dims = [1] : tensor<12x1100x264xf32> -> tensor<12x264xf32>
  %m = nn.reduce_max %c dims = [1] : tensor<12x1100x264xf32> -> tensor<12x264xf32>
  %y = nn.add %s, %z : tensor<12x264xf32>
  return %y, %m : tensor<12x264xf32>, tensor<12x264xf32>
}
