// RUN: lowtide-opt %s --split-input-file --train-weigh-loss --verify-diagnostics | FileCheck %s

// A mean over the labels that count: weighed by their number.
// CHECK-LABEL: func.func @eval
// CHECK-SAME: tensor<f32> {train.binding = #train.metric<"loss_weight">})
func.func @eval(%logits: tensor<8x5xf32> {train.binding = #train.batch<"logits">},
                %labels: tensor<8xi64> {train.binding = #train.batch<"labels">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %ignored = nn.constant dense<-100> : tensor<8xi64>
  %loss, %lse = nn.softmax_cross_entropy %logits, %labels ignore_index = -100 : (tensor<8x5xf32>, tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>)
  %counts = nn.compare ne %labels, %ignored : tensor<8xi64> -> tensor<8xi1>
  // CHECK: %[[ONES:.*]] = nn.cast
  %ones = nn.cast %counts : tensor<8xi1> -> tensor<8xf32>
  %sum = nn.reduce_sum %loss dims = [0] : tensor<8xf32> -> tensor<f32>
  // CHECK: %[[COUNT:.*]] = nn.reduce_sum %[[ONES]] dims
  %count = nn.reduce_sum %ones dims = [0] : tensor<8xf32> -> tensor<f32>
  // CHECK: %[[MEAN:.*]] = nn.div %{{.*}}, %[[COUNT]]
  %mean = nn.div %sum, %count : tensor<f32>
  // CHECK: return %[[MEAN]], %[[COUNT]] : tensor<f32>, tensor<f32>
  return %mean : tensor<f32>
}

// -----

// Label smoothing adds two means over the same labels, each with its factor.
// CHECK-LABEL: func.func @eval
func.func @eval(%x: tensor<8xf32> {train.binding = #train.batch<"x">}, %y: tensor<8xf32> {train.binding = #train.batch<"y">},
                %w: tensor<8xf32> {train.binding = #train.batch<"w">}) -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %part = nn.constant dense<0.9> : tensor<f32>
  %rest = nn.constant dense<0.02> : tensor<f32>
  %xs = nn.reduce_sum %x dims = [0] : tensor<8xf32> -> tensor<f32>
  %ys = nn.reduce_sum %y dims = [0] : tensor<8xf32> -> tensor<f32>
  // CHECK: %[[WEIGHTS:.*]] = nn.reduce_sum %arg2
  %ws = nn.reduce_sum %w dims = [0] : tensor<8xf32> -> tensor<f32>
  %first = nn.div %xs, %ws : tensor<f32>
  %scaled = nn.mul %ys, %rest : tensor<f32>
  %second = nn.div %scaled, %ws : tensor<f32>
  %main = nn.mul %first, %part : tensor<f32>
  %sum = nn.add %main, %second : tensor<f32>
  // CHECK: return %{{.*}}, %[[WEIGHTS]]
  return %sum : tensor<f32>
}

// -----

// Means over different weights, and a factor that the samples change: none is the weight of the whole.
// CHECK-LABEL: func.func @eval
func.func @eval(%x: tensor<8xf32> {train.binding = #train.batch<"x">}, %y: tensor<8xf32> {train.binding = #train.batch<"y">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %xs = nn.reduce_sum %x dims = [0] : tensor<8xf32> -> tensor<f32>
  %ys = nn.reduce_sum %y dims = [0] : tensor<8xf32> -> tensor<f32>
  %first = nn.div %xs, %ys : tensor<f32>
  %second = nn.div %ys, %xs : tensor<f32>
  %sum = nn.add %first, %second : tensor<f32>
  // CHECK: %[[SAMPLES:.*]] = nn.constant dense<8.000000e+00> : tensor<f32>
  // CHECK: return %{{.*}}, %[[SAMPLES]]
  return %sum : tensor<f32>
}

// -----

// CHECK-LABEL: func.func @eval
func.func @eval(%x: tensor<8xf32> {train.binding = #train.batch<"x">}, %y: tensor<8xf32> {train.binding = #train.batch<"y">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %xs = nn.reduce_sum %x dims = [0] : tensor<8xf32> -> tensor<f32>
  %ys = nn.reduce_sum %y dims = [0] : tensor<8xf32> -> tensor<f32>
  %mean = nn.div %xs, %ys : tensor<f32>
  %product = nn.mul %mean, %xs : tensor<f32>
  // CHECK: %[[SAMPLES:.*]] = nn.constant dense<8.000000e+00> : tensor<f32>
  // CHECK: return %{{.*}}, %[[SAMPLES]]
  return %product : tensor<f32>
}

// -----

// A sum over all samples: weighed by how many there are.
// CHECK-LABEL: func.func @eval
func.func @eval(%x: tensor<8xf32> {train.binding = #train.batch<"x">}) -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %sum = nn.reduce_sum %x dims = [0] : tensor<8xf32> -> tensor<f32>
  // CHECK: %[[SAMPLES:.*]] = nn.constant dense<8.000000e+00> : tensor<f32>
  // CHECK: return %{{.*}}, %[[SAMPLES]]
  return %sum : tensor<f32>
}

// -----

// Every sample with every other: a batch that holds one twice says something else.
// CHECK-LABEL: func.func @eval
// CHECK-NOT: loss_weight
// expected-remark@below {{@eval: samples of a batch are not evaluated apart: 'nn.dot' cannot be computed for a part of the batch}}
func.func @eval(%x: tensor<4x3xf32> {train.binding = #train.batch<"x">}) -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %products = nn.dot %x, %x {transpose_b} : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x4xf32>
  %sum = nn.reduce_sum %products dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

// No evaluation: nothing to weigh.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: loss_weight
func.func @forward(%x: tensor<8xf32> {train.binding = #train.batch<"x">}) -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %sum = nn.reduce_sum %x dims = [0] : tensor<8xf32> -> tensor<f32>
  return %sum : tensor<f32>
}
