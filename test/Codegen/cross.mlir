// RUN: lowtide-execute %s
// Rows and sums over their columns in one launch: sums of what the rows read, which they then overwrite; sums of what they
// write, under another shape too; rows of part of a warp, of a warp and of several; a rest of rows and of columns. Bits are
// those of separate kernels. Sums of 1,100 elements below 2 have an error bound of 2e-3 in f32.

func.func @norm_backward(%g: tensor<96xf32>, %dy: tensor<4x275x96xbf16>, %x: tensor<4x275x96xf32>)
    -> (tensor<4x275x96xbf16> {test.tolerance = 4.0e-2}, tensor<96xf32> {test.tolerance = 2.0e-3}, tensor<96xf32> {test.tolerance = 2.0e-3}) {
  %r:3 = nn.kernel cross (%w = %g, %d = %dy, %a = %x) : (tensor<96xf32>, tensor<4x275x96xbf16>, tensor<4x275x96xf32>)
      -> (tensor<4x275x96xbf16>, tensor<96xf32>, tensor<96xf32>) {
    %e = nn.cast %d : tensor<4x275x96xbf16> -> tensor<4x275x96xf32>
    %ww = nn.broadcast %w dims = [2] : tensor<96xf32> -> tensor<4x275x96xf32>
    %p = nn.mul %e, %ww : tensor<4x275x96xf32>
    %s = nn.reduce_sum %p dims = [2] : tensor<4x275x96xf32> -> tensor<4x275xf32>
    %sb = nn.broadcast %s dims = [0, 1] : tensor<4x275xf32> -> tensor<4x275x96xf32>
    %q = nn.sub %p, %sb : tensor<4x275x96xf32>
    %y = nn.cast %q : tensor<4x275x96xf32> -> tensor<4x275x96xbf16>
    %e2 = nn.cast %d : tensor<4x275x96xbf16> -> tensor<4x275x96xf32>
    %m = nn.mul %e2, %a : tensor<4x275x96xf32>
    %dg = nn.reduce_sum %m dims = [0, 1] : tensor<4x275x96xf32> -> tensor<96xf32>
    %db = nn.reduce_sum %e2 dims = [0, 1] : tensor<4x275x96xf32> -> tensor<96xf32>
    %nw = nn.sub %w, %dg : tensor<96xf32>
    nn.yield %y, %nw, %db : tensor<4x275x96xbf16>, tensor<96xf32>, tensor<96xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<4x275x96xbf16>, tensor<96xf32>, tensor<96xf32>
}
func.func @sums_of_results(%x: tensor<5x220x300xf32>, %b: tensor<300xf32>)
    -> (tensor<5x220x300xf32> {test.tolerance = 2.0e-4}, tensor<300xf32> {test.tolerance = 1.0e-1}) {
  %r:2 = nn.kernel cross (%a = %x, %c = %b) : (tensor<5x220x300xf32>, tensor<300xf32>) -> (tensor<5x220x300xf32>, tensor<300xf32>) {
    %s = nn.reduce_sum %a dims = [2] : tensor<5x220x300xf32> -> tensor<5x220xf32>
    %w = nn.broadcast %s dims = [0, 1] : tensor<5x220xf32> -> tensor<5x220x300xf32>
    %y = nn.sub %a, %w : tensor<5x220x300xf32>
    %v = nn.reshape %y : tensor<5x220x300xf32> -> tensor<1100x300xf32>
    %t = nn.reduce_sum %v dims = [0] : tensor<1100x300xf32> -> tensor<300xf32>
    %u = nn.sub %c, %t : tensor<300xf32>
    nn.yield %y, %u : tensor<5x220x300xf32>, tensor<300xf32>
  }
  return %r#0, %r#1 : tensor<5x220x300xf32>, tensor<300xf32>
}
func.func @no_sums_in_rows(%x: tensor<1024x40xf32>, %z: tensor<1024x40xbf16>)
    -> (tensor<1024x40xbf16> {test.tolerance = 4.0e-2}, tensor<40xf32> {test.tolerance = 2.0e-1}) {
  %r:2 = nn.kernel cross (%a = %x, %b = %z) : (tensor<1024x40xf32>, tensor<1024x40xbf16>) -> (tensor<1024x40xbf16>, tensor<40xf32>) {
    %c = nn.cast %b : tensor<1024x40xbf16> -> tensor<1024x40xf32>
    %p = nn.mul %a, %c : tensor<1024x40xf32>
    %y = nn.cast %p : tensor<1024x40xf32> -> tensor<1024x40xbf16>
    %d = nn.cast %y : tensor<1024x40xbf16> -> tensor<1024x40xf32>
    %t = nn.reduce_sum %d dims = [0] : tensor<1024x40xf32> -> tensor<40xf32>
    nn.yield %y, %t : tensor<1024x40xbf16>, tensor<40xf32>
  }
  return %r#0, %r#1 : tensor<1024x40xbf16>, tensor<40xf32>
}
func.func @teams_of_several_warps(%x: tensor<1030x2600xf32>) -> (tensor<1030x2600xf32> {test.tolerance = 1.0e-3}, tensor<2600xf32> {test.tolerance = 2.0e-3}) {
  %r:2 = nn.kernel cross (%a = %x) : (tensor<1030x2600xf32>) -> (tensor<1030x2600xf32>, tensor<2600xf32>) {
    %s = nn.reduce_sum %a dims = [1] : tensor<1030x2600xf32> -> tensor<1030xf32>
    %w = nn.broadcast %s dims = [0] : tensor<1030xf32> -> tensor<1030x2600xf32>
    %y = nn.sub %a, %w : tensor<1030x2600xf32>
    %t = nn.reduce_sum %a dims = [0] : tensor<1030x2600xf32> -> tensor<2600xf32>
    nn.yield %y, %t : tensor<1030x2600xf32>, tensor<2600xf32>
  }
  return %r#0, %r#1 : tensor<1030x2600xf32>, tensor<2600xf32>
}
