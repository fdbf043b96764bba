// Rows that no sum is a part of are written in the traversal that adds up their columns: every operand is read once. Rows
// that need the sums are written in a second one.
// RUN: lowtide compile %s --from=fitted --target=cuda:sm_90 --emit=kernels | FileCheck %s

// CHECK-LABEL: gpu.func @column_0
// CHECK: scf.for
// CHECK: llvm.store {{.*}} : bf16
// CHECK: gpu.barrier
// CHECK-NOT: llvm.store {{.*}} : bf16
// CHECK-LABEL: gpu.func @column_1
// CHECK-NOT: llvm.store {{.*}} : bf16
// CHECK: gpu.barrier
// CHECK: llvm.store {{.*}} : bf16
func.func @eval(%x: tensor<16x260x192xbf16> {train.binding = #train.batch<"x">}, %z: tensor<16x260x192xbf16> {train.binding = #train.batch<"z">})
    -> (tensor<16x192xf32> {train.binding = #train.output<"s">}, tensor<16x260x192xbf16> {train.binding = #train.output<"y">},
        tensor<16x192xf32> {train.binding = #train.output<"t">}, tensor<16x260x192xbf16> {train.binding = #train.output<"w">}) {
  %s, %y = nn.kernel column (%a = %x, %b = %z) : (tensor<16x260x192xbf16>, tensor<16x260x192xbf16>) -> (tensor<16x192xf32>, tensor<16x260x192xbf16>) {
    %c = nn.cast %a : tensor<16x260x192xbf16> -> tensor<16x260x192xf32>
    %d = nn.cast %b : tensor<16x260x192xbf16> -> tensor<16x260x192xf32>
    %e = nn.add %c, %d : tensor<16x260x192xf32>
    %r = nn.reduce_sum %e dims = [1] : tensor<16x260x192xf32> -> tensor<16x192xf32>
    %w = nn.cast %e : tensor<16x260x192xf32> -> tensor<16x260x192xbf16>
    nn.yield %r, %w : tensor<16x192xf32>, tensor<16x260x192xbf16>
  }
  %t, %w = nn.kernel column (%a = %x) : (tensor<16x260x192xbf16>) -> (tensor<16x192xf32>, tensor<16x260x192xbf16>) {
    %c = nn.cast %a : tensor<16x260x192xbf16> -> tensor<16x260x192xf32>
    %r = nn.reduce_sum %c dims = [1] : tensor<16x260x192xf32> -> tensor<16x192xf32>
    %b = nn.broadcast %r dims = [0, 2] : tensor<16x192xf32> -> tensor<16x260x192xf32>
    %d = nn.mul %c, %b : tensor<16x260x192xf32>
    %v = nn.cast %d : tensor<16x260x192xf32> -> tensor<16x260x192xbf16>
    nn.yield %r, %v : tensor<16x192xf32>, tensor<16x260x192xbf16>
  }
  return %s, %y, %t, %w : tensor<16x192xf32>, tensor<16x260x192xbf16>, tensor<16x192xf32>, tensor<16x260x192xbf16>
}
