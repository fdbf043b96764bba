// RUN: lowtide-opt %s --train-differentiate --canonicalize --cse --train-accumulate=micro-batches=2 --canonicalize --cse --verify-step | FileCheck %s

// A loop over time in a loop over parts of the batch: its rounds see one of two samples, the state that starts as zeros and the
// bias that is spread over samples among them.
// CHECK-LABEL: func.func @gradient
// CHECK: train.accumulate 2 slices({{.*}}) carries({{.*}})
// CHECK: nn.scan 5 slices({{.*}}) carries(%[[STATE:.*]] = %{{.*}}) reads({{.*}}) : (tensor<5x1x4xf32>, tensor<1x4xf32>, {{.*}}) -> (tensor<1x4xf32>, tensor<5x1x4xf32>)
// CHECK: nn.dot %[[STATE]], %{{.*}} {transpose_b} : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
// CHECK: nn.next
// CHECK: nn.scan 5 reversed slices({{.*}}) carries({{.*}}) {{.*}} -> (tensor<1x4xf32>, tensor<5x1x4xf32>)
// CHECK: nn.next
// CHECK: nn.dot {{.*}} {transpose_a} : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<4x4xf32>
// CHECK: train.next
func.func @forward(%x: tensor<5x2x3xf32> {train.binding = #train.batch<"x", dim = 1>},
    %b: tensor<4xf32> {train.binding = #train.param<"b">},
    %w: tensor<4x3xf32> {train.binding = #train.param<"w">}, %u: tensor<4x4xf32> {train.binding = #train.param<"u">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %zero = nn.constant dense<0.0> : tensor<2x4xf32>
  %rows = nn.reshape %x : tensor<5x2x3xf32> -> tensor<10x3xf32>
  %all = nn.dot %rows, %w {transpose_b} : (tensor<10x3xf32>, tensor<4x3xf32>) -> tensor<10x4xf32>
  %xs = nn.reshape %all : tensor<10x4xf32> -> tensor<5x2x4xf32>
  %last, %ys = nn.scan 5 slices(%part = %xs) carries(%state = %zero) reads(%weight = %u, %bb = %b)
      : (tensor<5x2x4xf32>, tensor<2x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<5x2x4xf32>) {
    %step = nn.reshape %part : tensor<1x2x4xf32> -> tensor<2x4xf32>
    %p = nn.dot %state, %weight {transpose_b} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %sum = nn.add %step, %p : tensor<2x4xf32>
    %bias = nn.broadcast %bb dims = [1] : tensor<4xf32> -> tensor<2x4xf32>
    %biased = nn.add %sum, %bias : tensor<2x4xf32>
    %next = nn.tanh %biased : tensor<2x4xf32>
    %row = nn.reshape %next : tensor<2x4xf32> -> tensor<1x2x4xf32>
    nn.next carries(%next : tensor<2x4xf32>) rows(%row : tensor<1x2x4xf32>)
  }
  %loss = nn.reduce_sum %ys dims = [0, 1, 2] : tensor<5x2x4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
