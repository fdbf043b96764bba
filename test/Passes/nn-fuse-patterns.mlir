// RUN: lowtide-opt %s --canonicalize --nn-fuse-patterns | FileCheck %s
// What only looks like a pattern stays as it is; what is one is in test/Execute/nn-fuse-patterns.mlir.

// Another constant than a GELU's.
// CHECK-LABEL: @no_gelu
// CHECK-NOT: nn.gelu
// CHECK: return
func.func @no_gelu(%x: tensor<5xf32>) -> tensor<5xf32> {
  %half = nn.constant dense<0.5> : tensor<5xf32>
  %one = nn.constant dense<1.0> : tensor<5xf32>
  %root = nn.constant dense<1.5> : tensor<5xf32>
  %a = nn.div %x, %root : tensor<5xf32>
  %b = nn.erf %a : tensor<5xf32>
  %c = nn.add %b, %one : tensor<5xf32>
  %d = nn.mul %x, %c : tensor<5xf32>
  %y = nn.mul %d, %half : tensor<5xf32>
  return %y : tensor<5xf32>
}

// The gate of another value.
// CHECK-LABEL: @no_silu
// CHECK-NOT: nn.silu
// CHECK: return
func.func @no_silu(%x: tensor<5xf32>, %z: tensor<5xf32>) -> tensor<5xf32> {
  %s = nn.sigmoid %z : tensor<5xf32>
  %y = nn.mul %x, %s : tensor<5xf32>
  return %y : tensor<5xf32>
}

