// RUN: lowtide-execute %s
// RUN: lowtide-execute %s --print=cpu | FileCheck %s
// A concatenation of arrays is read by one load from the operand that a position falls into, wherever the position stays
// the same for a whole loop: along a leading dimension, in rows and in loops. Along the innermost one, and where an operand
// is computed, a branch chooses.

// The operand is chosen once per channel, before all traversals. In rows, more than two are looked up in a table: the body names
// neither the pointers nor where they begin.
// CHECK-LABEL: func.func private @row_0.body(
// CHECK-SAME: %[[POINTERS:[a-z0-9]+]]: !llvm.ptr, %[[STARTS:[a-z0-9]+]]: !llvm.ptr, %[[COUNT:[a-z0-9]+]]: index,
// CHECK-SAME: %{{[a-z0-9]+}}: !llvm.ptr {{.*}}, %{{[a-z0-9]+}}: !llvm.ptr {{.*}}, %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index)
// CHECK: scf.for %[[CHANNEL:[a-z0-9]+]] = %[[BEGIN]] to %[[END]]
// CHECK: scf.for {{.*}} to %[[COUNT]]
// CHECK: llvm.getelementptr %[[STARTS]]
// CHECK: arith.cmpi sge, %[[CHANNEL]],
// CHECK: llvm.getelementptr %[[POINTERS]]
// CHECK-NOT: llvm.getelementptr %[[POINTERS]]
// CHECK-NOT: scf.if
// CHECK: return
// CHECK-LABEL: func.func @row_0(
// CHECK-DAG: arith.constant 4 : i64
// CHECK-DAG: arith.constant 12 : i64
// CHECK: call @row_0.body
func.func @channels(%x: tensor<2x3x5x7xf32>, %y: tensor<2x1x5x7xf32>, %z: tensor<2x8x5x7xf32>)
    -> (tensor<2x12x5x7xf32>, tensor<12xf32>) {
  %c = nn.concat %x, %y, %z dim = 1 : (tensor<2x3x5x7xf32>, tensor<2x1x5x7xf32>, tensor<2x8x5x7xf32>) -> tensor<2x12x5x7xf32>
  %s = nn.reduce_sum %c dims = [0, 2, 3] : tensor<2x12x5x7xf32> -> tensor<12xf32>
  %b = nn.broadcast %s dims = [1] : tensor<12xf32> -> tensor<2x12x5x7xf32>
  %d = nn.sub %c, %b : tensor<2x12x5x7xf32>
  return %d, %s : tensor<2x12x5x7xf32>, tensor<12xf32>
}
// CHECK-LABEL: func.func private @loop_0.body
// CHECK: llvm.select
// CHECK-NOT: scf.if
// CHECK: return
func.func @loop(%x: tensor<2x3x5x7xf32>, %y: tensor<2x4x5x7xf32>, %w: tensor<2x7x5x7xf32>) -> tensor<2x7x5x7xf32> {
  %c = nn.concat %x, %y dim = 1 : (tensor<2x3x5x7xf32>, tensor<2x4x5x7xf32>) -> tensor<2x7x5x7xf32>
  %p = nn.mul %c, %w : tensor<2x7x5x7xf32>
  return %p : tensor<2x7x5x7xf32>
}
// CHECK-LABEL: func.func private @loop_0.body
// CHECK-NOT: llvm.select
// CHECK: scf.if
// CHECK: return
func.func @innermost(%x: tensor<9x3xf32>, %y: tensor<9x40xf32>, %w: tensor<9x43xf32>) -> tensor<9x43xf32> {
  %c = nn.concat %x, %y dim = 1 : (tensor<9x3xf32>, tensor<9x40xf32>) -> tensor<9x43xf32>
  %p = nn.mul %c, %w : tensor<9x43xf32>
  return %p : tensor<9x43xf32>
}
// CHECK-LABEL: func.func private @loop_0.body
// CHECK-NOT: llvm.select
// CHECK: scf.if
// CHECK: return
func.func @computed(%x: tensor<3x40xf32>, %y: tensor<2x40xf32>) -> tensor<5x40xf32> {
  %r = nn.kernel loop (%a = %x, %b = %y) : (tensor<3x40xf32>, tensor<2x40xf32>) -> (tensor<5x40xf32>) {
    %e = nn.abs %a : tensor<3x40xf32>
    %c = nn.concat %e, %b dim = 0 : (tensor<3x40xf32>, tensor<2x40xf32>) -> tensor<5x40xf32>
    nn.yield %c : tensor<5x40xf32>
  }
  return %r : tensor<5x40xf32>
}
// Elements are too few for a search.
// CHECK-LABEL: func.func private @loop_0.body
// CHECK: llvm.select
// CHECK: llvm.select
// CHECK-NOT: scf.if
// CHECK: return
func.func @same_operand_twice(%x: tensor<3x40xbf16>, %y: tensor<1x40xbf16>) -> tensor<7x40xbf16> {
  %c = nn.concat %x, %y, %x dim = 0 : (tensor<3x40xbf16>, tensor<1x40xbf16>, tensor<3x40xbf16>) -> tensor<7x40xbf16>
  %p = nn.mul %c, %c : tensor<7x40xbf16>
  return %p : tensor<7x40xbf16>
}
