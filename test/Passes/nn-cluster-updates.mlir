// Arguments that take each other's values: the update of each is a reader of the other, and one of them has to come first.
// RUN: lowtide-opt %s --pass-pipeline="builtin.module(func.func(nn-cluster))" | FileCheck %s
// RUN: lowtide-opt %s --pass-pipeline="builtin.module(func.func(nn-cluster),train-order,plan-lower,plan-place,verify-plan)" | FileCheck %s --check-prefix=PLAN

// CHECK-LABEL: func.func @train
// CHECK: %[[A:.*]] = nn.kernel loop (%{{.*}} = %arg1)
// CHECK: %[[B:.*]] = nn.kernel loop (%{{.*}} = %arg0)
// CHECK: return %[[A]], %[[B]]
// PLAN: plan.program @train
func.func @train(%a: tensor<4xf32> {train.binding = #train.param<"a">}, %b: tensor<4xf32> {train.binding = #train.param<"b">})
    -> (tensor<4xf32> {train.binding = #train.param<"a">}, tensor<4xf32> {train.binding = #train.param<"b">}) {
  %0 = nn.exp %a : tensor<4xf32>
  %1 = nn.exp %b : tensor<4xf32>
  return %1, %0 : tensor<4xf32>, tensor<4xf32>
}
