// What needs no reduction is written in the traversal that reduces: nothing is kept for another one. What needs the sums is
// written after them, and the exponentials wait.
// RUN: lowtide-opt %s --plan-lower | FileCheck %s
// CHECK: plan.kernel @column{{.*}} reads 1 writes 2 "column: exp reduce_sum" footprints
// CHECK: plan.kernel @column{{.*}} reads 1 writes 2 scratch {{[0-9]+}} "column: exp reduce_sum broadcast div" footprints
func.func @train(%x: tensor<4096x70xf32> {train.binding = #train.batch<"x">})
    -> (tensor<4096x70xf32> {train.binding = #train.output<"a">}, tensor<70xf32> {train.binding = #train.output<"b">},
        tensor<4096x70xf32> {train.binding = #train.output<"c">}, tensor<70xf32> {train.binding = #train.output<"d">}) {
  %a:2 = nn.kernel column (%y = %x) : (tensor<4096x70xf32>) -> (tensor<4096x70xf32>, tensor<70xf32>) {
    %e = nn.exp %y : tensor<4096x70xf32>
    %s = nn.reduce_sum %e dims = [0] : tensor<4096x70xf32> -> tensor<70xf32>
    nn.yield %e, %s : tensor<4096x70xf32>, tensor<70xf32>
  }
  %b:2 = nn.kernel column (%y = %x) : (tensor<4096x70xf32>) -> (tensor<4096x70xf32>, tensor<70xf32>) {
    %e = nn.exp %y : tensor<4096x70xf32>
    %s = nn.reduce_sum %e dims = [0] : tensor<4096x70xf32> -> tensor<70xf32>
    %sb = nn.broadcast %s dims = [1] : tensor<70xf32> -> tensor<4096x70xf32>
    %q = nn.div %e, %sb : tensor<4096x70xf32>
    nn.yield %q, %s : tensor<4096x70xf32>, tensor<70xf32>
  }
  return %a#0, %a#1, %b#0, %b#1 : tensor<4096x70xf32>, tensor<70xf32>, tensor<4096x70xf32>, tensor<70xf32>
}
