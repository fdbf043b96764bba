// Counts of what lands at a place: updates that are a constant are added without a load, in a loop whose body stands a few times.
// REQUIRES: ptxas
// RUN: lowtide compile %s --from=fitted --target=cuda:sm_90 --emit=ptx -o %t.ptx
// RUN: FileCheck %s < %t.ptx
// RUN: ptxas -arch=sm_90 -O3 -o %t.cubin %t.ptx
// RUN: lowtide compile %s --from=fitted --target=cuda:sm_80 --emit=ptx | FileCheck %s

// CHECK: .visible .entry scatter_0(
// CHECK: [[ROUND:\$L__[A-Z0-9_]+]]:
// CHECK-COUNT-4: add.rn.f32
// CHECK-NOT: add.rn.f32
// CHECK: bra {{.*}}[[ROUND]]

func.func @eval(%at: tensor<56xi64> {train.binding = #train.batch<"at">}) -> (tensor<12xf32> {train.binding = #train.output<"y">}) {
  %y = nn.kernel scatter (%a = %at) : (tensor<56xi64>) -> tensor<12xf32> {
    %one = nn.constant dense<1.000000e+00> : tensor<56xf32>
    %s = nn.scatter_elements_add[%a] %one axis = 0 : (tensor<56xi64>, tensor<56xf32>) -> tensor<12xf32>
    nn.yield %s : tensor<12xf32>
  }
  return %y : tensor<12xf32>
}
