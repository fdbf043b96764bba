// RUN: lowtide-opt %s --train-order --plan-lower --plan-place --verify-plan | FileCheck %s

// What has no element is an output of the plan, and no instruction makes it.
// CHECK-LABEL: plan.program @eval
// CHECK: plan.binding output "nothing" tensor<4x0xf32> @{{[a-z]+}}[{{[0-9]+}} + 0]
// CHECK: plan.binding output "same" tensor<4xf32>
// CHECK: plan.launch @{{.*}} writes [@{{[a-z]+}}[{{[0-9]+}} + 16]
// CHECK-NOT: plan.launch
func.func @eval(%x: tensor<4xf32> {train.binding = #train.batch<"x">})
    -> (tensor<4x0xf32> {train.binding = #train.output<"nothing">}, tensor<4xf32> {train.binding = #train.output<"same">}) {
  %0 = nn.kernel loop (%a = %x) : (tensor<4xf32>) -> (tensor<4x0xf32>) {
    %b = nn.broadcast %a dims = [0] : tensor<4xf32> -> tensor<4x0xf32>
    nn.yield %b : tensor<4x0xf32>
  }
  %1 = nn.kernel loop (%a = %x) : (tensor<4xf32>) -> (tensor<4xf32>) {
    %r = nn.relu %a : tensor<4xf32>
    nn.yield %r : tensor<4xf32>
  }
  return %0, %1 : tensor<4x0xf32>, tensor<4xf32>
}
