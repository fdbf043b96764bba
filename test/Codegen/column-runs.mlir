// RUN: lowtide-execute %s
// RUN: lowtide-execute %s --print=cpu | FileCheck %s
// Columns over several dimensions of which something read has one alone: a tile stays within those that travel together, so that
// neighbours in it are neighbours in memory.

// CHECK-LABEL: func.func private @column_0.body
// CHECK: arith.divui %{{.*}}, %c48
// CHECK: return
func.func @pairs(%x: tensor<70x1x48xf32>, %y: tensor<1x5x48xf32>) -> (tensor<5x48xf32>, tensor<70x5x48xf32>) {
  %r:2 = nn.kernel column (%a = %x, %b = %y) : (tensor<70x1x48xf32>, tensor<1x5x48xf32>) -> (tensor<5x48xf32>, tensor<70x5x48xf32>) {
    %p = nn.broadcast %a dims = [0, 1, 2] : tensor<70x1x48xf32> -> tensor<70x5x48xf32>
    %q = nn.broadcast %b dims = [0, 1, 2] : tensor<1x5x48xf32> -> tensor<70x5x48xf32>
    %s = nn.add %p, %q : tensor<70x5x48xf32>
    %t = nn.reduce_max %s dims = [0] : tensor<70x5x48xf32> -> tensor<5x48xf32>
    %u = nn.broadcast %t dims = [1, 2] : tensor<5x48xf32> -> tensor<70x5x48xf32>
    %d = nn.sub %s, %u : tensor<70x5x48xf32>
    nn.yield %t, %d : tensor<5x48xf32>, tensor<70x5x48xf32>
  }
  return %r#0, %r#1 : tensor<5x48xf32>, tensor<70x5x48xf32>
}
// Where all travel together, a tile goes on into the next row of columns.
// CHECK-LABEL: func.func private @column_0.body
// CHECK: arith.constant 64 : index
// CHECK: return
func.func @together(%x: tensor<70x5x48xf32>) -> tensor<5x48xf32> {
  %t = nn.reduce_max %x dims = [0] : tensor<70x5x48xf32> -> tensor<5x48xf32>
  return %t : tensor<5x48xf32>
}
