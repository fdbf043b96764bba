// RUN: lowtide-opt %s --train-accumulate=micro-batches=2 --canonicalize --cse --verify-step --split-input-file --verify-diagnostics | FileCheck %s

// Steps come before samples, and the draw has taken the steps for them: it is made once, and the part's columns are cut.
// CHECK-LABEL: func.func @steps_drawn
// CHECK: %[[DRAW:.*]] = nn.random_uniform {{.*}} -> tensor<4x2x4x3xf32>
// CHECK: %[[ALL:.*]] = nn.reshape %[[DRAW]]
// CHECK: train.accumulate 2
// CHECK-NOT: nn.random_uniform
// expected-remark @+1 {{2 parts of 2 samples}}
func.func @steps_drawn(%x: tensor<8x4x3xf32> {train.binding = #train.batch<"x", dim = 1>}, %seed: tensor<i64> {train.binding = #train.scalar<"seed">},
    %step: tensor<i64> {train.binding = #train.scalar<"step">}, %row: tensor<i64> {train.binding = #train.scalar<"row">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %draw = nn.random_uniform %seed, %step, %row op = 0 batch_dim = 0 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<4x2x4x3xf32>
  %each = nn.reshape %draw : tensor<4x2x4x3xf32> -> tensor<8x4x3xf32>
  %y = nn.mul %x, %each : tensor<8x4x3xf32>
  %loss = nn.reduce_sum %y dims = [0, 1, 2] : tensor<8x4x3xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
