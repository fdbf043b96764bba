// RUN: lowtide-opt %s --canonicalize --nn-fuse-patterns=loss-head-always --canonicalize | FileCheck %s
// As written and as recognised: both compute PyTorch's values, of log_softmax(x @ weight.T + bias, -1).
// RUN: lowtide-execute %s
// RUN: lowtide-opt %s --canonicalize --nn-fuse-patterns=loss-head-always | lowtide-execute

// Smoothed labels: the logarithms change their sign before they are picked and summed. Σ_c logits_c is a product with the
// sum of the weight.
// CHECK-LABEL: @smoothed
// CHECK-NOT: nn.log_softmax
// CHECK: %[[LOSS:.*]], %[[LSE:.*]] = nn.linear_cross_entropy %[[ROWS:.*]], %arg1 bias %arg2 labels %{{.*}} :
// CHECK: nn.reduce_sum %arg1 dims = [0]
// CHECK-NOT: {{6x5|2x3x5}}
// CHECK: return
func.func @smoothed(%x: tensor<2x3x4xf32> {test.value = dense<[[[-0.0, 0.25, -0.75, 0.0], [0.75, -0.25, 1.5, -1.5], [0.5, 0.5, 0.75, -0.0]], [[-0.25, 0.5, -0.0, -1.75], [0.5, 0.25, 0.25, 1.25], [0.25, 0.0, 0.75, -0.0]]]> : tensor<2x3x4xf32>},
    %w: tensor<5x4xf32> {test.value = dense<[[-1.25, 1.0, 0.0, -0.25], [0.25, -0.25, -0.5, 0.75], [-0.0, -0.5, 0.5, -0.25], [-2.0, -1.25, -0.25, -0.5], [0.5, -0.0, -1.0, -0.5]]> : tensor<5x4xf32>},
    %b: tensor<5xf32> {test.value = dense<[-2.25, 0.25, -1.0, -0.25, -1.0]> : tensor<5xf32>},
    %y: tensor<2x3xi64> {test.value = dense<[[2, 0, 4], [1, 1, 3]]> : tensor<2x3xi64>})
    -> (tensor<2x3x1xf32> {test.value = dense<[[[2.775253901245242], [3.842772126760342], [2.055400805681903]], [[2.5100658380505125], [0.18459476787377402], [1.6984476475666515]]]> : tensor<2x3x1xf32>},
        tensor<2x3xf32> {test.value = dense<[[9.938769506226212, 10.526360633801708, 9.714504028409515], [9.112829190252564, 13.54797383936887, 9.617238237833257]]> : tensor<2x3xf32>},
        tensor<f32> {test.value = dense<62.45767543589212> : tensor<f32>}) {
  %rows = nn.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %p = nn.dot %rows, %w {transpose_b} : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x5xf32>
  %bias = nn.broadcast %b dims = [1] : tensor<5xf32> -> tensor<6x5xf32>
  %z = nn.add %p, %bias : tensor<6x5xf32>
  %logits = nn.reshape %z : tensor<6x5xf32> -> tensor<2x3x5xf32>
  %l = nn.log_softmax %logits dim = 2 : tensor<2x3x5xf32>
  %n = nn.neg %l : tensor<2x3x5xf32>
  %all = nn.reduce_sum %n dims = [0, 1, 2] : tensor<2x3x5xf32> -> tensor<f32>
  %s = nn.reduce_sum %n dims = [2] : tensor<2x3x5xf32> -> tensor<2x3xf32>
  %c = nn.reshape %y : tensor<2x3xi64> -> tensor<2x3x1xi64>
  %picked = nn.gather_elements %n[%c] axis = 2 : (tensor<2x3x5xf32>, tensor<2x3x1xi64>) -> tensor<2x3x1xf32>
  return %picked, %s, %all : tensor<2x3x1xf32>, tensor<2x3xf32>, tensor<f32>
}