// The root of the sum instead of the mean.
// CHECK-LABEL: @no_rms_norm
// CHECK-NOT: nn.rms_norm
// CHECK: return
func.func @no_rms_norm(%x: tensor<3x4xf32>, %w: tensor<4xf32>) -> tensor<3x4xf32> {
  %eps = nn.constant dense<0.01> : tensor<3xf32>
  %sq = nn.mul %x, %x : tensor<3x4xf32>
  %sum = nn.reduce_sum %sq dims = [1] : tensor<3x4xf32> -> tensor<3xf32>
  %me = nn.add %sum, %eps : tensor<3xf32>
  %r = nn.rsqrt %me : tensor<3xf32>
  %rs = nn.broadcast %r dims = [0] : tensor<3xf32> -> tensor<3x4xf32>
  %n = nn.mul %x, %rs : tensor<3x4xf32>
  %ws = nn.broadcast %w dims = [1] : tensor<4xf32> -> tensor<3x4xf32>
  %y = nn.mul %n, %ws : tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// Somebody else reads the probabilities: they would be computed twice.
// CHECK-LABEL: @probabilities_are_read
// CHECK-NOT: nn.attention
// CHECK: return
func.func @probabilities_are_read(%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>)
    -> (tensor<2x3x4xf32>, tensor<2x3x3xf32>) {
  %s = nn.dot %q, %k {transpose_b} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %p = nn.softmax %s dim = 2 : tensor<2x3x3xf32>
  %y = nn.dot %p, %v : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %y, %p : tensor<2x3x4xf32>, tensor<2x3x3xf32>
}

// A row that sees nothing would be alike in the columns of the greater number, here in some of them.
// CHECK-LABEL: @two_numbers
// CHECK-NOT: nn.attention
// CHECK: return
func.func @two_numbers(%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>, %m: tensor<2x3x3xi1>, %n: tensor<2x3x3xi1>)
    -> tensor<2x3x4xf32> {
  %low = nn.constant dense<-1.0e10> : tensor<2x3x3xf32>
  %lower = nn.constant dense<-1.0e11> : tensor<2x3x3xf32>
  %s = nn.dot %q, %k {transpose_b} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %some = nn.select %n, %s, %lower : tensor<2x3x3xi1>, tensor<2x3x3xf32>
  %seen = nn.select %m, %some, %low : tensor<2x3x3xi1>, tensor<2x3x3xf32>
  %p = nn.softmax %seen dim = 2 : tensor<2x3x3xf32>
  %y = nn.dot %p, %v : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// What is added may be -inf in all columns that the other mask leaves: then those that it hides decide.
// CHECK-LABEL: @finite_after_added
// CHECK-NOT: nn.attention
// CHECK: return
func.func @finite_after_added(%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>, %m: tensor<2x3x3xi1>, %a: tensor<2x3x3xf32>)
    -> tensor<2x3x4xf32> {
  %low = nn.constant dense<-1.0e10> : tensor<2x3x3xf32>
  %s = nn.dot %q, %k {transpose_b} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %some = nn.add %s, %a : tensor<2x3x3xf32>
  %seen = nn.select %m, %some, %low : tensor<2x3x3xi1>, tensor<2x3x3xf32>
  %p = nn.softmax %seen dim = 2 : tensor<2x3x3xf32>
  %y = nn.dot %p, %v : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// Nor does a number hide that scores may reach.
// CHECK-LABEL: @number_of_a_score
// CHECK-NOT: nn.attention
// CHECK: return
func.func @number_of_a_score(%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>, %m: tensor<2x3x3xi1>)
    -> tensor<2x3x4xf32> {
  %low = nn.constant dense<-100.0> : tensor<2x3x3xf32>
  %s = nn.dot %q, %k {transpose_b} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %seen = nn.select %m, %s, %low : tensor<2x3x3xi1>, tensor<2x3x3xf32>
  %p = nn.softmax %seen dim = 2 : tensor<2x3x3xf32>
  %y = nn.dot %p, %v : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// Padding of each sample or the future: each condition of its own dimensions in the mask, and the lowest number of f16 hides.
// CHECK-LABEL: @either_of_two
// CHECK: nn.attention %{{.*}} mask %{{.*}} scale = 1.000000e+00 : {{.*}}tensor<2x1x3x3xf16>
func.func @either_of_two(%q: tensor<2x2x3x4xf16>, %k: tensor<2x2x3x4xf16>, %v: tensor<2x2x3x4xf16>, %pad: tensor<2x3xi1>)
    -> tensor<2x2x3x4xf16> {
  %row = nn.iota dim = 0 : tensor<3x3xi64>
  %column = nn.iota dim = 1 : tensor<3x3xi64>
  %future = nn.compare gt %column, %row : tensor<3x3xi64> -> tensor<3x3xi1>
  %low = nn.constant dense<-65504.0> : tensor<2x2x3x3xf16>
  %a = nn.broadcast %pad dims = [0, 2] : tensor<2x3xi1> -> tensor<2x3x3xi1>
  %b = nn.broadcast %future dims = [1, 2] : tensor<3x3xi1> -> tensor<2x3x3xi1>
  %either = nn.or %a, %b : tensor<2x3x3xi1>
  %hidden = nn.broadcast %either dims = [0, 2, 3] : tensor<2x3x3xi1> -> tensor<2x2x3x3xi1>
  %s = nn.dot %q, %k {transpose_b} : (tensor<2x2x3x4xf16>, tensor<2x2x3x4xf16>) -> tensor<2x2x3x3xf16>
  %seen = nn.select %hidden, %low, %s : tensor<2x2x3x3xi1>, tensor<2x2x3x3xf16>
  %p = nn.softmax %seen dim = 3 : tensor<2x2x3x3xf16>
  %y = nn.dot %p, %v : (tensor<2x2x3x3xf16>, tensor<2x2x3x4xf16>) -> tensor<2x2x3x4xf16>
  return %y : tensor<2x2x3x4xf16>
}

// Both factors of the scores in one scale, as f32 has it: their product is 0.353553368.
// CHECK-LABEL: @scales_of_both
// CHECK: nn.attention %{{.*}} scale = 0.353553354740142
func.func @scales_of_both(%q: tensor<2x1x3x4xf32>, %k: tensor<2x1x3x4xf32>, %v: tensor<2x1x3x4xf32>)
    -> tensor<2x1x3x4xf32> {
  %c = nn.constant dense<0.594603539> : tensor<2x1x3x4xf32>
  %a = nn.mul %q, %c : tensor<2x1x3x4xf32>
  %b = nn.mul %k, %c : tensor<2x1x3x4xf32>
  %s = nn.dot %a, %b {transpose_b} : (tensor<2x1x3x4xf32>, tensor<2x1x3x4xf32>) -> tensor<2x1x3x3xf32>
  %p = nn.softmax %s dim = 3 : tensor<2x1x3x3xf32>
  %y = nn.dot %p, %v : (tensor<2x1x3x3xf32>, tensor<2x1x3x4xf32>) -> tensor<2x1x3x4xf32>
  return %y : tensor<2x1x3x4xf32>
}

// A triangle of ones, compared with zero, as a mask that is added: attention that is causal, without a mask.
// CHECK-LABEL: @triangle_of_ones
// CHECK: nn.attention %{{.*}} scale = 1.000000e+00 causal
// CHECK-NOT: nn.softmax
func.func @triangle_of_ones(%q: tensor<2x1x3x4xf32>, %k: tensor<2x1x3x4xf32>, %v: tensor<2x1x3x4xf32>)
    -> tensor<2x1x3x4xf32> {
  %row = nn.iota dim = 0 : tensor<3x3xi64>
  %column = nn.iota dim = 1 : tensor<3x3xi64>
  %seen = nn.compare le %column, %row : tensor<3x3xi64> -> tensor<3x3xi1>
  %one = nn.constant dense<1.0> : tensor<3x3xf32>
  %zero = nn.constant dense<0.0> : tensor<3x3xf32>
  %low = nn.constant dense<-3.0e38> : tensor<3x3xf32>
  %t = nn.select %seen, %one, %zero : tensor<3x3xi1>, tensor<3x3xf32>
  %h = nn.compare eq %t, %zero : tensor<3x3xf32> -> tensor<3x3xi1>
  %m = nn.select %h, %low, %zero : tensor<3x3xi1>, tensor<3x3xf32>
  %mask = nn.broadcast %m dims = [2, 3] : tensor<3x3xf32> -> tensor<2x1x3x3xf32>
  %s = nn.dot %q, %k {transpose_b} : (tensor<2x1x3x4xf32>, tensor<2x1x3x4xf32>) -> tensor<2x1x3x3xf32>
  %a = nn.add %s, %mask : tensor<2x1x3x3xf32>
  %p = nn.softmax %a dim = 3 : tensor<2x1x3x3xf32>
  %y = nn.dot %p, %v : (tensor<2x1x3x3xf32>, tensor<2x1x3x4xf32>) -> tensor<2x1x3x4xf32>
  return %y : tensor<2x1x3x4xf32>
}

// Somebody else reads the logarithms: they are computed anyway.
// CHECK-LABEL: @logarithms_are_read
// CHECK-NOT: nn.softmax_cross_entropy
// CHECK: return
func.func @logarithms_are_read(%x: tensor<3x4xf32>, %y: tensor<3x1xi64>) -> (tensor<3x1xf32>, tensor<3x4xf32>) {
  %l = nn.log_softmax %x dim = 1 : tensor<3x4xf32>
  %p = nn.gather_elements %l[%y] axis = 1 : (tensor<3x4xf32>, tensor<3x1xi64>) -> tensor<3x1xf32>
  return %p, %l : tensor<3x1xf32>, tensor<3x4xf32>
}

// Sums over the samples are no sums over the classes.
// CHECK-LABEL: @sums_of_samples
// CHECK-NOT: nn.softmax_cross_entropy
// CHECK: return
func.func @sums_of_samples(%x: tensor<3x4xf32>, %y: tensor<3x1xi64>) -> (tensor<3x1xf32>, tensor<4xf32>) {
  %l = nn.log_softmax %x dim = 1 : tensor<3x4xf32>
  %p = nn.gather_elements %l[%y] axis = 1 : (tensor<3x4xf32>, tensor<3x1xi64>) -> tensor<3x1xf32>
  %s = nn.reduce_sum %l dims = [0] : tensor<3x4xf32> -> tensor<4xf32>
  return %p, %s : tensor<3x1xf32>, tensor<4xf32>
}

// No cross-entropy of the same logits has the logarithm of their sum.
// CHECK-LABEL: @sums_without_labels
// CHECK: nn.log_softmax
func.func @sums_without_labels(%x: tensor<3x4xf32>) -> tensor<3xf32> {
  %l = nn.log_softmax %x dim = 1 : tensor<3x4xf32>
  %s = nn.reduce_sum %l dims = [1] : tensor<3x4xf32> -> tensor<3xf32>
  return %s : tensor<3xf32>
}

// The entries are picked along another dimension than that of the classes.
// CHECK-LABEL: @no_label
// CHECK-NOT: nn.softmax_cross_entropy
// CHECK: return
func.func @no_label(%x: tensor<4x4xf32>, %y: tensor<1x4xi64>) -> tensor<1x4xf32> {
  %l = nn.log_softmax %x dim = 1 : tensor<4x4xf32>
  %p = nn.gather_elements %l[%y] axis = 0 : (tensor<4x4xf32>, tensor<1x4xi64>) -> tensor<1x4xf32>
  return %p : tensor<1x4xf32>
}

// Two labels for each sample.
// CHECK-LABEL: @two_labels
// CHECK-NOT: nn.softmax_cross_entropy
// CHECK: return
func.func @two_labels(%x: tensor<3x4xf32>, %y: tensor<3x2xi64>) -> tensor<3x2xf32> {
  %l = nn.log_softmax %x dim = 1 : tensor<3x4xf32>
  %p = nn.gather_elements %l[%y] axis = 1 : (tensor<3x4xf32>, tensor<3x2xi64>) -> tensor<3x2xf32>
  return %p : tensor<3x2xf32>
}

// The slices overlap.
// CHECK-LABEL: @overlapping_pieces
// CHECK: nn.concat
func.func @overlapping_pieces(%x: tensor<6x2xf32>) -> tensor<6x2xf32> {
  %a = nn.slice %x starts = [0, 0] strides = [1, 1] : tensor<6x2xf32> -> tensor<3x2xf32>
  %b = nn.slice %x starts = [2, 0] strides = [1, 1] : tensor<6x2xf32> -> tensor<3x2xf32>
  %c = nn.tanh %a : tensor<3x2xf32>
  %d = nn.tanh %b : tensor<3x2xf32>
  %y = nn.concat %c, %d dim = 0 : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<6x2xf32>
  return %y : tensor<6x2xf32>
}

// The slices stand in another order.
// CHECK-LABEL: @turned_pieces
// CHECK: nn.concat
func.func @turned_pieces(%x: tensor<6x2xf32>) -> tensor<6x2xf32> {
  %a = nn.slice %x starts = [3, 0] strides = [1, 1] : tensor<6x2xf32> -> tensor<3x2xf32>
  %b = nn.slice %x starts = [0, 0] strides = [1, 1] : tensor<6x2xf32> -> tensor<3x2xf32>
  %c = nn.tanh %a : tensor<3x2xf32>
  %d = nn.tanh %b : tensor<3x2xf32>
  %y = nn.concat %c, %d dim = 0 : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<6x2xf32>
  return %y : tensor<6x2xf32>
}

// Each piece with a matrix of its own, which nothing has as one tensor.
// CHECK-LABEL: @own_matrices
// CHECK: nn.concat
func.func @own_matrices(%x: tensor<2x3xf32>, %u: tensor<3x3xf32>, %v: tensor<3x3xf32>) -> tensor<2x6xf32> {
  %a = nn.dot %x, %u : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
  %b = nn.dot %x, %v : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
  %y = nn.concat %a, %b dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  return %y : tensor<2x6xf32>
}

// One piece is computed otherwise.
// CHECK-LABEL: @rotated_halves
// CHECK: nn.concat
func.func @rotated_halves(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  %a = nn.slice %x starts = [0, 0] strides = [1, 1] : tensor<2x6xf32> -> tensor<2x3xf32>
  %b = nn.slice %x starts = [0, 3] strides = [1, 1] : tensor<2x6xf32> -> tensor<2x3xf32>
  %n = nn.neg %b : tensor<2x3xf32>
  %y = nn.concat %n, %a dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  return %y : tensor<2x6xf32>
}

// Somebody else reads a piece.
// CHECK-LABEL: @piece_is_read
// CHECK: nn.concat
func.func @piece_is_read(%x: tensor<2x6xf32>) -> (tensor<2x6xf32>, tensor<2x3xf32>) {
  %a = nn.slice %x starts = [0, 0] strides = [1, 1] : tensor<2x6xf32> -> tensor<2x3xf32>
  %b = nn.slice %x starts = [0, 3] strides = [1, 1] : tensor<2x6xf32> -> tensor<2x3xf32>
  %c = nn.exp %a : tensor<2x3xf32>
  %d = nn.exp %b : tensor<2x3xf32>
  %y = nn.concat %c, %d dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  return %y, %c : tensor<2x6xf32>, tensor<2x3xf32>
}

// A product that is wider than its operands stays as wide.
// CHECK-LABEL: @rounds_widened
// CHECK: nn.dot %{{.*}}, %{{.*}} : (tensor<6x4xf16>, tensor<4x5xf16>) -> tensor<6x5xf32>
// CHECK-NOT: nn.concat
// CHECK: return
func.func @rounds_widened(%x: tensor<2x3x4xf16>, %w: tensor<4x5xf16>) -> tensor<2x3x5xf32> {
  %a0 = nn.slice %x starts = [0, 0, 0] strides = [1, 1, 1] : tensor<2x3x4xf16> -> tensor<1x3x4xf16>
  %b0 = nn.reshape %a0 : tensor<1x3x4xf16> -> tensor<3x4xf16>
  %c0 = nn.dot %b0, %w : (tensor<3x4xf16>, tensor<4x5xf16>) -> tensor<3x5xf32>
  %d0 = nn.reshape %c0 : tensor<3x5xf32> -> tensor<1x3x5xf32>
  %a1 = nn.slice %x starts = [1, 0, 0] strides = [1, 1, 1] : tensor<2x3x4xf16> -> tensor<1x3x4xf16>
  %b1 = nn.reshape %a1 : tensor<1x3x4xf16> -> tensor<3x4xf16>
  %c1 = nn.dot %b1, %w : (tensor<3x4xf16>, tensor<4x5xf16>) -> tensor<3x5xf32>
  %d1 = nn.reshape %c1 : tensor<3x5xf32> -> tensor<1x3x5xf32>
  %y = nn.concat %d0, %d1 dim = 0 : (tensor<1x3x5xf32>, tensor<1x3x5xf32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}
