// RUN: lowtide-execute %s
// Results that may overwrite operands: each kernel is also run that way (FunctionRunner), for the same bits.

func.func @loop(%x: tensor<3x1000xf32>, %z: tensor<3x1000xf32>) -> (tensor<3x1000xf32>, tensor<3x1000xf32>) {
  %s = nn.add %x, %z : tensor<3x1000xf32>
  %d = nn.sub %x, %z : tensor<3x1000xf32>
  %y = nn.mul %s, %d : tensor<3x1000xf32>
  return %s, %y : tensor<3x1000xf32>, tensor<3x1000xf32>
}
// A row is read by reductions before it is overwritten.
func.func @row(%x: tensor<37x100xf32>, %z: tensor<37xf32>) -> (tensor<37x100xf32>, tensor<37xf32>) {
  %m = nn.reduce_max %x dims = [1] : tensor<37x100xf32> -> tensor<37xf32>
  %mb = nn.broadcast %m dims = [0] : tensor<37xf32> -> tensor<37x100xf32>
  %d = nn.sub %x, %mb : tensor<37x100xf32>
  %e = nn.exp %d : tensor<37x100xf32>
  %s = nn.reduce_sum %e dims = [1] : tensor<37x100xf32> -> tensor<37xf32>
  %w = nn.add %z, %s : tensor<37xf32>
  return %e, %w : tensor<37x100xf32>, tensor<37xf32>
}
func.func @column(%x: tensor<100x70xf32>, %z: tensor<70xf32>)
    -> (tensor<100x70xf32> {test.tolerance = 1.0e-5}, tensor<70xf32> {test.tolerance = 1.0e-5}) {
  %m = nn.reduce_sum %x dims = [0] : tensor<100x70xf32> -> tensor<70xf32>
  %mb = nn.broadcast %m dims = [1] : tensor<70xf32> -> tensor<100x70xf32>
  %d = nn.sub %x, %mb : tensor<100x70xf32>
  %w = nn.mul %z, %m : tensor<70xf32>
  return %d, %w : tensor<100x70xf32>, tensor<70xf32>
}
