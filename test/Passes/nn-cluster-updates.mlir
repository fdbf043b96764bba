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

// Two updates of whose rows something is reduced share a learning rate and a constant: one kernel would keep both
// gradients alive.
// CHECK-LABEL: func.func @apart
// CHECK: nn.kernel row (%{{[^,]*}} = %arg4, %{{[^,]*}} = %arg2, %{{[^,]*}} = %arg0)
// CHECK: nn.kernel row (%{{[^,]*}} = %arg4, %{{[^,]*}} = %arg3, %{{[^,]*}} = %arg1)
func.func @apart(%a: tensor<64x32xf32> {train.binding = #train.param<"c">}, %b: tensor<64x32xf32> {train.binding = #train.param<"d">},
    %ga: tensor<64x32xf32> {train.binding = #train.batch<"ga">}, %gb: tensor<64x32xf32> {train.binding = #train.batch<"gb">},
    %lr: tensor<f32> {train.binding = #train.scalar<"lr">})
    -> (tensor<64x32xf32> {train.binding = #train.param<"c">}, tensor<64x32xf32> {train.binding = #train.param<"d">}) {
  %least = nn.constant dense<1.0e-12> : tensor<64xf32>
  %rate = nn.broadcast %lr dims = [] : tensor<f32> -> tensor<64x32xf32>
  %sa = nn.mul %ga, %rate : tensor<64x32xf32>
  %ma = nn.reduce_max %sa dims = [1] : tensor<64x32xf32> -> tensor<64xf32>
  %ca = nn.max %ma, %least : tensor<64xf32>
  %wa = nn.broadcast %ca dims = [0] : tensor<64xf32> -> tensor<64x32xf32>
  %na = nn.sub %a, %wa : tensor<64x32xf32>
  %sb = nn.mul %gb, %rate : tensor<64x32xf32>
  %mb = nn.reduce_max %sb dims = [1] : tensor<64x32xf32> -> tensor<64xf32>
  %cb = nn.max %mb, %least : tensor<64xf32>
  %wb = nn.broadcast %cb dims = [0] : tensor<64xf32> -> tensor<64x32xf32>
  %nb = nn.sub %b, %wb : tensor<64x32xf32>
  return %na, %nb : tensor<64x32xf32>, tensor<64x32xf32>
}
