// RUN: lowtide-execute %s
// Movement inside kernels, integers, booleans, 16-bit floats.

func.func @t3(%x: tensor<5x37x70xf32>) -> tensor<5x70x37xf32> {
  %y = nn.transpose %x [0, 2, 1] : tensor<5x37x70xf32> -> tensor<5x70x37xf32>
  return %y : tensor<5x70x37xf32>
}
func.func @heads(%x: tensor<2x7x3x16xf32>, %b: tensor<48xf32>) -> tensor<2x3x7x16xf32> {
  %bb = nn.reshape %b : tensor<48xf32> -> tensor<3x16xf32>
  %bx = nn.broadcast %bb dims = [2, 3] : tensor<3x16xf32> -> tensor<2x7x3x16xf32>
  %s = nn.add %x, %bx : tensor<2x7x3x16xf32>
  %y = nn.transpose %s [0, 2, 1, 3] : tensor<2x7x3x16xf32> -> tensor<2x3x7x16xf32>
  %z = nn.exp %y : tensor<2x3x7x16xf32>
  return %z : tensor<2x3x7x16xf32>
}
func.func @ints(%x: tensor<33xi64>, %m: tensor<33xi1>) -> (tensor<33xf32>, tensor<33xi1>, tensor<i64>) {
  %f = nn.cast %x : tensor<33xi64> -> tensor<33xf32>
  %z = nn.constant dense<3> : tensor<33xi64>
  %c = nn.compare lt %x, %z : tensor<33xi64> -> tensor<33xi1>
  %o = nn.constant dense<0.0> : tensor<33xf32>
  %s = nn.select %m, %f, %o : tensor<33xi1>, tensor<33xf32>
  %r = nn.reduce_sum %x dims = [0] : tensor<33xi64> -> tensor<i64>
  return %s, %c, %r : tensor<33xf32>, tensor<33xi1>, tensor<i64>
}
// Both targets round an f32 value once; where it lies at a tie they are a unit in the last place (2^-8) apart.
func.func @bf16(%x: tensor<9x33xbf16>)
    -> (tensor<9xbf16> {test.tolerance = 0.00390625}, tensor<9x33xbf16> {test.tolerance = 0.00390625}) {
  %r = nn.reduce_sum %x dims = [1] : tensor<9x33xbf16> -> tensor<9xbf16>
  %e = nn.exp %x : tensor<9x33xbf16>
  return %r, %e : tensor<9xbf16>, tensor<9x33xbf16>
}
