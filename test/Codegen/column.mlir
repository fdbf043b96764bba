// RUN: lowtide-execute %s
// Reductions whose last dimension is kept: blocks of 64 rows, tiles of columns, several kept runs.

func.func @softmax_middle(%x: tensor<6x40x9xf32>) -> (tensor<6x40x9xf32>, tensor<6x9xf32>) {
  %m = nn.reduce_max %x dims = [1] : tensor<6x40x9xf32> -> tensor<6x9xf32>
  %mb = nn.broadcast %m dims = [0, 2] : tensor<6x9xf32> -> tensor<6x40x9xf32>
  %d = nn.sub %x, %mb : tensor<6x40x9xf32>
  %e = nn.exp %d : tensor<6x40x9xf32>
  %s = nn.reduce_sum %e dims = [1] : tensor<6x40x9xf32> -> tensor<6x9xf32>
  %sb = nn.broadcast %s dims = [0, 2] : tensor<6x9xf32> -> tensor<6x40x9xf32>
  %y = nn.div %e, %sb : tensor<6x40x9xf32>
  %ls = nn.log %s : tensor<6x9xf32>
  return %y, %ls : tensor<6x40x9xf32>, tensor<6x9xf32>
}
func.func @softmax_leading(%x: tensor<70x300xf32>) -> (tensor<70x300xf32>, tensor<300xf32>) {
  %m = nn.reduce_max %x dims = [0] : tensor<70x300xf32> -> tensor<300xf32>
  %mb = nn.broadcast %m dims = [1] : tensor<300xf32> -> tensor<70x300xf32>
  %d = nn.sub %x, %mb : tensor<70x300xf32>
  %e = nn.exp %d : tensor<70x300xf32>
  %s = nn.reduce_sum %e dims = [0] : tensor<70x300xf32> -> tensor<300xf32>
  %sb = nn.broadcast %s dims = [1] : tensor<300xf32> -> tensor<70x300xf32>
  %y = nn.div %e, %sb : tensor<70x300xf32>
  %ls = nn.log %s : tensor<300xf32>
  return %y, %ls : tensor<70x300xf32>, tensor<300xf32>
}
func.func @batch_norm_1d(%x: tensor<9x70xf32>, %g: tensor<70xf32>, %b: tensor<70xf32>) -> (tensor<9x70xf32>, tensor<70xf32>, tensor<70xf32>) {
  %s = nn.reduce_sum %x dims = [0] : tensor<9x70xf32> -> tensor<70xf32>
  %n = nn.constant dense<9.0> : tensor<70xf32>
  %m = nn.div %s, %n : tensor<70xf32>
  %mb = nn.broadcast %m dims = [1] : tensor<70xf32> -> tensor<9x70xf32>
  %d = nn.sub %x, %mb : tensor<9x70xf32>
  %q = nn.mul %d, %d : tensor<9x70xf32>
  %v = nn.reduce_sum %q dims = [0] : tensor<9x70xf32> -> tensor<70xf32>
  %vb = nn.broadcast %v dims = [1] : tensor<70xf32> -> tensor<9x70xf32>
  %z = nn.div %d, %vb : tensor<9x70xf32>
  %gb = nn.broadcast %g dims = [1] : tensor<70xf32> -> tensor<9x70xf32>
  %bb = nn.broadcast %b dims = [1] : tensor<70xf32> -> tensor<9x70xf32>
  %zg = nn.mul %z, %gb : tensor<9x70xf32>
  %y = nn.add %zg, %bb : tensor<9x70xf32>
  return %y, %m, %v : tensor<9x70xf32>, tensor<70xf32>, tensor<70xf32>
}
func.func @instance_norm(%x: tensor<2x130x300xf32>, %g: tensor<300xf32>, %b: tensor<300xf32>) -> (tensor<2x130x300xf32>, tensor<2x300xf32>, tensor<2x300xf32>) {
  %s = nn.reduce_sum %x dims = [1] : tensor<2x130x300xf32> -> tensor<2x300xf32>
  %n = nn.constant dense<130.0> : tensor<2x300xf32>
  %m = nn.div %s, %n : tensor<2x300xf32>
  %mb = nn.broadcast %m dims = [0, 2] : tensor<2x300xf32> -> tensor<2x130x300xf32>
  %d = nn.sub %x, %mb : tensor<2x130x300xf32>
  %q = nn.mul %d, %d : tensor<2x130x300xf32>
  %v = nn.reduce_sum %q dims = [1] : tensor<2x130x300xf32> -> tensor<2x300xf32>
  %vb = nn.broadcast %v dims = [0, 2] : tensor<2x300xf32> -> tensor<2x130x300xf32>
  %z = nn.div %d, %vb : tensor<2x130x300xf32>
  %gb = nn.broadcast %g dims = [2] : tensor<300xf32> -> tensor<2x130x300xf32>
  %bb = nn.broadcast %b dims = [2] : tensor<300xf32> -> tensor<2x130x300xf32>
  %zg = nn.mul %z, %gb : tensor<2x130x300xf32>
  %y = nn.add %zg, %bb : tensor<2x130x300xf32>
  return %y, %m, %v : tensor<2x130x300xf32>, tensor<2x300xf32>, tensor<2x300xf32>
}
// The result needs no sum: it is written in the traversal that adds up the columns.
func.func @written_with_sums(%x: tensor<130x70xf32>) -> (tensor<130x70xf32>, tensor<70xf32>) {
  %e = nn.exp %x : tensor<130x70xf32>
  %z = nn.mul %e, %e : tensor<130x70xf32>
  %s = nn.reduce_sum %z dims = [0] : tensor<130x70xf32> -> tensor<70xf32>
  return %z, %s : tensor<130x70xf32>, tensor<70xf32>
}
