// RUN: lowtide-opt %s --train-differentiate --canonicalize --cse --train-accumulate=micro-batches=2 --canonicalize --cse --verify-step --split-input-file | FileCheck %s

// The mean is over the labels that count in the whole batch: a loop of its own counts them before the gradients are made.
// Random numbers go on from the part's first sample, what the user wants of each sample is laid one after another.
// CHECK-LABEL: func.func @gradient
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x4xf32>
// CHECK-SAME: %[[Y:[a-z0-9]+]]: tensor<8xi64>
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4x3xf32>
// CHECK-SAME: %[[ROW:[a-z0-9]+]]: tensor<i64> {train.binding = #train.scalar<"row">}
// CHECK: %[[COUNT:.*]] = train.accumulate 2 slices(%[[PART:.*]] = %[[Y]]) carries(%[[SOFAR:.*]] = %{{.*}}) : (tensor<8xi64>, tensor<f32>) -> tensor<f32> {
// CHECK-NEXT: %[[VALID:.*]] = nn.compare ne %[[PART]]
// CHECK-NEXT: %[[ONES:.*]] = nn.cast %[[VALID]] : tensor<4xi1> -> tensor<4xf32>
// CHECK-NEXT: %[[TERM:.*]] = nn.reduce_sum %[[ONES]]
// CHECK-NEXT: %[[MORE:.*]] = nn.add %[[SOFAR]], %[[TERM]]
// CHECK-NEXT: train.next carries(%[[MORE]] : tensor<f32>)
// CHECK: nn.reciprocal %[[COUNT]]
// CHECK: %[[ALL:.*]]:4 = train.accumulate 2 slices(%[[XK:.*]] = %[[X]], %[[YK:.*]] = %[[Y]]) carries(%[[ROWK:.*]] = %[[ROW]], %{{.*}} = %{{.*}}, %[[DW:[a-z0-9]+]] = %{{[a-z0-9]+}}) : {{.*}} -> (tensor<i64>, tensor<f32>, tensor<4x3xf32>, tensor<8x3xf32>)
// CHECK: nn.random_uniform %{{.*}}, %{{.*}}, %[[ROWK]] op = 1 batch_dim = 0 : {{.*}} -> tensor<4x4xf32>
// CHECK: %[[LOGITS:.*]] = nn.dot %{{.*}}, %[[W]]
// CHECK: nn.softmax_cross_entropy %[[LOGITS]], %[[YK]]
// CHECK: %[[TERM:.*]] = nn.dot {{.*}} {transpose_a}
// CHECK: %[[SUM:.*]] = nn.add %[[DW]], %[[TERM]]
// CHECK: train.next carries(%{{.*}}, %{{.*}}, %[[SUM]] : tensor<i64>, tensor<f32>, tensor<4x3xf32>) rows(%[[LOGITS]] : tensor<4x3xf32>)
// CHECK: %[[LOSS:.*]] = nn.div %[[ALL]]#1, %[[COUNT]]
// CHECK: return %[[LOSS]], %[[ALL]]#3, %[[ALL]]#2
func.func @forward(%x: tensor<8x4xf32> {train.binding = #train.batch<"x">},
    %y: tensor<8xi64> {train.binding = #train.batch<"y">},
    %w: tensor<4x3xf32> {train.binding = #train.param<"w">},
    %seed: tensor<i64> {train.binding = #train.scalar<"seed">},
    %step: tensor<i64> {train.binding = #train.scalar<"step">},
    %row: tensor<i64> {train.binding = #train.scalar<"row">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<8x3xf32> {train.binding = #train.output<"logits">}) {
  %u = nn.random_uniform %seed, %step, %row op = 1 batch_dim = 0 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<8x4xf32>
  %p = nn.constant dense<0.5> : tensor<8x4xf32>
  %keep = nn.compare ge %u, %p : tensor<8x4xf32> -> tensor<8x4xi1>
  %mask = nn.cast %keep : tensor<8x4xi1> -> tensor<8x4xf32>
  %d = nn.mul %x, %mask : tensor<8x4xf32>
  %logits = nn.dot %d, %w : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
  %losses, %lse = nn.softmax_cross_entropy %logits, %y ignore_index = -100 : (tensor<8x3xf32>, tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>)
  %ignored = nn.constant dense<-100> : tensor<8xi64>
  %valid = nn.compare ne %y, %ignored : tensor<8xi64> -> tensor<8xi1>
  %ones = nn.cast %valid : tensor<8xi1> -> tensor<8xf32>
  %count = nn.reduce_sum %ones dims = [0] : tensor<8xf32> -> tensor<f32>
  %sum = nn.reduce_sum %losses dims = [0] : tensor<8xf32> -> tensor<f32>
  %loss = nn.div %sum, %count : tensor<f32>
  return %loss, %logits : tensor<f32>, tensor<8x3xf32>
}

// -----

// Batch norm keeps to each part, in both directions; its running mean follows the parts; the second dimension counts
// samples.
// CHECK-LABEL: func.func @gradient
// CHECK: train.accumulate 2 slices({{.*}}) carries(%[[OLD:.*]] = %{{.*}}, {{.*}})
// CHECK: nn.batch_norm {{.*}} : (tensor<2x3xf32>
// CHECK: nn.batch_norm_grad {{.*}} : (tensor<2x3xf32>
// CHECK: train.next
func.func @forward(%x: tensor<3x4xf32> {train.binding = #train.batch<"x", dim = 1>},
    %w: tensor<3x3xf32> {train.binding = #train.param<"w">},
    %s: tensor<3xf32> {train.binding = #train.param<"s">}, %b: tensor<3xf32> {train.binding = #train.param<"b">},
    %m: tensor<3xf32> {train.binding = #train.state<"mean", from_file>})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<3xf32> {train.binding = #train.state<"mean", from_file>}) {
  %h = nn.dot %x, %w {transpose_a} : (tensor<3x4xf32>, tensor<3x3xf32>) -> tensor<4x3xf32>
  %y, %mean, %variance = nn.batch_norm %h, %s, %b epsilon = 1.0e-05 : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
  %square = nn.mul %y, %h : tensor<4x3xf32>
  %loss = nn.reduce_sum %square dims = [0, 1] : tensor<4x3xf32> -> tensor<f32>
  %half = nn.constant dense<0.5> : tensor<3xf32>
  %both = nn.add %m, %mean : tensor<3xf32>
  %new = nn.mul %both, %half : tensor<3xf32>
  return %loss, %new : tensor<f32>, tensor<3xf32>
}

// -----

// Whatever is made of a state that the parts update is made inside, too: `old · 0.9` before it meets the part's mean.
// CHECK-LABEL: func.func @gradient
// CHECK-SAME: %[[MEAN:[a-z0-9]+]]: tensor<3xf32> {train.binding = #train.state<"mean", from_file>}
// CHECK-NOT: nn.mul %[[MEAN]]
// CHECK: train.accumulate 2 slices({{.*}}) carries({{.*}}%[[OLD:[a-z0-9]+]] = %[[MEAN]]
// CHECK: %[[KEPT:.*]] = nn.mul %[[OLD]]
// CHECK: %[[NEW:.*]] = nn.add %[[KEPT]], %
// CHECK: train.next carries({{.*}}%[[NEW]]
func.func @forward(%x: tensor<4x3xf32> {train.binding = #train.batch<"x">},
    %s: tensor<3xf32> {train.binding = #train.param<"s">}, %b: tensor<3xf32> {train.binding = #train.param<"b">},
    %m: tensor<3xf32> {train.binding = #train.state<"mean", from_file>})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<3xf32> {train.binding = #train.state<"mean", from_file>}) {
  %y, %mean, %variance = nn.batch_norm %x, %s, %b epsilon = 1.0e-05 : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
  %square = nn.mul %y, %x : tensor<4x3xf32>
  %loss = nn.reduce_sum %square dims = [0, 1] : tensor<4x3xf32> -> tensor<f32>
  %kept = nn.constant dense<0.9> : tensor<3xf32>
  %tenth = nn.constant dense<0.1> : tensor<3xf32>
  %old = nn.mul %m, %kept : tensor<3xf32>
  %part = nn.mul %mean, %tenth : tensor<3xf32>
  %new = nn.add %old, %part : tensor<3xf32>
  return %loss, %new : tensor<f32>, tensor<3xf32>
}

// -----

// Each part counts its own elements.
// CHECK-LABEL: func.func @gradient
// CHECK: train.accumulate 2
// CHECK: nn.unbiased_variance {{.*}} : (tensor<3xf32>, tensor<2x3xf32>)
// CHECK: train.next
func.func @forward(%x: tensor<4x3xf32> {train.binding = #train.batch<"x">},
    %s: tensor<3xf32> {train.binding = #train.param<"s">}, %b: tensor<3xf32> {train.binding = #train.param<"b">},
    %v: tensor<3xf32> {train.binding = #train.state<"variance", from_file>})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<3xf32> {train.binding = #train.state<"variance", from_file>}) {
  %y, %mean, %variance = nn.batch_norm %x, %s, %b epsilon = 1.0e-05 : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
  %square = nn.mul %y, %x : tensor<4x3xf32>
  %loss = nn.reduce_sum %square dims = [0, 1] : tensor<4x3xf32> -> tensor<f32>
  %unbiased = nn.unbiased_variance %variance, %x : (tensor<3xf32>, tensor<4x3xf32>) -> tensor<3xf32>
  %new = nn.add %v, %unbiased : tensor<3xf32>
  return %loss, %new : tensor<f32>, tensor<3xf32>
}
