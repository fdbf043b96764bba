// RUN: lowtide-execute %s
// RUN: lowtide-execute %s --print=cpu | FileCheck %s
// A transpose that reads crosswise goes by tiles of 16 × 16, through an array on the stack.

// Dimensions that stay neighbours are one: 2 × 32 × 80.
// CHECK-LABEL: func.func private @loop_0.body
// CHECK: llvm.alloca {{.*}} !llvm.array<256 x f32>
// CHECK-NOT: scf.if
// CHECK: return
func.func @whole(%x: tensor<2x32x8x1x10xf32>) -> tensor<2x8x1x10x32xf32> {
  %y = nn.transpose %x [0, 2, 3, 4, 1] : tensor<2x32x8x1x10xf32> -> tensor<2x8x1x10x32xf32>
  return %y : tensor<2x8x1x10x32xf32>
}
// Short dimensions that stay neighbours are long lines: 3 × 40 × 20.
// CHECK-LABEL: func.func private @loop_0.body
// CHECK: llvm.alloca {{.*}} !llvm.array<256 x f32>
// CHECK: return
func.func @joined(%x: tensor<3x4x5x40xf32>) -> tensor<3x40x4x5xf32> {
  %y = nn.transpose %x [0, 3, 1, 2] : tensor<3x4x5x40xf32> -> tensor<3x40x4x5xf32>
  return %y : tensor<3x40x4x5xf32>
}
// What is left over at the edges goes element by element.
// CHECK-LABEL: func.func private @loop_0.body
// CHECK: llvm.alloca {{.*}} !llvm.array<256 x f32>
// CHECK: scf.if
// CHECK: return
func.func @edges(%x: tensor<3x37x2x50xf32>) -> tensor<50x2x3x37xf32> {
  %y = nn.transpose %x [3, 2, 0, 1] : tensor<3x37x2x50xf32> -> tensor<50x2x3x37xf32>
  return %y : tensor<50x2x3x37xf32>
}
// CHECK-LABEL: func.func private @loop_0.body
// CHECK: llvm.alloca {{.*}} !llvm.array<256 x i8>
// CHECK: return
func.func @bytes(%x: tensor<48x17xi1>) -> tensor<17x48xi1> {
  %y = nn.transpose %x [1, 0] : tensor<48x17xi1> -> tensor<17x48xi1>
  return %y : tensor<17x48xi1>
}
// CHECK-LABEL: func.func private @loop_0.body
func.func @halves(%x: tensor<40x33xbf16>) -> tensor<33x40xbf16> {
  %y = nn.transpose %x [1, 0] : tensor<40x33xbf16> -> tensor<33x40xbf16>
  return %y : tensor<33x40xbf16>
}
// CHECK-LABEL: func.func private @loop_0.body
func.func @doubles(%x: tensor<4x16x20xf64>) -> tensor<20x4x16xf64> {
  %y = nn.transpose %x [2, 0, 1] : tensor<4x16x20xf64> -> tensor<20x4x16xf64>
  return %y : tensor<20x4x16xf64>
}
// Short lines are near one another anyway.
// CHECK-LABEL: func.func private @loop_0.body
// CHECK-NOT: llvm.alloca
// CHECK: return
func.func @short(%x: tensor<64x12xf32>) -> tensor<12x64xf32> {
  %y = nn.transpose %x [1, 0] : tensor<64x12xf32> -> tensor<12x64xf32>
  return %y : tensor<12x64xf32>
}
