// RUN: lowtide-execute %s
// Reductions over trailing dimensions with elementwise ops around them: rows shorter and longer than 16 lanes and than a
// segment, several reduced runs, a buffer that needs scratch. Fused and unfused bits are equal, splits change nothing.

func.func @softmax_odd(%x: tensor<7x33xf32>) -> (tensor<7x33xf32>, tensor<7xf32>) {
  %m = nn.reduce_max %x dims = [1] : tensor<7x33xf32> -> tensor<7xf32>
  %mb = nn.broadcast %m dims = [0] : tensor<7xf32> -> tensor<7x33xf32>
  %d = nn.sub %x, %mb : tensor<7x33xf32>
  %e = nn.exp %d : tensor<7x33xf32>
  %s = nn.reduce_sum %e dims = [1] : tensor<7x33xf32> -> tensor<7xf32>
  %sb = nn.broadcast %s dims = [0] : tensor<7xf32> -> tensor<7x33xf32>
  %y = nn.div %e, %sb : tensor<7x33xf32>
  %ls = nn.log %s : tensor<7xf32>
  return %y, %ls : tensor<7x33xf32>, tensor<7xf32>
}
func.func @softmax_long(%x: tensor<3x5x1000xf32>) -> (tensor<3x5x1000xf32>, tensor<3x5xf32>) {
  %m = nn.reduce_max %x dims = [2] : tensor<3x5x1000xf32> -> tensor<3x5xf32>
  %mb = nn.broadcast %m dims = [0, 1] : tensor<3x5xf32> -> tensor<3x5x1000xf32>
  %d = nn.sub %x, %mb : tensor<3x5x1000xf32>
  %e = nn.exp %d : tensor<3x5x1000xf32>
  %s = nn.reduce_sum %e dims = [2] : tensor<3x5x1000xf32> -> tensor<3x5xf32>
  %sb = nn.broadcast %s dims = [0, 1] : tensor<3x5xf32> -> tensor<3x5x1000xf32>
  %y = nn.div %e, %sb : tensor<3x5x1000xf32>
  %ls = nn.log %s : tensor<3x5xf32>
  return %y, %ls : tensor<3x5x1000xf32>, tensor<3x5xf32>
}
func.func @softmax_short(%x: tensor<2x5xf32>) -> (tensor<2x5xf32>, tensor<2xf32>) {
  %m = nn.reduce_max %x dims = [1] : tensor<2x5xf32> -> tensor<2xf32>
  %mb = nn.broadcast %m dims = [0] : tensor<2xf32> -> tensor<2x5xf32>
  %d = nn.sub %x, %mb : tensor<2x5xf32>
  %e = nn.exp %d : tensor<2x5xf32>
  %s = nn.reduce_sum %e dims = [1] : tensor<2x5xf32> -> tensor<2xf32>
  %sb = nn.broadcast %s dims = [0] : tensor<2xf32> -> tensor<2x5xf32>
  %y = nn.div %e, %sb : tensor<2x5xf32>
  %ls = nn.log %s : tensor<2xf32>
  return %y, %ls : tensor<2x5xf32>, tensor<2xf32>
}
func.func @softmax_unit_dim(%x: tensor<4x1x17xf32>) -> (tensor<4x1x17xf32>, tensor<4x1xf32>) {
  %m = nn.reduce_max %x dims = [2] : tensor<4x1x17xf32> -> tensor<4x1xf32>
  %mb = nn.broadcast %m dims = [0, 1] : tensor<4x1xf32> -> tensor<4x1x17xf32>
  %d = nn.sub %x, %mb : tensor<4x1x17xf32>
  %e = nn.exp %d : tensor<4x1x17xf32>
  %s = nn.reduce_sum %e dims = [2] : tensor<4x1x17xf32> -> tensor<4x1xf32>
  %sb = nn.broadcast %s dims = [0, 1] : tensor<4x1xf32> -> tensor<4x1x17xf32>
  %y = nn.div %e, %sb : tensor<4x1x17xf32>
  %ls = nn.log %s : tensor<4x1xf32>
  return %y, %ls : tensor<4x1x17xf32>, tensor<4x1xf32>
}
func.func @softmax_all(%x: tensor<1000xf32>) -> (tensor<1000xf32>, tensor<f32>) {
  %m = nn.reduce_max %x dims = [0] : tensor<1000xf32> -> tensor<f32>
  %mb = nn.broadcast %m dims = [] : tensor<f32> -> tensor<1000xf32>
  %d = nn.sub %x, %mb : tensor<1000xf32>
  %e = nn.exp %d : tensor<1000xf32>
  %s = nn.reduce_sum %e dims = [0] : tensor<1000xf32> -> tensor<f32>
  %sb = nn.broadcast %s dims = [] : tensor<f32> -> tensor<1000xf32>
  %y = nn.div %e, %sb : tensor<1000xf32>
  %ls = nn.log %s : tensor<f32>
  return %y, %ls : tensor<1000xf32>, tensor<f32>
}
func.func @layer_norm(%x: tensor<3x9x96xf32>, %g: tensor<96xf32>, %b: tensor<96xf32>) -> (tensor<3x9x96xf32>, tensor<3x9xf32>, tensor<3x9xf32>) {
  %s = nn.reduce_sum %x dims = [2] : tensor<3x9x96xf32> -> tensor<3x9xf32>
  %n = nn.constant dense<96.0> : tensor<3x9xf32>
  %m = nn.div %s, %n : tensor<3x9xf32>
  %mb = nn.broadcast %m dims = [0, 1] : tensor<3x9xf32> -> tensor<3x9x96xf32>
  %d = nn.sub %x, %mb : tensor<3x9x96xf32>
  %q = nn.mul %d, %d : tensor<3x9x96xf32>
  %v = nn.reduce_sum %q dims = [2] : tensor<3x9x96xf32> -> tensor<3x9xf32>
  %vb = nn.broadcast %v dims = [0, 1] : tensor<3x9xf32> -> tensor<3x9x96xf32>
  %z = nn.div %d, %vb : tensor<3x9x96xf32>
  %gb = nn.broadcast %g dims = [2] : tensor<96xf32> -> tensor<3x9x96xf32>
  %bb = nn.broadcast %b dims = [2] : tensor<96xf32> -> tensor<3x9x96xf32>
  %zg = nn.mul %z, %gb : tensor<3x9x96xf32>
  %y = nn.add %zg, %bb : tensor<3x9x96xf32>
  return %y, %m, %v : tensor<3x9x96xf32>, tensor<3x9xf32>, tensor<3x9xf32>
}
func.func @group_norm(%x: tensor<4x3x2x10x10xf32>, %g: tensor<3x2xf32>, %b: tensor<3x2xf32>) -> (tensor<4x3x2x10x10xf32>, tensor<4x3xf32>, tensor<4x3xf32>) {
  %s = nn.reduce_sum %x dims = [2, 3, 4] : tensor<4x3x2x10x10xf32> -> tensor<4x3xf32>
  %n = nn.constant dense<200.0> : tensor<4x3xf32>
  %m = nn.div %s, %n : tensor<4x3xf32>
  %mb = nn.broadcast %m dims = [0, 1] : tensor<4x3xf32> -> tensor<4x3x2x10x10xf32>
  %d = nn.sub %x, %mb : tensor<4x3x2x10x10xf32>
  %q = nn.mul %d, %d : tensor<4x3x2x10x10xf32>
  %v = nn.reduce_sum %q dims = [2, 3, 4] : tensor<4x3x2x10x10xf32> -> tensor<4x3xf32>
  %vb = nn.broadcast %v dims = [0, 1] : tensor<4x3xf32> -> tensor<4x3x2x10x10xf32>
  %z = nn.div %d, %vb : tensor<4x3x2x10x10xf32>
  %gb = nn.broadcast %g dims = [1, 2] : tensor<3x2xf32> -> tensor<4x3x2x10x10xf32>
  %bb = nn.broadcast %b dims = [1, 2] : tensor<3x2xf32> -> tensor<4x3x2x10x10xf32>
  %zg = nn.mul %z, %gb : tensor<4x3x2x10x10xf32>
  %y = nn.add %zg, %bb : tensor<4x3x2x10x10xf32>
  return %y, %m, %v : tensor<4x3x2x10x10xf32>, tensor<4x3xf32>, tensor<4x3xf32>
}
func.func @batch_norm(%x: tensor<5x6x7x3xf32>, %g: tensor<6xf32>, %b: tensor<6xf32>) -> (tensor<5x6x7x3xf32>, tensor<6xf32>, tensor<6xf32>) {
  %s = nn.reduce_sum %x dims = [0, 2, 3] : tensor<5x6x7x3xf32> -> tensor<6xf32>
  %n = nn.constant dense<105.0> : tensor<6xf32>
  %m = nn.div %s, %n : tensor<6xf32>
  %mb = nn.broadcast %m dims = [1] : tensor<6xf32> -> tensor<5x6x7x3xf32>
  %d = nn.sub %x, %mb : tensor<5x6x7x3xf32>
  %q = nn.mul %d, %d : tensor<5x6x7x3xf32>
  %v = nn.reduce_sum %q dims = [0, 2, 3] : tensor<5x6x7x3xf32> -> tensor<6xf32>
  %vb = nn.broadcast %v dims = [1] : tensor<6xf32> -> tensor<5x6x7x3xf32>
  %z = nn.div %d, %vb : tensor<5x6x7x3xf32>
  %gb = nn.broadcast %g dims = [1] : tensor<6xf32> -> tensor<5x6x7x3xf32>
  %bb = nn.broadcast %b dims = [1] : tensor<6xf32> -> tensor<5x6x7x3xf32>
  %zg = nn.mul %z, %gb : tensor<5x6x7x3xf32>
  %y = nn.add %zg, %bb : tensor<5x6x7x3xf32>
  return %y, %m, %v : tensor<5x6x7x3xf32>, tensor<6xf32>, tensor<6xf32>
}
func.func @scratch(%x: tensor<2x20000xf32>, %g: tensor<20000xf32>, %b: tensor<20000xf32>) -> (tensor<2x20000xf32>, tensor<2xf32>, tensor<2xf32>) {
  %s = nn.reduce_sum %x dims = [1] : tensor<2x20000xf32> -> tensor<2xf32>
  %n = nn.constant dense<20000.0> : tensor<2xf32>
  %m = nn.div %s, %n : tensor<2xf32>
  %mb = nn.broadcast %m dims = [0] : tensor<2xf32> -> tensor<2x20000xf32>
  %d = nn.sub %x, %mb : tensor<2x20000xf32>
  %q = nn.mul %d, %d : tensor<2x20000xf32>
  %v = nn.reduce_sum %q dims = [1] : tensor<2x20000xf32> -> tensor<2xf32>
  %vb = nn.broadcast %v dims = [0] : tensor<2xf32> -> tensor<2x20000xf32>
  %z = nn.div %d, %vb : tensor<2x20000xf32>
  %gb = nn.broadcast %g dims = [1] : tensor<20000xf32> -> tensor<2x20000xf32>
  %bb = nn.broadcast %b dims = [1] : tensor<20000xf32> -> tensor<2x20000xf32>
  %zg = nn.mul %z, %gb : tensor<2x20000xf32>
  %y = nn.add %zg, %bb : tensor<2x20000xf32>
  return %y, %m, %v : tensor<2x20000xf32>, tensor<2xf32>, tensor<2xf32>
}
// Rows that are picked by numbers made on the way, as a GPU's fusion forms it.
func.func @picked_rows(%i: tensor<4x7xi64> {test.low = -9, test.high = 9}, %t: tensor<9x300xf32>)
    -> (tensor<4x7xf32> {test.tolerance = 2.0e-5}, tensor<4x7x300xf32>) {
  %y:2 = nn.kernel row (%at = %i, %from = %t) : (tensor<4x7xi64>, tensor<9x300xf32>) -> (tensor<4x7xf32>, tensor<4x7x300xf32>) {
    %zero = nn.constant dense<0> : tensor<4x7xi64>
    %rows = nn.constant dense<9> : tensor<4x7xi64>
    %back = nn.compare lt %at, %zero : tensor<4x7xi64> -> tensor<4x7xi1>
    %moved = nn.add %at, %rows : tensor<4x7xi64>
    %place = nn.select %back, %moved, %at : tensor<4x7xi1>, tensor<4x7xi64>
    %x = nn.gather %from[%place] axis = 0 : (tensor<9x300xf32>, tensor<4x7xi64>) -> tensor<4x7x300xf32>
    %s = nn.reduce_sum %x dims = [2] : tensor<4x7x300xf32> -> tensor<4x7xf32>
    nn.yield %s, %x : tensor<4x7xf32>, tensor<4x7x300xf32>
  }
  return %y#0, %y#1 : tensor<4x7xf32>, tensor<4x7x300xf32>
}
