// A GPU's scatter makes its indices on the way and writes the sum that its own is a term of, in place of the other one. What
// others read too stays apart, and a CPU, which adds up in memory, takes nothing along.
// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --nn-cluster | FileCheck %s
// RUN: lowtide-opt %s --nn-cluster | FileCheck %s --check-prefix=CPU

// CHECK-LABEL: @tied
// CHECK: nn.kernel scatter (%{{.*}} = %arg0, %{{.*}} = %arg1, %{{.*}} = %arg2) : {{.*}} -> tensor<9x300xf32>
// CHECK-NEXT: constant
// CHECK: nn.compare
// CHECK: nn.select
// CHECK: nn.scatter_add
// CHECK-NEXT: nn.add
// CHECK-NEXT: nn.yield
// CHECK: nn.kernel loop
// CHECK-NEXT: nn.mul
// CHECK-NOT: nn.kernel
// CHECK: return

// CPU-LABEL: @tied
// CPU: nn.kernel loop
// CPU: nn.kernel scatter
// CPU-NEXT: nn.scatter_add
// CPU-NEXT: nn.yield
// CPU: nn.kernel loop
func.func @tied(%i: tensor<70xi64>, %u: tensor<70x300xf32>, %x: tensor<9x300xf32>, %w: tensor<9x300xf32>) -> tensor<9x300xf32> {
  %zero = nn.constant dense<0> : tensor<70xi64>
  %rows = nn.constant dense<9> : tensor<70xi64>
  %back = nn.compare lt %i, %zero : tensor<70xi64> -> tensor<70xi1>
  %moved = nn.add %i, %rows : tensor<70xi64>
  %place = nn.select %back, %moved, %i : tensor<70xi1>, tensor<70xi64>
  %sum = nn.scatter_add [%place] %u axis = 0 : (tensor<70xi64>, tensor<70x300xf32>) -> tensor<9x300xf32>
  %both = nn.add %x, %sum : tensor<9x300xf32>
  %y = nn.mul %both, %w : tensor<9x300xf32>
  return %y : tensor<9x300xf32>
}

// CHECK-LABEL: @read_twice
// CHECK: nn.kernel loop
// CHECK: nn.kernel scatter {{.*}} -> tensor<9x300xf32>
// CHECK-NEXT: nn.scatter_add
// CHECK-NEXT: nn.yield
// CHECK: nn.kernel loop
// CHECK-NEXT: nn.add
func.func @read_twice(%i: tensor<70xi64>, %u: tensor<70x300xf32>, %x: tensor<9x300xf32>)
    -> (tensor<9x300xf32>, tensor<9x300xf32>, tensor<70xi64>) {
  %rows = nn.constant dense<9> : tensor<70xi64>
  %place = nn.add %i, %rows : tensor<70xi64>
  %sum = nn.scatter_add [%place] %u axis = 0 : (tensor<70xi64>, tensor<70x300xf32>) -> tensor<9x300xf32>
  %both = nn.add %x, %sum : tensor<9x300xf32>
  return %sum, %both, %place : tensor<9x300xf32>, tensor<9x300xf32>, tensor<70xi64>
}

// The other way around, rows that are picked for a sum over each: their numbers are made in the same kernel.
// CHECK-LABEL: @gathered_rows
// CHECK: nn.kernel row
// CHECK: nn.select
// CHECK: nn.gather
// CHECK-NOT: nn.kernel
// CHECK: return

// CPU-LABEL: @gathered_rows
// CPU: nn.kernel loop
// CPU: nn.kernel row
func.func @gathered_rows(%i: tensor<4x70xi64>, %t: tensor<9x300xf32>) -> (tensor<4x70xf32>, tensor<4x70x300xf32>) {
  %zero = nn.constant dense<0> : tensor<4x70xi64>
  %rows = nn.constant dense<9> : tensor<4x70xi64>
  %back = nn.compare lt %i, %zero : tensor<4x70xi64> -> tensor<4x70xi1>
  %moved = nn.add %i, %rows : tensor<4x70xi64>
  %place = nn.select %back, %moved, %i : tensor<4x70xi1>, tensor<4x70xi64>
  %x = nn.gather %t[%place] axis = 0 : (tensor<9x300xf32>, tensor<4x70xi64>) -> tensor<4x70x300xf32>
  %s = nn.reduce_sum %x dims = [2] : tensor<4x70x300xf32> -> tensor<4x70xf32>
  return %s, %x : tensor<4x70xf32>, tensor<4x70x300xf32>
}
