// RUN: lowtide-execute %s
// RUN: lowtide-execute %s --print=cpu | FileCheck %s
// What derivatives of slices add up to, tensors with zeros around that nowhere meet, is read by one load, where the position in
// the padded dimension stays the same for a whole loop. Zeros that were added keep their effect: −0 becomes +0.

// CHECK-LABEL: func.func private @loop_0.body
// CHECK-COUNT-2: llvm.select
// CHECK-NOT: scf.if
// CHECK: arith.addf
// CHECK-NOT: arith.addf
// CHECK: return
func.func @covered(%a: tensor<2x1x40xf32> {test.value = dense<-0.0> : tensor<2x1x40xf32>},
                   %b: tensor<2x2x40xf32> {test.value = dense<3.5> : tensor<2x2x40xf32>},
                   %c: tensor<2x1x40xf32> {test.value = dense<-2.0> : tensor<2x1x40xf32>}) -> tensor<2x4x40xf32> {
  %p = nn.pad %a low = [0, 0, 0] high = [0, 3, 0] interior = [0, 0, 0] : tensor<2x1x40xf32> -> tensor<2x4x40xf32>
  %q = nn.pad %b low = [0, 1, 0] high = [0, 1, 0] interior = [0, 0, 0] : tensor<2x2x40xf32> -> tensor<2x4x40xf32>
  %r = nn.pad %c low = [0, 3, 0] high = [0, 0, 0] interior = [0, 0, 0] : tensor<2x1x40xf32> -> tensor<2x4x40xf32>
  %s = nn.add %r, %p : tensor<2x4x40xf32>
  %t = nn.add %s, %q : tensor<2x4x40xf32>
  return %t : tensor<2x4x40xf32>
}
// Between and after the pieces is nothing; one term more is added as it was.
// CHECK-LABEL: func.func private @loop_0.body
// CHECK: llvm.select
// CHECK: scf.if
// CHECK-NOT: scf.if
// CHECK: return
func.func @gaps(%a: tensor<2x40xf32>, %b: tensor<1x40xf32>, %w: tensor<7x40xf32>) -> tensor<7x40xf32> {
  %p = nn.pad %a low = [1, 0] high = [4, 0] interior = [0, 0] : tensor<2x40xf32> -> tensor<7x40xf32>
  %q = nn.pad %b low = [5, 0] high = [1, 0] interior = [0, 0] : tensor<1x40xf32> -> tensor<7x40xf32>
  %s = nn.add %p, %w : tensor<7x40xf32>
  %t = nn.add %q, %s : tensor<7x40xf32>
  return %t : tensor<7x40xf32>
}
// CHECK-LABEL: func.func private @loop_0.body
// CHECK: llvm.select
func.func @narrow(%a: tensor<2x40xbf16>, %b: tensor<3x40xbf16>, %w: tensor<5x40xbf16>) -> tensor<5x40xbf16> {
  %p = nn.pad %a low = [0, 0] high = [3, 0] interior = [0, 0] : tensor<2x40xbf16> -> tensor<5x40xbf16>
  %q = nn.pad %b low = [2, 0] high = [0, 0] interior = [0, 0] : tensor<3x40xbf16> -> tensor<5x40xbf16>
  %s = nn.add %p, %w : tensor<5x40xbf16>
  %t = nn.add %q, %s : tensor<5x40xbf16>
  return %t : tensor<5x40xbf16>
}
// CHECK-LABEL: func.func private @loop_0.body
// CHECK: llvm.select
func.func @integers(%a: tensor<2x9xi64>, %b: tensor<3x9xi64>) -> tensor<6x9xi64> {
  %p = nn.pad %a low = [0, 0] high = [4, 0] interior = [0, 0] : tensor<2x9xi64> -> tensor<6x9xi64>
  %q = nn.pad %b low = [3, 0] high = [0, 0] interior = [0, 0] : tensor<3x9xi64> -> tensor<6x9xi64>
  %t = nn.add %q, %p : tensor<6x9xi64>
  return %t : tensor<6x9xi64>
}
// Pieces that meet are added.
// CHECK-LABEL: func.func private @loop_0.body
// CHECK-NOT: llvm.select
// CHECK-COUNT-2: scf.if
// CHECK: return
func.func @overlap(%a: tensor<3x40xf32>, %b: tensor<3x40xf32>) -> tensor<5x40xf32> {
  %p = nn.pad %a low = [0, 0] high = [2, 0] interior = [0, 0] : tensor<3x40xf32> -> tensor<5x40xf32>
  %q = nn.pad %b low = [2, 0] high = [0, 0] interior = [0, 0] : tensor<3x40xf32> -> tensor<5x40xf32>
  %t = nn.add %p, %q : tensor<5x40xf32>
  return %t : tensor<5x40xf32>
}
// Dimensions that a pad leaves alone are one loop.
// CHECK-LABEL: func.func private @loop_0.body
// CHECK: arith.constant 630 : index
// CHECK: return
func.func @glued(%a: tensor<20x9x1x70xf32>, %b: tensor<1x70xf32>) -> tensor<23x9x1x70xf32> {
  %c = nn.broadcast %b dims = [2, 3] : tensor<1x70xf32> -> tensor<20x9x1x70xf32>
  %p = nn.pad %a low = [1, 0, 0, 0] high = [2, 0, 0, 0] interior = [0, 0, 0, 0] : tensor<20x9x1x70xf32> -> tensor<23x9x1x70xf32>
  %q = nn.abs %p : tensor<23x9x1x70xf32>
  return %q : tensor<23x9x1x70xf32>
}