// A cross-entropy and the logarithms beside it, classes in the second dimension, some labels ignored; sums of the logits
// themselves, too.
// CHECK-LABEL: @beside
// CHECK-NOT: nn.log_softmax
// CHECK: nn.linear_cross_entropy %{{.*}}, %arg1 labels %{{.*}} class_last ignore_index = -100
// CHECK: nn.reduce_sum %arg1 dims = [1]
// CHECK-NOT: {{6x5|2x3x5|2x5x3}}
// CHECK: return
func.func @beside(%x: tensor<2x3x4xf32> {test.value = dense<[[[-0.0, 0.25, -0.75, 0.0], [0.75, -0.25, 1.5, -1.5], [0.5, 0.5, 0.75, -0.0]], [[-0.25, 0.5, -0.0, -1.75], [0.5, 0.25, 0.25, 1.25], [0.25, 0.0, 0.75, -0.0]]]> : tensor<2x3x4xf32>},
    %w: tensor<4x5xf32> {test.value = dense<[[0.25, 0.25, -0.5, -0.0, 1.5], [0.5, -1.5, 1.75, -0.5, 0.5], [0.5, -0.0, -0.75, -0.25, 0.75], [-0.25, -0.5, 0.0, 0.25, 0.5]]> : tensor<4x5xf32>},
    %y: tensor<2x3xi64> {test.value = dense<[[2, -100, 4], [1, 1, 3]]> : tensor<2x3xi64>})
    -> (tensor<2x3xf32> {test.value = dense<[[0.7740222363989386, 0.0, 0.6494092952019632], [1.8126401786392663, 3.074494649527576, 2.0591136840250424]]> : tensor<2x3xf32>},
        tensor<2x3xf32> {test.value = dense<[[-8.870111181994693, -10.954892217292013, -9.747046476009816], [-9.375700893196331, -9.99747324763788, -8.795568420125212]]> : tensor<2x3xf32>},
        tensor<2x3xf32> {test.value = dense<[[0.0, 1.3125, 1.3125], [0.0, 1.0, 0.5625]]> : tensor<2x3xf32>}) {
  %rows = nn.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %p = nn.dot %rows, %w : (tensor<6x4xf32>, tensor<4x5xf32>) -> tensor<6x5xf32>
  %logits = nn.reshape %p : tensor<6x5xf32> -> tensor<2x3x5xf32>
  %t = nn.transpose %logits [0, 2, 1] : tensor<2x3x5xf32> -> tensor<2x5x3xf32>
  %loss, %lse = nn.softmax_cross_entropy %t, %y ignore_index = -100 : (tensor<2x5x3xf32>, tensor<2x3xi64>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %l = nn.log_softmax %t dim = 1 : tensor<2x5x3xf32>
  %s = nn.reduce_sum %l dims = [1] : tensor<2x5x3xf32> -> tensor<2x3xf32>
  %r = nn.reduce_sum %t dims = [1] : tensor<2x5x3xf32> -> tensor<2x3xf32>
  return %loss, %s, %r : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// The head's own logarithms may be read.
// CHECK-LABEL: @own_logarithms
// CHECK: %[[LOSS:.*]], %[[LSE:.*]] = nn.linear_cross_entropy
// CHECK: nn.mul %[[LSE]], %[[LSE]]
func.func @own_logarithms(%x: tensor<6x4xf32> {test.value = dense<[[-0.0, 0.25, -0.75, 0.0], [0.75, -0.25, 1.5, -1.5], [0.5, 0.5, 0.75, -0.0], [-0.25, 0.5, -0.0, -1.75], [0.5, 0.25, 0.25, 1.25], [0.25, 0.0, 0.75, -0.0]]> : tensor<6x4xf32>},
    %w: tensor<4x5xf32> {test.value = dense<[[0.25, 0.25, -0.5, -0.0, 1.5], [0.5, -1.5, 1.75, -0.5, 0.5], [0.5, -0.0, -0.75, -0.25, 0.75], [-0.25, -0.5, 0.0, 0.25, 0.5]]> : tensor<4x5xf32>},
    %y: tensor<6xi64> {test.value = dense<[2, -100, 4, 1, 1, 3]> : tensor<6xi64>})
    -> (tensor<6xf32> {test.value = dense<[0.7740222363989386, 0.0, 0.6494092952019632, 1.8126401786392663, 3.074494649527576, 2.0591136840250424]> : tensor<6xf32>},
        tensor<6xf32> {test.value = dense<[3.147154895237892, 6.019556472515066, 4.892542730200845, 3.5161506895472994, 4.837776713300432, 3.502937782229791]> : tensor<6xf32>}) {
  %p = nn.dot %x, %w : (tensor<6x4xf32>, tensor<4x5xf32>) -> tensor<6x5xf32>
  %loss, %lse = nn.softmax_cross_entropy %p, %y ignore_index = -100 : (tensor<6x5xf32>, tensor<6xi64>) -> (tensor<6xf32>, tensor<6xf32>)
  %s = nn.mul %lse, %lse : tensor<6xf32>
  return %loss, %s : tensor<6xf32>, tensor<6xf32>
}

// A log-sum-exp in front of the loss, of which a penalty is made.
// CHECK-LABEL: @penalty
// CHECK: %[[LOSS:.*]], %[[LSE:.*]] = nn.linear_cross_entropy
// CHECK: nn.mul %[[LSE]], %[[LSE]]
// CHECK-NOT: 6x5
// CHECK: return
func.func @penalty(%x: tensor<6x4xf32> {test.value = dense<[[-0.0, 0.25, -0.75, 0.0], [0.75, -0.25, 1.5, -1.5], [0.5, 0.5, 0.75, -0.0], [-0.25, 0.5, -0.0, -1.75], [0.5, 0.25, 0.25, 1.25], [0.25, 0.0, 0.75, -0.0]]> : tensor<6x4xf32>},
    %w: tensor<4x5xf32> {test.value = dense<[[0.25, 0.25, -0.5, -0.0, 1.5], [0.5, -1.5, 1.75, -0.5, 0.5], [0.5, -0.0, -0.75, -0.25, 0.75], [-0.25, -0.5, 0.0, 0.25, 0.5]]> : tensor<4x5xf32>},
    %y: tensor<6xi64> {test.value = dense<[2, 0, 4, 1, 1, 3]> : tensor<6xi64>})
    -> (tensor<6xf32> {test.value = dense<[0.7740222363989386, 1.2659784434584025, 0.6494092952019632, 1.8126401786392663, 3.074494649527576, 2.0591136840250424]> : tensor<6xf32>},
        tensor<6xf32> {test.value = dense<[3.147154895237892, 6.019556472515066, 4.892542730200845, 3.5161506895472994, 4.837776713300432, 3.502937782229791]> : tensor<6xf32>}) {
  %p = nn.dot %x, %w : (tensor<6x4xf32>, tensor<4x5xf32>) -> tensor<6x5xf32>
  %m = nn.reduce_max %p dims = [1] : tensor<6x5xf32> -> tensor<6xf32>
  %inf = nn.constant dense<0x7F800000> : tensor<6xf32>
  %zero = nn.constant dense<0.0> : tensor<6xf32>
  %am = nn.abs %m : tensor<6xf32>
  %isinf = nn.compare eq %am, %inf : tensor<6xf32> -> tensor<6xi1>
  %top = nn.select %isinf, %zero, %m : tensor<6xi1>, tensor<6xf32>
  %mc = nn.reshape %top : tensor<6xf32> -> tensor<6x1xf32>
  %ms = nn.reshape %mc : tensor<6x1xf32> -> tensor<6xf32>
  %mb = nn.broadcast %ms dims = [0] : tensor<6xf32> -> tensor<6x5xf32>
  %d = nn.sub %p, %mb : tensor<6x5xf32>
  %e = nn.exp %d : tensor<6x5xf32>
  %t = nn.reduce_sum %e dims = [1] : tensor<6x5xf32> -> tensor<6xf32>
  %g = nn.log %t : tensor<6xf32>
  %l = nn.add %g, %top : tensor<6xf32>
  %c:2 = nn.softmax_cross_entropy %p, %y : (tensor<6x5xf32>, tensor<6xi64>) -> (tensor<6xf32>, tensor<6xf32>)
  %s = nn.mul %l, %l : tensor<6xf32>
  return %c#0, %s : tensor<6xf32>, tensor<6xf32>
}

// A cross-entropy that is written as log-sum-exp less the label's logit.
// CHECK-LABEL: @subtracted
// CHECK: %[[LOSS:.*]], %[[LSE:.*]] = nn.linear_cross_entropy
// CHECK: nn.mul %[[LSE]], %[[LSE]]
// CHECK-NOT: 6x5
// CHECK: return
func.func @subtracted(%x: tensor<6x4xf32> {test.value = dense<[[-0.0, 0.25, -0.75, 0.0], [0.75, -0.25, 1.5, -1.5], [0.5, 0.5, 0.75, -0.0], [-0.25, 0.5, -0.0, -1.75], [0.5, 0.25, 0.25, 1.25], [0.25, 0.0, 0.75, -0.0]]> : tensor<6x4xf32>},
    %w: tensor<4x5xf32> {test.value = dense<[[0.25, 0.25, -0.5, -0.0, 1.5], [0.5, -1.5, 1.75, -0.5, 0.5], [0.5, -0.0, -0.75, -0.25, 0.75], [-0.25, -0.5, 0.0, 0.25, 0.5]]> : tensor<4x5xf32>},
    %y: tensor<6xi64> {test.value = dense<[2, 0, 4, 1, 1, 3]> : tensor<6xi64>})
    -> (tensor<6xf32> {test.value = dense<[0.7740222363989386, 1.2659784434584025, 0.6494092952019632, 1.8126401786392663, 3.074494649527576, 2.0591136840250424]> : tensor<6xf32>},
        tensor<6xf32> {test.value = dense<[3.147154895237892, 6.019556472515066, 4.892542730200845, 3.5161506895472994, 4.837776713300432, 3.502937782229791]> : tensor<6xf32>}) {
  %p = nn.dot %x, %w : (tensor<6x4xf32>, tensor<4x5xf32>) -> tensor<6x5xf32>
  %m = nn.reduce_max %p dims = [1] : tensor<6x5xf32> -> tensor<6xf32>
  %inf = nn.constant dense<0x7F800000> : tensor<6xf32>
  %zero = nn.constant dense<0.0> : tensor<6xf32>
  %am = nn.abs %m : tensor<6xf32>
  %isinf = nn.compare eq %am, %inf : tensor<6xf32> -> tensor<6xi1>
  %top = nn.select %isinf, %zero, %m : tensor<6xi1>, tensor<6xf32>
  %mc = nn.reshape %top : tensor<6xf32> -> tensor<6x1xf32>
  %ms = nn.reshape %mc : tensor<6x1xf32> -> tensor<6xf32>
  %mb = nn.broadcast %ms dims = [0] : tensor<6xf32> -> tensor<6x5xf32>
  %d = nn.sub %p, %mb : tensor<6x5xf32>
  %e = nn.exp %d : tensor<6x5xf32>
  %t = nn.reduce_sum %e dims = [1] : tensor<6x5xf32> -> tensor<6xf32>
  %g = nn.log %t : tensor<6xf32>
  %l = nn.add %g, %top : tensor<6xf32>
  %q = nn.mul %l, %l : tensor<6xf32>
  %i = nn.reshape %y : tensor<6xi64> -> tensor<6x1xi64>
  %k = nn.gather_elements %p[%i] axis = 1 : (tensor<6x5xf32>, tensor<6x1xi64>) -> tensor<6x1xf32>
  %f = nn.reshape %k : tensor<6x1xf32> -> tensor<6xf32>
  %c = nn.sub %l, %f : tensor<6xf32>
  return %c, %q : tensor<6xf32>, tensor<6xf32>
}

// The other way round, the logarithm of a probability, with the labels picked under another shape.
// CHECK-LABEL: @probability
// CHECK: %[[LOSS:.*]], %[[LSE:.*]] = nn.linear_cross_entropy
// CHECK: nn.neg %[[LOSS]]
// CHECK-NOT: 6x5
// CHECK: return
func.func @probability(%x: tensor<6x4xf32> {test.value = dense<[[-0.0, 0.25, -0.75, 0.0], [0.75, -0.25, 1.5, -1.5], [0.5, 0.5, 0.75, -0.0], [-0.25, 0.5, -0.0, -1.75], [0.5, 0.25, 0.25, 1.25], [0.25, 0.0, 0.75, -0.0]]> : tensor<6x4xf32>},
    %w: tensor<4x5xf32> {test.value = dense<[[0.25, 0.25, -0.5, -0.0, 1.5], [0.5, -1.5, 1.75, -0.5, 0.5], [0.5, -0.0, -0.75, -0.25, 0.75], [-0.25, -0.5, 0.0, 0.25, 0.5]]> : tensor<4x5xf32>},
    %y: tensor<6xi64> {test.value = dense<[2, 0, 4, 1, 1, 3]> : tensor<6xi64>})
    -> (tensor<6xf32> {test.value = dense<[0.461154460680087, 0.2819632760045794, 0.5223542428033597, 0.16322263052397265, 0.04621297623113041, 0.12756698446031942]> : tensor<6xf32>}) {
  %p = nn.dot %x, %w : (tensor<6x4xf32>, tensor<4x5xf32>) -> tensor<6x5xf32>
  %m = nn.reduce_max %p dims = [1] : tensor<6x5xf32> -> tensor<6xf32>
  %inf = nn.constant dense<0x7F800000> : tensor<6xf32>
  %zero = nn.constant dense<0.0> : tensor<6xf32>
  %am = nn.abs %m : tensor<6xf32>
  %isinf = nn.compare eq %am, %inf : tensor<6xf32> -> tensor<6xi1>
  %top = nn.select %isinf, %zero, %m : tensor<6xi1>, tensor<6xf32>
  %mc = nn.reshape %top : tensor<6xf32> -> tensor<6x1xf32>
  %ms = nn.reshape %mc : tensor<6x1xf32> -> tensor<6xf32>
  %mb = nn.broadcast %ms dims = [0] : tensor<6xf32> -> tensor<6x5xf32>
  %d = nn.sub %p, %mb : tensor<6x5xf32>
  %e = nn.exp %d : tensor<6x5xf32>
  %t = nn.reduce_sum %e dims = [1] : tensor<6x5xf32> -> tensor<6xf32>
  %g = nn.log %t : tensor<6xf32>
  %l = nn.add %g, %top : tensor<6xf32>
  %i = nn.reshape %y : tensor<6xi64> -> tensor<2x3x1xi64>
  %p3 = nn.reshape %p : tensor<6x5xf32> -> tensor<2x3x5xf32>
  %k = nn.gather_elements %p3[%i] axis = 2 : (tensor<2x3x5xf32>, tensor<2x3x1xi64>) -> tensor<2x3x1xf32>
  %f = nn.reshape %k : tensor<2x3x1xf32> -> tensor<6xf32>
  %c = nn.sub %f, %l : tensor<6xf32>
  %s = nn.exp %c : tensor<6xf32>
  return %s : tensor<6xf32>
}
