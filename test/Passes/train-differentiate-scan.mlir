// RUN: lowtide-opt %s --train-differentiate --canonicalize --cse --verify-step --split-input-file | FileCheck %s

// A recurrent layer. Its states before each step are the rows that it has, one step on. The gradient walks back: a round
// reads what the step made its state of in these rows, which is all that a tanh needs, and hands on the cotangent of the
// state. Gradients of weights are products over all steps, after the loop.
// CHECK-LABEL: func.func @gradient
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<5x2x3xf32> {{.*}}, %[[H:[a-z0-9]+]]: tensor<2x4xf32> {{.*}}, %{{[a-z0-9]+}}: tensor<4x3xf32> {{.*}}, %[[U:[a-z0-9]+]]: tensor<4x4xf32>
// CHECK: %[[XS:.*]] = nn.reshape %{{.*}} : tensor<10x4xf32> -> tensor<5x2x4xf32>
// CHECK: %[[FORWARD:.*]]:2 = nn.scan 5 slices(%{{.*}} = %[[XS]]) carries(%{{.*}} = %[[H]]) reads(%{{.*}} = %[[U]])
// CHECK: %[[FIRST:.*]] = nn.reshape %[[H]] : tensor<2x4xf32> -> tensor<1x2x4xf32>
// CHECK: %[[OTHERS:.*]] = nn.slice %[[FORWARD]]#1 starts = [0, 0, 0]
// CHECK: %[[BEFORE:.*]] = nn.concat %[[FIRST]], %[[OTHERS]] dim = 0
// CHECK: %[[BACK:.*]]:2 = nn.scan 5 reversed slices(%[[DYK:.*]] = %{{.*}}, %[[AFTER:.*]] = %[[FORWARD]]#1) carries(%[[DH:.*]] = %{{.*}}) reads(%[[UK:.*]] = %[[U]])
// CHECK-NOT: nn.tanh
// CHECK-DAG: nn.mul %[[AFTER]], %[[AFTER]]
// CHECK-DAG: %[[ARRIVED:.*]] = nn.add %[[DH]], %{{.*}}
// CHECK: %[[DZ:.*]] = nn.mul %[[ARRIVED]], %{{.*}}
// CHECK: %[[HANDED:.*]] = nn.dot %[[DZ]], %[[UK]] :
// CHECK-NOT: nn.dot
// CHECK: %[[ROW:.*]] = nn.reshape %[[DZ]]
// CHECK: nn.next carries(%[[HANDED]] : tensor<2x4xf32>) rows(%[[ROW]] : tensor<1x2x4xf32>)
// CHECK-DAG: %[[DZS:.*]] = nn.reshape %[[BACK]]#1 : tensor<5x2x4xf32> -> tensor<10x4xf32>
// CHECK-DAG: %[[STATES:.*]] = nn.reshape %[[BEFORE]] : tensor<5x2x4xf32> -> tensor<10x4xf32>
// CHECK: %[[DU:.*]] = nn.dot %[[DZS]], %[[STATES]] {transpose_a}
// CHECK: %[[DW:.*]] = nn.dot %[[DZS]], %{{.*}} {transpose_a}
// CHECK: return %{{.*}}, %[[BACK]]#0, %[[DW]], %[[DU]]
func.func @forward(%x: tensor<5x2x3xf32> {train.binding = #train.batch<"x", dim = 1>},
    %h: tensor<2x4xf32> {train.binding = #train.param<"h">},
    %w: tensor<4x3xf32> {train.binding = #train.param<"w">}, %u: tensor<4x4xf32> {train.binding = #train.param<"u">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %rows = nn.reshape %x : tensor<5x2x3xf32> -> tensor<10x3xf32>
  %all = nn.dot %rows, %w {transpose_b} : (tensor<10x3xf32>, tensor<4x3xf32>) -> tensor<10x4xf32>
  %xs = nn.reshape %all : tensor<10x4xf32> -> tensor<5x2x4xf32>
  %last, %ys = nn.scan 5 slices(%part = %xs) carries(%state = %h) reads(%weight = %u)
      : (tensor<5x2x4xf32>, tensor<2x4xf32>, tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<5x2x4xf32>) {
    %step = nn.reshape %part : tensor<1x2x4xf32> -> tensor<2x4xf32>
    %p = nn.dot %state, %weight {transpose_b} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %sum = nn.add %step, %p : tensor<2x4xf32>
    %next = nn.tanh %sum : tensor<2x4xf32>
    %row = nn.reshape %next : tensor<2x4xf32> -> tensor<1x2x4xf32>
    nn.next carries(%next : tensor<2x4xf32>) rows(%row : tensor<1x2x4xf32>)
  }
  %loss = nn.reduce_sum %ys dims = [0, 1, 2] : tensor<5x2x4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A state that is no row becomes one, and a term that is neither a product nor laid down anyway is added up from round to
// round.
// CHECK-LABEL: func.func @gradient
// CHECK: %[[FORWARD:.*]]:2 = nn.scan 4 reversed slices({{.*}}) carries(%[[STATE:.*]] = %{{.*}}) reads({{.*}}) : {{.*}} -> (tensor<3xf32>, tensor<4x3xf32>)
// CHECK: %[[ROW:.*]] = nn.reshape %[[STATE]] : tensor<3xf32> -> tensor<1x3xf32>
// CHECK: nn.next {{.*}} rows(%[[ROW]] : tensor<1x3xf32>)
// CHECK: %[[BACK:.*]]:2 = nn.scan 4 slices(%{{.*}} = %{{.*}}, %{{.*}} = %[[FORWARD]]#1) carries(%{{.*}} = %{{.*}}, %[[SUM:.*]] = %{{.*}}) reads
// CHECK: %[[MORE:.*]] = nn.add %[[SUM]], %{{.*}}
// CHECK: nn.next carries(%{{.*}}, %[[MORE]] : tensor<3xf32>, tensor<3xf32>)
// CHECK: return %{{.*}}, %[[BACK]]#1
func.func @forward(%x: tensor<4x3xf32> {train.binding = #train.batch<"x">},
    %w: tensor<3xf32> {train.binding = #train.param<"w">}) -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %zero = nn.constant dense<0.0> : tensor<3xf32>
  %last = nn.scan 4 reversed slices(%part = %x) carries(%state = %zero) reads(%weight = %w)
      : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32> {
    %step = nn.reshape %part : tensor<1x3xf32> -> tensor<3xf32>
    %kept = nn.mul %state, %weight : tensor<3xf32>
    %sum = nn.add %kept, %step : tensor<3xf32>
    %next = nn.sin %sum : tensor<3xf32>
    nn.next carries(%next : tensor<3xf32>)
  }
  %loss = nn.reduce_sum %last dims = [0] : tensor<3xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
