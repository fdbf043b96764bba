// RUN: lowtide-execute %s
// RUN: lowtide-execute %s --print=gpu | FileCheck %s
// More sums over a row than a thread keeps at once: they are added up in parts of at most eight, in the same order each. Teams of
// part of a warp and of several warps; two kernels for one long row; conjunctions, whose rounds are written out a few at a time.

// 18 sums of four lanes each: three times six. Totals of four segments are added up in a loop that stays one.
// CHECK: gpu.func @row_0
// CHECK: :24 = scf.for
// CHECK-NOT: gpu.barrier
// CHECK: :6 = scf.for {{.*}} to %c4
// CHECK: {llvm.loop_annotation = #loop_annotation}
// CHECK: :24 = scf.for
// CHECK: :6 = scf.for {{.*}} to %c4
// CHECK: :24 = scf.for
// CHECK: :6 = scf.for {{.*}} to %c4
// CHECK: gpu.return
// 13 sums: seven, then six.
// CHECK: gpu.func @row_0
// CHECK: :28 = scf.for
// CHECK: gpu.barrier
// CHECK: :24 = scf.for
// CHECK: gpu.return
// Both kernels of a long row take 14 sums in two parts.
// CHECK: gpu.func @row_0
// CHECK: :28 = scf.for
// CHECK: :28 = scf.for
// CHECK: gpu.func @row_1
// CHECK: :7 = scf.for
// CHECK: :7 = scf.for
// CHECK: loop_unroll<count = 4 : i32>

