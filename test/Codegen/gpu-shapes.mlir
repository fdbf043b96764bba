// RUN: lowtide-execute %s
// Shapes at which the grid of a GPU has an edge: vectors with a rest, rows of several rounds, groups without rows, tiles that
// are cut, 64-bit values in shuffles. Bits are those of the CPU. Sums of 1,500 elements below 2 have an error bound of 3e-3 in
// f32 (docs/rationale/kernels.md).

func.func @rest_of_a_vector(%x: tensor<17x59xbf16>, %z: tensor<17x59xf32>) -> (tensor<17x59xbf16> {test.tolerance = 4.0e-2}) {
  %c = nn.cast %x : tensor<17x59xbf16> -> tensor<17x59xf32>
  %p = nn.mul %c, %z : tensor<17x59xf32>
  %s = nn.add %p, %z : tensor<17x59xf32>
  %y = nn.cast %s : tensor<17x59xf32> -> tensor<17x59xbf16>
  return %y : tensor<17x59xbf16>
}
func.func @broadcast_in_vectors(%x: tensor<6x5x24xf32>, %b: tensor<24xf32>, %r: tensor<6x5xf32>) -> tensor<6x5x24xf32> {
  %bb = nn.broadcast %b dims = [2] : tensor<24xf32> -> tensor<6x5x24xf32>
  %rb = nn.broadcast %r dims = [0, 1] : tensor<6x5xf32> -> tensor<6x5x24xf32>
  %s = nn.add %x, %bb : tensor<6x5x24xf32>
  %y = nn.mul %s, %rb : tensor<6x5x24xf32>
  return %y : tensor<6x5x24xf32>
}
func.func @long_row(%x: tensor<2x70001xf32>) -> (tensor<2x70001xf32>, tensor<2xf32> {test.tolerance = 2.0e-4}) {
  %s = nn.reduce_sum %x dims = [1] : tensor<2x70001xf32> -> tensor<2xf32>
  %b = nn.broadcast %s dims = [0] : tensor<2xf32> -> tensor<2x70001xf32>
  %y = nn.max %x, %b : tensor<2x70001xf32>
  return %y, %s : tensor<2x70001xf32>, tensor<2xf32>
}
func.func @row_of_a_warp(%x: tensor<13x1536xf32>) -> (tensor<13x1536xf32> {test.tolerance = 1.0e-4}, tensor<13xf32> {test.tolerance = 1.0e-4}) {
  %s = nn.reduce_sum %x dims = [1] : tensor<13x1536xf32> -> tensor<13xf32>
  %b = nn.broadcast %s dims = [0] : tensor<13xf32> -> tensor<13x1536xf32>
  %y = nn.sub %x, %b : tensor<13x1536xf32>
  return %y, %s : tensor<13x1536xf32>, tensor<13xf32>
}
func.func @integers(%x: tensor<11x700xi64> {test.low = -9, test.high = 9}) -> (tensor<11x700xi64>, tensor<11xi64>) {
  %s = nn.reduce_sum %x dims = [1] : tensor<11x700xi64> -> tensor<11xi64>
  %b = nn.broadcast %s dims = [0] : tensor<11xi64> -> tensor<11x700xi64>
  %y = nn.max %x, %b : tensor<11x700xi64>
  return %y, %s : tensor<11x700xi64>, tensor<11xi64>
}
func.func @channels(%x: tensor<6x5x14x14xf32>) -> (tensor<6x5x14x14xf32>, tensor<5xf32> {test.tolerance = 1.0e-5}) {
  %s = nn.reduce_sum %x dims = [0, 2, 3] : tensor<6x5x14x14xf32> -> tensor<5xf32>
  %b = nn.broadcast %s dims = [1] : tensor<5xf32> -> tensor<6x5x14x14xf32>
  %y = nn.sub %x, %b : tensor<6x5x14x14xf32>
  return %y, %s : tensor<6x5x14x14xf32>, tensor<5xf32>
}
func.func @many_groups(%x: tensor<1500x40xf32>) -> (tensor<40xf32> {test.tolerance = 1.0e-4}, tensor<1500x40xf32> {test.tolerance = 1.0e-4}) {
  %s = nn.reduce_sum %x dims = [0] : tensor<1500x40xf32> -> tensor<40xf32>
  %b = nn.broadcast %s dims = [1] : tensor<40xf32> -> tensor<1500x40xf32>
  %y = nn.max %x, %b : tensor<1500x40xf32>
  return %s, %y : tensor<40xf32>, tensor<1500x40xf32>
}
func.func @cut_tiles(%x: tensor<3x33x70xbf16>) -> tensor<3x70x33xbf16> {
  %y = nn.transpose %x [0, 2, 1] : tensor<3x33x70xbf16> -> tensor<3x70x33xbf16>
  return %y : tensor<3x70x33xbf16>
}
// Sides of multiples of 16 bytes: vectors, in tiles that are cut.
func.func @vectors_of_tiles(%x: tensor<3x136x72xbf16>, %z: tensor<2x36x5x68xf32>, %b: tensor<24x40xi1> {test.high = 1})
    -> (tensor<3x72x136xbf16>, tensor<68x2x5x36xf32>, tensor<40x24xi1>) {
  %y = nn.transpose %x [0, 2, 1] : tensor<3x136x72xbf16> -> tensor<3x72x136xbf16>
  %w = nn.transpose %z [3, 0, 2, 1] : tensor<2x36x5x68xf32> -> tensor<68x2x5x36xf32>
  %c = nn.transpose %b [1, 0] : tensor<24x40xi1> -> tensor<40x24xi1>
  return %y, %w, %c : tensor<3x72x136xbf16>, tensor<68x2x5x36xf32>, tensor<40x24xi1>
}
func.func @first_to_last(%x: tensor<40x3x5xf32>) -> tensor<3x5x40xf32> {
  %y = nn.transpose %x [1, 2, 0] : tensor<40x3x5xf32> -> tensor<3x5x40xf32>
  return %y : tensor<3x5x40xf32>
}
func.func @wide_rows(%i: tensor<300xi64> {test.high = 6}, %u: tensor<300x1100xf32>) -> (tensor<6x1100xf32> {test.tolerance = 1.0e-5}) {
  %y = nn.scatter_add [%i] %u axis = 0 : (tensor<300xi64>, tensor<300x1100xf32>) -> tensor<6x1100xf32>
  return %y : tensor<6x1100xf32>
}
// So many rows that one kernel writes totals of blocks of rows and a second one adds them up.
func.func @two_kernels(%x: tensor<1500x40xf32>, %z: tensor<40xf32>) -> (tensor<40xf32> {test.tolerance = 1.0e-4}, tensor<40xf32>) {
  %s = nn.reduce_sum %x dims = [0] : tensor<1500x40xf32> -> tensor<40xf32>
  %m = nn.reduce_max %x dims = [0] : tensor<1500x40xf32> -> tensor<40xf32>
  %y = nn.add %s, %z : tensor<40xf32>
  return %y, %m : tensor<40xf32>, tensor<40xf32>
}
func.func @two_kernels_outer(%x: tensor<3x1100x33xbf16>) -> (tensor<3x33xbf16> {test.tolerance = 1.0}) {
  %s = nn.reduce_sum %x dims = [1] : tensor<3x1100x33xbf16> -> tensor<3x33xbf16>
  return %s : tensor<3x33xbf16>
}
func.func @two_kernels_inner(%x: tensor<20x3x70x5xf32>) -> (tensor<3x5xf32> {test.tolerance = 1.0e-5}) {
  %s = nn.reduce_sum %x dims = [0, 2] : tensor<20x3x70x5xf32> -> tensor<3x5xf32>
  return %s : tensor<3x5xf32>
}
// The same of few long rows: totals of segments.
func.func @whole_tensor(%x: tensor<131x257x3xf32>) -> (tensor<f32> {test.tolerance = 1.0e-1}, tensor<f32>) {
  %s = nn.reduce_sum %x dims = [0, 1, 2] : tensor<131x257x3xf32> -> tensor<f32>
  %m = nn.reduce_max %x dims = [0, 1, 2] : tensor<131x257x3xf32> -> tensor<f32>
  return %s, %m : tensor<f32>, tensor<f32>
}
func.func @few_long_rows(%x: tensor<3x20011xbf16>) -> (tensor<3xbf16> {test.tolerance = 2.0}) {
  %s = nn.reduce_sum %x dims = [1] : tensor<3x20011xbf16> -> tensor<3xbf16>
  return %s : tensor<3xbf16>
}
func.func @long_columns_of_rows(%x: tensor<200x2x100xf32>) -> (tensor<2xf32> {test.tolerance = 3.0e-2}) {
  %s = nn.reduce_sum %x dims = [0, 2] : tensor<200x2x100xf32> -> tensor<2xf32>
  return %s : tensor<2xf32>
}
// Rows of a block whose segments take two rounds, with two reductions beside one another.
func.func @rows_of_a_block(%x: tensor<5x70001xf32>) -> (tensor<5x70001xf32> {test.tolerance = 2.0e-4}) {
  %s = nn.reduce_sum %x dims = [1] : tensor<5x70001xf32> -> tensor<5xf32>
  %m = nn.reduce_max %x dims = [1] : tensor<5x70001xf32> -> tensor<5xf32>
  %t = nn.mul %s, %m : tensor<5xf32>
  %b = nn.broadcast %t dims = [0] : tensor<5xf32> -> tensor<5x70001xf32>
  %y = nn.max %x, %b : tensor<5x70001xf32>
  return %y : tensor<5x70001xf32>
}
// Lines that threads go along, in eights and a rest: neighbours (from the end, in place), and ends of memory.
func.func @running_sums(%x: tensor<2x2003x37xi32> {test.low = -9, test.high = 9}, %w: tensor<2x2003x37xi32> {test.low = -9, test.high = 9}) -> tensor<2x2003x37xi32> {
  %y = nn.cumsum %x dim = 1 {reverse} : tensor<2x2003x37xi32>
  %p = nn.mul %y, %w : tensor<2x2003x37xi32>
  return %p : tensor<2x2003x37xi32>
}
func.func @running_sums_of_rows(%x: tensor<33x2051xf32>) -> (tensor<33x2051xf32> {test.tolerance = 1.0e-5}) {
  %e = nn.abs %x : tensor<33x2051xf32>
  %y = nn.cumsum %e dim = 1 {exclusive} : tensor<33x2051xf32>
  return %y : tensor<33x2051xf32>
}
