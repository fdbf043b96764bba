// RUN: lowtide-execute %s
// Kernels of one form in one launch: of different lengths, with a rest after whole vectors; of one shape, broadcast; with
// operands that some share.

func.func @different_lengths(%s: tensor<f32>, %a: tensor<5000xf32>, %b: tensor<37xf32>, %c: tensor<70x60xf32>,
    %ag: tensor<5000xf32>, %bg: tensor<37xf32>, %cg: tensor<70x60xf32>)
    -> (tensor<5000xf32>, tensor<37xf32>, tensor<70x60xf32>) {
  %r:3 = nn.kernel batch (%x = %s, %p0 = %a, %g0 = %ag, %p1 = %b, %g1 = %bg, %p2 = %c, %g2 = %cg)
      : (tensor<f32>, tensor<5000xf32>, tensor<5000xf32>, tensor<37xf32>, tensor<37xf32>, tensor<70x60xf32>, tensor<70x60xf32>)
      -> (tensor<5000xf32>, tensor<37xf32>, tensor<70x60xf32>) {
    %e0 = nn.exp %x : tensor<f32>
    %w0 = nn.broadcast %e0 dims = [] : tensor<f32> -> tensor<5000xf32>
    %m0 = nn.mul %g0, %w0 : tensor<5000xf32>
    %y0 = nn.sub %p0, %m0 : tensor<5000xf32>
    %e1 = nn.exp %x : tensor<f32>
    %w1 = nn.broadcast %e1 dims = [] : tensor<f32> -> tensor<37xf32>
    %m1 = nn.mul %g1, %w1 : tensor<37xf32>
    %y1 = nn.sub %p1, %m1 : tensor<37xf32>
    %e2 = nn.exp %x : tensor<f32>
    %w2 = nn.broadcast %e2 dims = [] : tensor<f32> -> tensor<70x60xf32>
    %m2 = nn.mul %g2, %w2 : tensor<70x60xf32>
    %y2 = nn.sub %p2, %m2 : tensor<70x60xf32>
    nn.yield %y0, %y1, %y2 : tensor<5000xf32>, tensor<37xf32>, tensor<70x60xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<5000xf32>, tensor<37xf32>, tensor<70x60xf32>
}
func.func @narrow_floats(%a: tensor<9xf32>, %b: tensor<4099xf32>) -> (tensor<9xbf16> {test.tolerance = 4.0e-3}, tensor<4099xbf16> {test.tolerance = 4.0e-3}) {
  %r:2 = nn.kernel batch (%x = %a, %y = %b) : (tensor<9xf32>, tensor<4099xf32>) -> (tensor<9xbf16>, tensor<4099xbf16>) {
    %u = nn.cast %x : tensor<9xf32> -> tensor<9xbf16>
    %v = nn.cast %y : tensor<4099xf32> -> tensor<4099xbf16>
    nn.yield %u, %v : tensor<9xbf16>, tensor<4099xbf16>
  }
  return %r#0, %r#1 : tensor<9xbf16>, tensor<4099xbf16>
}
func.func @one_shape(%a: tensor<6x24xf32>, %b: tensor<6x24xf32>, %c: tensor<6x24xf32>, %p: tensor<24xf32>, %q: tensor<24xf32>)
    -> (tensor<6x24xf32>, tensor<6x24xf32>, tensor<6x24xf32>) {
  %r:3 = nn.kernel batch (%x = %a, %i = %p, %y = %b, %j = %q, %z = %c)
      : (tensor<6x24xf32>, tensor<24xf32>, tensor<6x24xf32>, tensor<24xf32>, tensor<6x24xf32>)
      -> (tensor<6x24xf32>, tensor<6x24xf32>, tensor<6x24xf32>) {
    %s = nn.broadcast %i dims = [1] : tensor<24xf32> -> tensor<6x24xf32>
    %t = nn.mul %x, %s : tensor<6x24xf32>
    %u = nn.broadcast %j dims = [1] : tensor<24xf32> -> tensor<6x24xf32>
    %v = nn.mul %y, %u : tensor<6x24xf32>
    %w = nn.broadcast %i dims = [1] : tensor<24xf32> -> tensor<6x24xf32>
    %o = nn.mul %z, %w : tensor<6x24xf32>
    nn.yield %t, %v, %o : tensor<6x24xf32>, tensor<6x24xf32>, tensor<6x24xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<6x24xf32>, tensor<6x24xf32>, tensor<6x24xf32>
}
func.func @transposes(%a: tensor<40x70xf32>, %b: tensor<40x70xf32>) -> (tensor<70x40xf32>, tensor<70x40xf32>) {
  %r:2 = nn.kernel batch (%x = %a, %y = %b) : (tensor<40x70xf32>, tensor<40x70xf32>) -> (tensor<70x40xf32>, tensor<70x40xf32>) {
    %u = nn.transpose %x [1, 0] : tensor<40x70xf32> -> tensor<70x40xf32>
    %v = nn.transpose %y [1, 0] : tensor<40x70xf32> -> tensor<70x40xf32>
    nn.yield %u, %v : tensor<70x40xf32>, tensor<70x40xf32>
  }
  return %r#0, %r#1 : tensor<70x40xf32>, tensor<70x40xf32>
}
func.func @rows(%a: tensor<5x300xf32>, %b: tensor<5x300xf32>) -> (tensor<5xf32> {test.tolerance = 1.0e-4}, tensor<5xf32> {test.tolerance = 1.0e-4}) {
  %r:2 = nn.kernel batch (%x = %a, %y = %b) : (tensor<5x300xf32>, tensor<5x300xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
    %p = nn.mul %x, %x : tensor<5x300xf32>
    %u = nn.reduce_sum %p dims = [1] : tensor<5x300xf32> -> tensor<5xf32>
    %q = nn.mul %y, %y : tensor<5x300xf32>
    %v = nn.reduce_sum %q dims = [1] : tensor<5x300xf32> -> tensor<5xf32>
    nn.yield %u, %v : tensor<5xf32>, tensor<5xf32>
  }
  return %r#0, %r#1 : tensor<5xf32>, tensor<5xf32>
}
func.func @long_rows(%a: tensor<3x9000xf32>, %b: tensor<3x9000xf32>) -> (tensor<3xf32> {test.tolerance = 1.0e-2}, tensor<3xf32> {test.tolerance = 1.0e-2}) {
  %r:2 = nn.kernel batch (%x = %a, %y = %b) : (tensor<3x9000xf32>, tensor<3x9000xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
    %u = nn.reduce_sum %x dims = [1] : tensor<3x9000xf32> -> tensor<3xf32>
    %v = nn.reduce_sum %y dims = [1] : tensor<3x9000xf32> -> tensor<3xf32>
    nn.yield %u, %v : tensor<3xf32>, tensor<3xf32>
  }
  return %r#0, %r#1 : tensor<3xf32>, tensor<3xf32>
}
func.func @columns(%a: tensor<300x70xf32>, %b: tensor<300x70xf32>, %p: tensor<70xf32>, %q: tensor<70xf32>)
    -> (tensor<70xf32> {test.tolerance = 1.0e-4}, tensor<70xf32> {test.tolerance = 1.0e-4}) {
  %r:2 = nn.kernel batch (%x = %a, %i = %p, %y = %b, %j = %q)
      : (tensor<300x70xf32>, tensor<70xf32>, tensor<300x70xf32>, tensor<70xf32>) -> (tensor<70xf32>, tensor<70xf32>) {
    %u = nn.reduce_sum %x dims = [0] : tensor<300x70xf32> -> tensor<70xf32>
    %v = nn.add %u, %i : tensor<70xf32>
    %s = nn.reduce_sum %y dims = [0] : tensor<300x70xf32> -> tensor<70xf32>
    %t = nn.add %s, %j : tensor<70xf32>
    nn.yield %v, %t : tensor<70xf32>, tensor<70xf32>
  }
  return %r#0, %r#1 : tensor<70xf32>, tensor<70xf32>
}
func.func @columns_and_rows_of_them(%a: tensor<3x100x40xf32>, %b: tensor<3x100x40xf32>)
    -> (tensor<3x100x40xf32> {test.tolerance = 1.0e-4}, tensor<3x100x40xf32> {test.tolerance = 1.0e-4}) {
  %r:2 = nn.kernel batch (%x = %a, %y = %b)
      : (tensor<3x100x40xf32>, tensor<3x100x40xf32>) -> (tensor<3x100x40xf32>, tensor<3x100x40xf32>) {
    %u = nn.reduce_max %x dims = [1] : tensor<3x100x40xf32> -> tensor<3x40xf32>
    %v = nn.broadcast %u dims = [0, 2] : tensor<3x40xf32> -> tensor<3x100x40xf32>
    %w = nn.sub %x, %v : tensor<3x100x40xf32>
    %s = nn.reduce_max %y dims = [1] : tensor<3x100x40xf32> -> tensor<3x40xf32>
    %t = nn.broadcast %s dims = [0, 2] : tensor<3x40xf32> -> tensor<3x100x40xf32>
    %z = nn.sub %y, %t : tensor<3x100x40xf32>
    nn.yield %w, %z : tensor<3x100x40xf32>, tensor<3x100x40xf32>
  }
  return %r#0, %r#1 : tensor<3x100x40xf32>, tensor<3x100x40xf32>
}