func.func @part_of_a_warp(%x: tensor<3x1000xf32>, %y: tensor<3x1000xf32>) -> (tensor<3xf32> {test.tolerance = 1.0e-1}) {
  %r = nn.kernel row (%a = %x, %c = %y) : (tensor<3x1000xf32>, tensor<3x1000xf32>) -> (tensor<3xf32>) {
    %v0 = nn.mul %a, %c : tensor<3x1000xf32>
    %s0 = nn.reduce_sum %v0 dims = [1] : tensor<3x1000xf32> -> tensor<3xf32>
    %v1 = nn.add %a, %c : tensor<3x1000xf32>
    %s1 = nn.reduce_sum %v1 dims = [1] : tensor<3x1000xf32> -> tensor<3xf32>
    %t1 = nn.add %s0, %s1 : tensor<3xf32>
    %v2 = nn.sub %a, %c : tensor<3x1000xf32>
    %s2 = nn.reduce_sum %v2 dims = [1] : tensor<3x1000xf32> -> tensor<3xf32>
    %t2 = nn.add %t1, %s2 : tensor<3xf32>
    %v3 = nn.max %a, %c : tensor<3x1000xf32>
    %s3 = nn.reduce_sum %v3 dims = [1] : tensor<3x1000xf32> -> tensor<3xf32>
    %t3 = nn.add %t2, %s3 : tensor<3xf32>
    %v4 = nn.min %a, %c : tensor<3x1000xf32>
    %s4 = nn.reduce_sum %v4 dims = [1] : tensor<3x1000xf32> -> tensor<3xf32>
    %t4 = nn.add %t3, %s4 : tensor<3xf32>
    %v5 = nn.abs %a : tensor<3x1000xf32>
    %s5 = nn.reduce_sum %v5 dims = [1] : tensor<3x1000xf32> -> tensor<3xf32>
    %t5 = nn.add %t4, %s5 : tensor<3xf32>
    %v6 = nn.abs %c : tensor<3x1000xf32>
    %s6 = nn.reduce_sum %v6 dims = [1] : tensor<3x1000xf32> -> tensor<3xf32>
    %t6 = nn.add %t5, %s6 : tensor<3xf32>
    %v7 = nn.neg %c : tensor<3x1000xf32>
    %s7 = nn.reduce_sum %v7 dims = [1] : tensor<3x1000xf32> -> tensor<3xf32>
    %t7 = nn.add %t6, %s7 : tensor<3xf32>
    %v8 = nn.mul %a, %a : tensor<3x1000xf32>
    %s8 = nn.reduce_sum %v8 dims = [1] : tensor<3x1000xf32> -> tensor<3xf32>
    %t8 = nn.add %t7, %s8 : tensor<3xf32>
    %v9 = nn.mul %c, %c : tensor<3x1000xf32>
    %s9 = nn.reduce_sum %v9 dims = [1] : tensor<3x1000xf32> -> tensor<3xf32>
    %t9 = nn.add %t8, %s9 : tensor<3xf32>
    %v10 = nn.sub %c, %a : tensor<3x1000xf32>
    %s10 = nn.reduce_sum %v10 dims = [1] : tensor<3x1000xf32> -> tensor<3xf32>
    %t10 = nn.add %t9, %s10 : tensor<3xf32>
    %v11 = nn.mul %a, %c : tensor<3x1000xf32>
    %s11 = nn.reduce_sum %v11 dims = [1] : tensor<3x1000xf32> -> tensor<3xf32>
    %t11 = nn.add %t10, %s11 : tensor<3xf32>
    %v12 = nn.add %a, %c : tensor<3x1000xf32>
    %s12 = nn.reduce_sum %v12 dims = [1] : tensor<3x1000xf32> -> tensor<3xf32>
    %t12 = nn.add %t11, %s12 : tensor<3xf32>
    %v13 = nn.sub %a, %c : tensor<3x1000xf32>
    %s13 = nn.reduce_sum %v13 dims = [1] : tensor<3x1000xf32> -> tensor<3xf32>
    %t13 = nn.add %t12, %s13 : tensor<3xf32>
    %v14 = nn.max %a, %c : tensor<3x1000xf32>
    %s14 = nn.reduce_sum %v14 dims = [1] : tensor<3x1000xf32> -> tensor<3xf32>
    %t14 = nn.add %t13, %s14 : tensor<3xf32>
    %v15 = nn.min %a, %c : tensor<3x1000xf32>
    %s15 = nn.reduce_sum %v15 dims = [1] : tensor<3x1000xf32> -> tensor<3xf32>
    %t15 = nn.add %t14, %s15 : tensor<3xf32>
    %v16 = nn.abs %a : tensor<3x1000xf32>
    %s16 = nn.reduce_sum %v16 dims = [1] : tensor<3x1000xf32> -> tensor<3xf32>
    %t16 = nn.add %t15, %s16 : tensor<3xf32>
    %v17 = nn.abs %c : tensor<3x1000xf32>
    %s17 = nn.reduce_sum %v17 dims = [1] : tensor<3x1000xf32> -> tensor<3xf32>
    %t17 = nn.add %t16, %s17 : tensor<3xf32>
    nn.yield %t17 : tensor<3xf32>
  }
  return %r : tensor<3xf32>
}
func.func @several_warps(%x: tensor<2x5000xf32>, %y: tensor<2x5000xf32>) -> (tensor<2xf32> {test.tolerance = 4.0e-1}) {
  %r = nn.kernel row (%a = %x, %c = %y) : (tensor<2x5000xf32>, tensor<2x5000xf32>) -> (tensor<2xf32>) {
    %v0 = nn.mul %a, %c : tensor<2x5000xf32>
    %s0 = nn.reduce_sum %v0 dims = [1] : tensor<2x5000xf32> -> tensor<2xf32>
    %v1 = nn.add %a, %c : tensor<2x5000xf32>
    %s1 = nn.reduce_sum %v1 dims = [1] : tensor<2x5000xf32> -> tensor<2xf32>
    %t1 = nn.add %s0, %s1 : tensor<2xf32>
    %v2 = nn.sub %a, %c : tensor<2x5000xf32>
    %s2 = nn.reduce_sum %v2 dims = [1] : tensor<2x5000xf32> -> tensor<2xf32>
    %t2 = nn.add %t1, %s2 : tensor<2xf32>
    %v3 = nn.max %a, %c : tensor<2x5000xf32>
    %s3 = nn.reduce_sum %v3 dims = [1] : tensor<2x5000xf32> -> tensor<2xf32>
    %t3 = nn.add %t2, %s3 : tensor<2xf32>
    %v4 = nn.min %a, %c : tensor<2x5000xf32>
    %s4 = nn.reduce_sum %v4 dims = [1] : tensor<2x5000xf32> -> tensor<2xf32>
    %t4 = nn.add %t3, %s4 : tensor<2xf32>
    %v5 = nn.abs %a : tensor<2x5000xf32>
    %s5 = nn.reduce_sum %v5 dims = [1] : tensor<2x5000xf32> -> tensor<2xf32>
    %t5 = nn.add %t4, %s5 : tensor<2xf32>
    %v6 = nn.abs %c : tensor<2x5000xf32>
    %s6 = nn.reduce_sum %v6 dims = [1] : tensor<2x5000xf32> -> tensor<2xf32>
    %t6 = nn.add %t5, %s6 : tensor<2xf32>
    %v7 = nn.neg %c : tensor<2x5000xf32>
    %s7 = nn.reduce_sum %v7 dims = [1] : tensor<2x5000xf32> -> tensor<2xf32>
    %t7 = nn.add %t6, %s7 : tensor<2xf32>
    %v8 = nn.mul %a, %a : tensor<2x5000xf32>
    %s8 = nn.reduce_sum %v8 dims = [1] : tensor<2x5000xf32> -> tensor<2xf32>
    %t8 = nn.add %t7, %s8 : tensor<2xf32>
    %v9 = nn.mul %c, %c : tensor<2x5000xf32>
    %s9 = nn.reduce_sum %v9 dims = [1] : tensor<2x5000xf32> -> tensor<2xf32>
    %t9 = nn.add %t8, %s9 : tensor<2xf32>
    %v10 = nn.sub %c, %a : tensor<2x5000xf32>
    %s10 = nn.reduce_sum %v10 dims = [1] : tensor<2x5000xf32> -> tensor<2xf32>
    %t10 = nn.add %t9, %s10 : tensor<2xf32>
    %v11 = nn.mul %a, %c : tensor<2x5000xf32>
    %s11 = nn.reduce_sum %v11 dims = [1] : tensor<2x5000xf32> -> tensor<2xf32>
    %t11 = nn.add %t10, %s11 : tensor<2xf32>
    %v12 = nn.add %a, %c : tensor<2x5000xf32>
    %s12 = nn.reduce_sum %v12 dims = [1] : tensor<2x5000xf32> -> tensor<2xf32>
    %t12 = nn.add %t11, %s12 : tensor<2xf32>
    nn.yield %t12 : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}
func.func @two_kernels(%x: tensor<20000xf32>, %y: tensor<20000xf32>) -> (tensor<f32> {test.tolerance = 2.0}) {
  %r = nn.kernel row (%a = %x, %c = %y) : (tensor<20000xf32>, tensor<20000xf32>) -> (tensor<f32>) {
    %v0 = nn.mul %a, %c : tensor<20000xf32>
    %s0 = nn.reduce_sum %v0 dims = [0] : tensor<20000xf32> -> tensor<f32>
    %v1 = nn.add %a, %c : tensor<20000xf32>
    %s1 = nn.reduce_sum %v1 dims = [0] : tensor<20000xf32> -> tensor<f32>
    %t1 = nn.add %s0, %s1 : tensor<f32>
    %v2 = nn.sub %a, %c : tensor<20000xf32>
    %s2 = nn.reduce_sum %v2 dims = [0] : tensor<20000xf32> -> tensor<f32>
    %t2 = nn.add %t1, %s2 : tensor<f32>
    %v3 = nn.max %a, %c : tensor<20000xf32>
    %s3 = nn.reduce_sum %v3 dims = [0] : tensor<20000xf32> -> tensor<f32>
    %t3 = nn.add %t2, %s3 : tensor<f32>
    %v4 = nn.min %a, %c : tensor<20000xf32>
    %s4 = nn.reduce_sum %v4 dims = [0] : tensor<20000xf32> -> tensor<f32>
    %t4 = nn.add %t3, %s4 : tensor<f32>
    %v5 = nn.abs %a : tensor<20000xf32>
    %s5 = nn.reduce_sum %v5 dims = [0] : tensor<20000xf32> -> tensor<f32>
    %t5 = nn.add %t4, %s5 : tensor<f32>
    %v6 = nn.abs %c : tensor<20000xf32>
    %s6 = nn.reduce_sum %v6 dims = [0] : tensor<20000xf32> -> tensor<f32>
    %t6 = nn.add %t5, %s6 : tensor<f32>
    %v7 = nn.neg %c : tensor<20000xf32>
    %s7 = nn.reduce_sum %v7 dims = [0] : tensor<20000xf32> -> tensor<f32>
    %t7 = nn.add %t6, %s7 : tensor<f32>
    %v8 = nn.mul %a, %a : tensor<20000xf32>
    %s8 = nn.reduce_sum %v8 dims = [0] : tensor<20000xf32> -> tensor<f32>
    %t8 = nn.add %t7, %s8 : tensor<f32>
    %v9 = nn.mul %c, %c : tensor<20000xf32>
    %s9 = nn.reduce_sum %v9 dims = [0] : tensor<20000xf32> -> tensor<f32>
    %t9 = nn.add %t8, %s9 : tensor<f32>
    %v10 = nn.sub %c, %a : tensor<20000xf32>
    %s10 = nn.reduce_sum %v10 dims = [0] : tensor<20000xf32> -> tensor<f32>
    %t10 = nn.add %t9, %s10 : tensor<f32>
    %v11 = nn.mul %a, %c : tensor<20000xf32>
    %s11 = nn.reduce_sum %v11 dims = [0] : tensor<20000xf32> -> tensor<f32>
    %t11 = nn.add %t10, %s11 : tensor<f32>
    %v12 = nn.add %a, %c : tensor<20000xf32>
    %s12 = nn.reduce_sum %v12 dims = [0] : tensor<20000xf32> -> tensor<f32>
    %t12 = nn.add %t11, %s12 : tensor<f32>
    %v13 = nn.sub %a, %c : tensor<20000xf32>
    %s13 = nn.reduce_sum %v13 dims = [0] : tensor<20000xf32> -> tensor<f32>
    %t13 = nn.add %t12, %s13 : tensor<f32>
    nn.yield %t13 : tensor<f32>
  }
  return %r : tensor<f32>
}
func.func @conjunctions(%x: tensor<5x700xf32>, %y: tensor<5x700xf32>) -> (tensor<5xi1>) {
  %r = nn.kernel row (%a = %x, %c = %y) : (tensor<5x700xf32>, tensor<5x700xf32>) -> (tensor<5xi1>) {
    %i = nn.constant dense<0x7F800000> : tensor<5x700xf32>
    %p = nn.abs %a : tensor<5x700xf32>
    %u = nn.compare lt %p, %i : tensor<5x700xf32> -> tensor<5x700xi1>
    %f = nn.reduce_all %u dims = [1] : tensor<5x700xi1> -> tensor<5xi1>
    %q = nn.sub %c, %a : tensor<5x700xf32>
    %w = nn.compare lt %q, %i : tensor<5x700xf32> -> tensor<5x700xi1>
    %g = nn.reduce_all %w dims = [1] : tensor<5x700xi1> -> tensor<5xi1>
    %h = nn.and %f, %g : tensor<5xi1>
    nn.yield %h : tensor<5xi1>
  }
  return %r : tensor<5xi1>
}
