// RUN: lowtide-opt %s --train-distribute-loops=blocks=2 --split-input-file | FileCheck %s
// RUN: lowtide-opt %s --train-distribute-loops=blocks=2 --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=SAID

// Two layers. The loop of the second has loss and derivative; that of the first, backward, computes its layer again from the
// batch, reads the cotangent between them, and counts samples for its dropout as the forward loop does.
// CHECK-LABEL: func.func @two_layers
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x64xf32>
// CHECK: %[[H:.*]]:2 = train.accumulate 2 slices(%[[P:.*]] = %[[X]]) carries(%[[ROW:.*]] = %{{.*}}) : {{.*}} -> (tensor<i64>, tensor<4x64xf32>) {
// CHECK: nn.random_uniform %{{.*}}, %{{.*}}, %[[ROW]]
// CHECK: %[[KEPT:.*]] = nn.mul
// CHECK: train.next carries(%{{.*}} : tensor<i64>) rows(%[[KEPT]] : tensor<2x64xf32>)
// CHECK: %[[LAST:.*]]:3 = train.accumulate 2 slices(%[[HK:.*]] = %[[H]]#1) carries(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : {{.*}} -> (tensor<f32>, tensor<64x64xf32>, tensor<4x64xf32>) {
// CHECK: nn.dot %[[HK]], %[[W2:[a-z0-9]+]] :
// CHECK: nn.dot %[[HK]], %{{.*}} {transpose_a}
// CHECK: %[[DH:.*]] = nn.dot %{{.*}}, %[[W2]] {transpose_b}
// CHECK: train.next carries(%{{.*}}, %{{.*}} : tensor<f32>, tensor<64x64xf32>) rows(%[[DH]] : tensor<2x64xf32>)
// CHECK: %[[FIRST:.*]]:2 = train.accumulate 2 slices(%[[PB:.*]] = %[[X]], %[[DHK:.*]] = %[[LAST]]#2) carries({{.*}}) : {{.*}} -> {{.*}} {
// CHECK: nn.random_uniform
// CHECK: nn.dot %[[PB]], %{{.*}} {transpose_a}
// CHECK: train.next
// CHECK-NOT: train.accumulate
// CHECK: return %[[LAST]]#0, %[[LAST]]#1
func.func @two_layers(%x: tensor<4x64xf32> {train.binding = #train.batch<"x">},
    %w1: tensor<64x64xf32> {train.binding = #train.param<"w1">}, %w2: tensor<64x64xf32> {train.binding = #train.param<"w2">},
    %seed: tensor<i64> {train.binding = #train.scalar<"seed">}, %step: tensor<i64> {train.binding = #train.scalar<"step">},
    %row: tensor<i64> {train.binding = #train.scalar<"row">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<64x64xf32> {train.binding = #train.gradient<"w2">},
        tensor<64x64xf32> {train.binding = #train.gradient<"w1">}) {
  %zero = nn.constant dense<0.0> : tensor<f32>
  %zero1 = nn.constant dense<0.0> : tensor<64x64xf32>
  %zero2 = nn.constant dense<0.0> : tensor<64x64xf32>
  %all:4 = train.accumulate 2 slices(%xk = %x) carries(%rowk = %row, %sum = %zero, %s2 = %zero2, %s1 = %zero1)
      : (tensor<4x64xf32>, tensor<i64>, tensor<f32>, tensor<64x64xf32>, tensor<64x64xf32>) -> (tensor<i64>, tensor<f32>, tensor<64x64xf32>, tensor<64x64xf32>) {
    %two = nn.constant dense<2> : tensor<i64>
    %half = nn.constant dense<0.5> : tensor<2x64xf32>
    %one = nn.constant dense<1.0> : tensor<2x64xf32>
    %u = nn.random_uniform %seed, %step, %rowk op = 1 batch_dim = 0 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x64xf32>
    %keep = nn.compare ge %u, %half : tensor<2x64xf32> -> tensor<2x64xi1>
    %mask = nn.cast %keep : tensor<2x64xi1> -> tensor<2x64xf32>
    %a1 = nn.dot %xk, %w1 : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
    %t1 = nn.tanh %a1 : tensor<2x64xf32>
    %h = nn.mul %t1, %mask : tensor<2x64xf32>
    %a2 = nn.dot %h, %w2 : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
    %t2 = nn.tanh %a2 : tensor<2x64xf32>
    %term = nn.reduce_sum %t2 dims = [0, 1] : tensor<2x64xf32> -> tensor<f32>
    %next = nn.add %sum, %term : tensor<f32>
    %q2 = nn.mul %t2, %t2 : tensor<2x64xf32>
    %d2 = nn.sub %one, %q2 : tensor<2x64xf32>
    %g2 = nn.dot %h, %d2 {transpose_a} : (tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<64x64xf32>
    %n2 = nn.add %s2, %g2 : tensor<64x64xf32>
    %dh = nn.dot %d2, %w2 {transpose_b} : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
    %dt = nn.mul %dh, %mask : tensor<2x64xf32>
    %q1 = nn.mul %t1, %t1 : tensor<2x64xf32>
    %e1 = nn.sub %one, %q1 : tensor<2x64xf32>
    %d1 = nn.mul %dt, %e1 : tensor<2x64xf32>
    %g1 = nn.dot %xk, %d1 {transpose_a} : (tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<64x64xf32>
    %n1 = nn.add %s1, %g1 : tensor<64x64xf32>
    %rown = nn.add %rowk, %two : tensor<i64>
    train.next carries(%rown, %next, %n2, %n1 : tensor<i64>, tensor<f32>, tensor<64x64xf32>, tensor<64x64xf32>)
  }
  return %all#1, %all#2, %all#3 : tensor<f32>, tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// A state that both layers read and the last updates.
// CHECK-LABEL: func.func @state
// CHECK: train.accumulate
// CHECK-NOT: train.accumulate
// SAID: remark: a state that rounds hand on is read by several blocks: each part passes all of them before the next
func.func @state(%x: tensor<4x64xf32> {train.binding = #train.batch<"x">},
    %w1: tensor<64x64xf32> {train.binding = #train.param<"w1">}, %w2: tensor<64x64xf32> {train.binding = #train.param<"w2">},
    %m: tensor<64xf32> {train.binding = #train.state<"m">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<64xf32> {train.binding = #train.state<"m">}) {
  %zero = nn.constant dense<0.0> : tensor<f32>
  %all:2 = train.accumulate 2 slices(%xk = %x) carries(%sum = %zero, %old = %m)
      : (tensor<4x64xf32>, tensor<f32>, tensor<64xf32>) -> (tensor<f32>, tensor<64xf32>) {
    %b = nn.broadcast %old dims = [1] : tensor<64xf32> -> tensor<2x64xf32>
    %c = nn.sub %xk, %b : tensor<2x64xf32>
    %h = nn.dot %c, %w1 : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
    %d = nn.sub %h, %b : tensor<2x64xf32>
    %y = nn.dot %d, %w2 : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
    %term = nn.reduce_sum %y dims = [0, 1] : tensor<2x64xf32> -> tensor<f32>
    %next = nn.add %sum, %term : tensor<f32>
    %rows = nn.reduce_sum %y dims = [0] : tensor<2x64xf32> -> tensor<64xf32>
    %new = nn.add %old, %rows : tensor<64xf32>
    train.next carries(%next, %new : tensor<f32>, tensor<64xf32>)
  }
  return %all#0, %all#1 : tensor<f32>, tensor<64xf32>
}
