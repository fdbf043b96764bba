// RUN: lowtide-opt %s --canonicalize --cse | FileCheck %s

// --- arithmetic ---

// CHECK-LABEL: @neutral
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
// CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]], %[[X]]
func.func @neutral(%x: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %one = nn.constant dense<1.0> : tensor<4xf32>
  %zero = nn.constant dense<0.0> : tensor<4xf32>
  %a = nn.mul %one, %x : tensor<4xf32>
  %b = nn.div %x, %one : tensor<4xf32>
  %c = nn.add %zero, %x : tensor<4xf32>
  %d = nn.sub %x, %zero : tensor<4xf32>
  %e0 = nn.neg %x : tensor<4xf32>
  %e = nn.neg %e0 : tensor<4xf32>
  return %a, %b, %c, %d, %e : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: @negations
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>
// CHECK-DAG: %[[A:.*]] = nn.sub %[[X]], %[[Y]]
// CHECK-DAG: %[[B:.*]] = nn.add %[[X]], %[[Y]]
// CHECK-DAG: %[[C:.*]] = nn.neg %[[X]]
// CHECK-DAG: %[[D:.*]] = nn.sub %[[Y]], %[[X]]
// CHECK: return %[[A]], %[[B]], %[[C]], %[[C]], %[[D]]
func.func @negations(%x: tensor<4xf32>, %y: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %minus = nn.constant dense<-1.0> : tensor<4xf32>
  %zero = nn.constant dense<0.0> : tensor<4xf32>
  %n = nn.neg %y : tensor<4xf32>
  %a = nn.add %x, %n : tensor<4xf32>
  %b = nn.sub %x, %n : tensor<4xf32>
  %c = nn.mul %x, %minus : tensor<4xf32>
  %d = nn.sub %zero, %x : tensor<4xf32>
  %e0 = nn.sub %x, %y : tensor<4xf32>
  %e = nn.neg %e0 : tensor<4xf32>
  return %a, %b, %c, %d, %e : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// x · 0 stays: it is NaN where x is not finite.
// CHECK-LABEL: @times_zero
// CHECK: nn.mul
func.func @times_zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = nn.constant dense<0.0> : tensor<4xf32>
  %y = nn.mul %x, %zero : tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: @casts
// CHECK-SAME: %[[X:.*]]: tensor<4xf16>, %[[Y:.*]]: tensor<4xf32>
// CHECK-NEXT: %[[H:.*]] = nn.cast %[[Y]]
// CHECK-NEXT: %[[R:.*]] = nn.cast %[[H]]
// CHECK-NEXT: return %[[X]], %[[R]]
func.func @casts(%x: tensor<4xf16>, %y: tensor<4xf32>) -> (tensor<4xf16>, tensor<4xf32>) {
  %w = nn.cast %x : tensor<4xf16> -> tensor<4xf32>
  %n = nn.cast %w : tensor<4xf32> -> tensor<4xf16>
  // The way through f16 rounds.
  %h = nn.cast %y : tensor<4xf32> -> tensor<4xf16>
  %r = nn.cast %h : tensor<4xf16> -> tensor<4xf32>
  return %n, %r : tensor<4xf16>, tensor<4xf32>
}

// CHECK-LABEL: @compute_before_repeating
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>
// CHECK-DAG: %[[C:.*]] = nn.constant dense<2.000000e+00> : tensor<4xf32>
// CHECK: %[[A:.*]] = nn.mul %[[X]], %[[Y]] : tensor<4xf32>
// CHECK: %[[B:.*]] = nn.div %[[A]], %[[C]] : tensor<4xf32>
// CHECK: %[[R:.*]] = nn.broadcast %[[B]] dims = [0] : tensor<4xf32> -> tensor<4x8xf32>
// CHECK: return %[[R]]
func.func @compute_before_repeating(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4x8xf32> {
  %two = nn.constant dense<2.0> : tensor<4x8xf32>
  %a = nn.broadcast %x dims = [0] : tensor<4xf32> -> tensor<4x8xf32>
  %b = nn.broadcast %y dims = [0] : tensor<4xf32> -> tensor<4x8xf32>
  %c = nn.mul %a, %b : tensor<4x8xf32>
  %d = nn.div %c, %two : tensor<4x8xf32>
  return %d : tensor<4x8xf32>
}

// CHECK-LABEL: @repeated_differently
// CHECK: nn.mul %{{.*}}, %{{.*}} : tensor<4x4xf32>
func.func @repeated_differently(%x: tensor<4xf32>) -> tensor<4x4xf32> {
  %a = nn.broadcast %x dims = [0] : tensor<4xf32> -> tensor<4x4xf32>
  %b = nn.broadcast %x dims = [1] : tensor<4xf32> -> tensor<4x4xf32>
  %c = nn.mul %a, %b : tensor<4x4xf32>
  return %c : tensor<4x4xf32>
}

// --- movement ---

// CHECK-LABEL: @broadcasts
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
// CHECK-NEXT: %[[B:.*]] = nn.broadcast %[[X]] dims = [1] : tensor<4xf32> -> tensor<2x4x8xf32>
// CHECK-NEXT: return %[[B]]
func.func @broadcasts(%x: tensor<4xf32>) -> tensor<2x4x8xf32> {
  %a = nn.reshape %x : tensor<4xf32> -> tensor<4x1xf32>
  %b = nn.broadcast %a dims = [0, 1] : tensor<4x1xf32> -> tensor<4x8xf32>
  %c = nn.broadcast %b dims = [1, 2] : tensor<4x8xf32> -> tensor<2x4x8xf32>
  return %c : tensor<2x4x8xf32>
}

// CHECK-LABEL: @broadcast_reshape
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
// CHECK-NEXT: %[[B:.*]] = nn.broadcast %[[X]] dims = [2] : tensor<4xf32> -> tensor<8x1x4xf32>
// CHECK-NEXT: return %[[B]]
func.func @broadcast_reshape(%x: tensor<4xf32>) -> tensor<8x1x4xf32> {
  %a = nn.broadcast %x dims = [1] : tensor<4xf32> -> tensor<8x4x1xf32>
  %b = nn.reshape %a : tensor<8x4x1xf32> -> tensor<8x1x4xf32>
  return %b : tensor<8x1x4xf32>
}

// CHECK-LABEL: @no_repetition
// CHECK: nn.reshape %{{.*}} : tensor<4xf32> -> tensor<1x4xf32>
func.func @no_repetition(%x: tensor<4xf32>) -> tensor<1x4xf32> {
  %a = nn.broadcast %x dims = [1] : tensor<4xf32> -> tensor<1x4xf32>
  return %a : tensor<1x4xf32>
}

// CHECK-LABEL: @transposes
// CHECK-SAME: %[[X:.*]]: tensor<2x3x5xf32>, %[[Y:.*]]: tensor<2x3xf32>
// CHECK-DAG: %[[T:.*]] = nn.transpose %[[X]] [1, 2, 0]
// CHECK-DAG: %[[S:.*]] = nn.transpose %[[Y]] [1, 0]
// CHECK-DAG: %[[B:.*]] = nn.broadcast %[[S]] dims = [1, 2] : tensor<3x2xf32> -> tensor<7x3x2xf32>
// CHECK: return %[[T]], %[[X]], %[[B]]
func.func @transposes(%x: tensor<2x3x5xf32>, %y: tensor<2x3xf32>)
    -> (tensor<3x5x2xf32>, tensor<2x3x5xf32>, tensor<7x3x2xf32>) {
  %a = nn.transpose %x [2, 1, 0] : tensor<2x3x5xf32> -> tensor<5x3x2xf32>
  %b = nn.transpose %a [1, 0, 2] : tensor<5x3x2xf32> -> tensor<3x5x2xf32>
  %c = nn.transpose %a [2, 1, 0] : tensor<5x3x2xf32> -> tensor<2x3x5xf32>
  %d = nn.broadcast %y dims = [0, 2] : tensor<2x3xf32> -> tensor<2x7x3xf32>
  %e = nn.transpose %d [1, 2, 0] : tensor<2x7x3xf32> -> tensor<7x3x2xf32>
  return %b, %c, %e : tensor<3x5x2xf32>, tensor<2x3x5xf32>, tensor<7x3x2xf32>
}

// Classes of labels, one after the other or as channels: nothing is moved, however the elements are repeated.
// CHECK-LABEL: @transpose_repeated
// CHECK-NOT: nn.transpose
// CHECK-DAG: %[[L:.*]] = nn.broadcast %arg0 dims = [0, 2] : tensor<2x4xi64> -> tensor<2x3x4xi64>
// CHECK-DAG: %[[C:.*]] = nn.iota dim = 1 : tensor<2x3x4xi64>
// CHECK: nn.compare eq %[[L]], %[[C]]
// CHECK: nn.cast %{{.*}} : tensor<2x3x4xi1> -> tensor<2x3x4xf32>
// CHECK: return
func.func @transpose_repeated(%labels: tensor<2x4xi64>) -> tensor<2x3x4xf32> {
  %l = nn.broadcast %labels dims = [0, 1] : tensor<2x4xi64> -> tensor<2x4x3xi64>
  %classes = nn.iota dim = 2 : tensor<2x4x3xi64>
  %is = nn.compare eq %l, %classes : tensor<2x4x3xi64> -> tensor<2x4x3xi1>
  %one = nn.cast %is : tensor<2x4x3xi1> -> tensor<2x4x3xf32>
  %y = nn.transpose %one [0, 2, 1] : tensor<2x4x3xf32> -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// What holds elements of its own is transposed after few operations as before, and what others read is not made twice.
// CHECK-LABEL: @transpose_made
// CHECK-COUNT-2: nn.transpose
// CHECK: return
func.func @transpose_made(%x: tensor<2x4xf32>, %l: tensor<2xf32>) -> (tensor<4x2xf32>, tensor<2x4xf32>, tensor<4x2xf32>) {
  %l2 = nn.broadcast %l dims = [0] : tensor<2xf32> -> tensor<2x4xf32>
  %sum = nn.add %x, %l2 : tensor<2x4xf32>
  %a = nn.transpose %sum [1, 0] : tensor<2x4xf32> -> tensor<4x2xf32>
  %columns = nn.iota dim = 1 : tensor<2x4xi64>
  %c = nn.cast %columns : tensor<2x4xi64> -> tensor<2x4xf32>
  %shared = nn.mul %l2, %c : tensor<2x4xf32>
  %b = nn.transpose %shared [1, 0] : tensor<2x4xf32> -> tensor<4x2xf32>
  return %a, %shared, %b : tensor<4x2xf32>, tensor<2x4xf32>, tensor<4x2xf32>
}

// CHECK-LABEL: @transpose_unit
// CHECK: nn.reshape %{{.*}} : tensor<2x1x5xf32> -> tensor<1x2x5xf32>
func.func @transpose_unit(%x: tensor<2x1x5xf32>) -> tensor<1x2x5xf32> {
  %a = nn.transpose %x [1, 0, 2] : tensor<2x1x5xf32> -> tensor<1x2x5xf32>
  return %a : tensor<1x2x5xf32>
}

// --- sums and products ---

// CHECK-LABEL: @sums
// CHECK-SAME: %[[X:.*]]: tensor<2x1x3x5xf32>
// CHECK: %[[R:.*]] = nn.reshape %[[X]] : tensor<2x1x3x5xf32> -> tensor<2x3x5xf32>
// CHECK: %[[S:.*]] = nn.reduce_sum %[[R]] dims = [0, 2] : tensor<2x3x5xf32> -> tensor<3xf32>
// CHECK: return %[[S]]
func.func @sums(%x: tensor<2x1x3x5xf32>) -> tensor<3xf32> {
  %a = nn.reduce_sum %x dims = [1, 3] : tensor<2x1x3x5xf32> -> tensor<2x3xf32>
  %b = nn.reduce_sum %a dims = [0] : tensor<2x3xf32> -> tensor<3xf32>
  return %b : tensor<3xf32>
}

// CHECK-LABEL: @sum_of_repeated
// CHECK-SAME: %[[X:.*]]: tensor<3x5xf32>
// CHECK-DAG: %[[C:.*]] = nn.constant dense<1.400000e+01> : tensor<5xf32>
// CHECK-DAG: %[[S:.*]] = nn.reduce_sum %[[X]] dims = [0] : tensor<3x5xf32> -> tensor<5xf32>
// CHECK: %[[M:.*]] = nn.mul %[[S]], %[[C]]
// CHECK: %[[B:.*]] = nn.broadcast %[[M]] dims = [1] : tensor<5xf32> -> tensor<4x5xf32>
// CHECK: return %[[B]]
func.func @sum_of_repeated(%x: tensor<3x5xf32>) -> tensor<4x5xf32> {
  %a = nn.broadcast %x dims = [2, 4] : tensor<3x5xf32> -> tensor<7x2x3x4x5xf32>
  %b = nn.reduce_sum %a dims = [0, 1, 2] : tensor<7x2x3x4x5xf32> -> tensor<4x5xf32>
  return %b : tensor<4x5xf32>
}

// CHECK-LABEL: @dots
// CHECK-SAME: %[[A:.*]]: tensor<2x3x4xf32>, %[[B:.*]]: tensor<2x5x4xf32>
// CHECK: %[[Y:.*]] = nn.dot %[[A]], %[[B]] {transpose_b} : (tensor<2x3x4xf32>, tensor<2x5x4xf32>) -> tensor<2x3x5xf32>
// CHECK: %[[Z:.*]] = nn.dot %[[B]], %[[A]] {transpose_b} : (tensor<2x5x4xf32>, tensor<2x3x4xf32>) -> tensor<2x5x3xf32>
// CHECK: return %[[Y]], %[[Z]]
func.func @dots(%a: tensor<2x3x4xf32>, %b: tensor<2x5x4xf32>) -> (tensor<2x3x5xf32>, tensor<2x5x3xf32>) {
  %t = nn.transpose %b [0, 2, 1] : tensor<2x5x4xf32> -> tensor<2x4x5xf32>
  %y = nn.dot %a, %t : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  %s = nn.transpose %a [0, 2, 1] : tensor<2x3x4xf32> -> tensor<2x4x3xf32>
  %u = nn.dot %s, %t {transpose_a} : (tensor<2x4x3xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  %z = nn.transpose %u [0, 2, 1] : tensor<2x3x5xf32> -> tensor<2x5x3xf32>
  return %y, %z : tensor<2x3x5xf32>, tensor<2x5x3xf32>
}

// CHECK-LABEL: @shared_weight
// CHECK-SAME: %[[A:.*]]: tensor<2x3x4xf32>, %[[W:.*]]: tensor<4x5xf32>
// CHECK: %[[R:.*]] = nn.reshape %[[A]] : tensor<2x3x4xf32> -> tensor<6x4xf32>
// CHECK: %[[D:.*]] = nn.dot %[[R]], %[[W]] : (tensor<6x4xf32>, tensor<4x5xf32>) -> tensor<6x5xf32>
// CHECK: %[[Y:.*]] = nn.reshape %[[D]] : tensor<6x5xf32> -> tensor<2x3x5xf32>
// CHECK: return %[[Y]]
func.func @shared_weight(%a: tensor<2x3x4xf32>, %w: tensor<4x5xf32>) -> tensor<2x3x5xf32> {
  %b = nn.broadcast %w dims = [1, 2] : tensor<4x5xf32> -> tensor<2x4x5xf32>
  %y = nn.dot %a, %b : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

// A product that is wider than its operands stays as wide.
// CHECK-LABEL: @shared_weight_widened
// CHECK: nn.dot %{{.*}}, %{{.*}} : (tensor<6x4xf16>, tensor<4x5xf16>) -> tensor<6x5xf32>
func.func @shared_weight_widened(%a: tensor<2x3x4xf16>, %w: tensor<4x5xf16>) -> tensor<2x3x5xf32> {
  %b = nn.broadcast %w dims = [1, 2] : tensor<4x5xf16> -> tensor<2x4x5xf16>
  %y = nn.dot %a, %b : (tensor<2x3x4xf16>, tensor<2x4x5xf16>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

// --- reshapes move down ---

// CHECK-LABEL: @reshape_later
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
// CHECK-DAG: %[[C:.*]] = nn.constant dense<2.500000e-01> : tensor<4xf32>
// CHECK: %[[M:.*]] = nn.mul %[[X]], %[[C]] : tensor<4xf32>
// CHECK: %[[R:.*]] = nn.rsqrt %[[M]] : tensor<4xf32>
// CHECK: %[[B:.*]] = nn.broadcast %[[R]] dims = [0] : tensor<4xf32> -> tensor<4x8xf32>
// CHECK: return %[[B]]
func.func @reshape_later(%x: tensor<4xf32>) -> tensor<4x8xf32> {
  %quarter = nn.constant dense<0.25> : tensor<4x1xf32>
  %one = nn.constant dense<1.0> : tensor<4x1xf32>
  %a = nn.reshape %x : tensor<4xf32> -> tensor<4x1xf32>
  %b = nn.mul %a, %quarter : tensor<4x1xf32>
  %c = nn.sqrt %b : tensor<4x1xf32>
  %d = nn.div %one, %c : tensor<4x1xf32>
  %e = nn.broadcast %d dims = [0, 1] : tensor<4x1xf32> -> tensor<4x8xf32>
  return %e : tensor<4x8xf32>
}

// CHECK-LABEL: @powers
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
// CHECK-DAG: %[[S:.*]] = nn.mul %[[X]], %[[X]]
// CHECK-DAG: %[[Q:.*]] = nn.sqrt %[[X]]
// CHECK-DAG: %[[P:.*]] = nn.pow %[[X]]
// CHECK: return %[[S]], %[[Q]], %[[P]]
func.func @powers(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %two = nn.constant dense<2.0> : tensor<4xf32>
  %half = nn.constant dense<0.5> : tensor<4xf32>
  %other = nn.constant dense<1.5> : tensor<4xf32>
  %a = nn.pow %x, %two : tensor<4xf32>
  %b = nn.pow %x, %half : tensor<4xf32>
  %c = nn.pow %x, %other : tensor<4xf32>
  return %a, %b, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Indices at even ascending steps within the axis read a slice; others do not, nor does a row that is not trained.
// CHECK-LABEL: @ranges
// CHECK-SAME: %[[X:.*]]: tensor<6x4xf32>
// CHECK-DAG: %[[S:.*]] = nn.slice %[[X]] starts = [1, 0] strides = [2, 1] : tensor<6x4xf32> -> tensor<3x4xf32>
// CHECK-DAG: %[[R:.*]] = nn.reshape %[[S]] : tensor<3x4xf32> -> tensor<3x1x4xf32>
// CHECK-DAG: %[[D:.*]] = nn.gather %[[X]]
// CHECK-DAG: %[[U:.*]] = nn.gather %[[X]]
// CHECK: return %[[X]], %[[R]], %[[D]], %[[U]]
func.func @ranges(%x: tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<3x1x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %all = nn.constant dense<[0, 1, 2, 3, 4, 5]> : tensor<6xi64>
  %odd = nn.constant dense<[[1], [3], [5]]> : tensor<3x1xi64>
  %down = nn.constant dense<[1, 0]> : tensor<2xi64>
  %up = nn.constant dense<[0, 1]> : tensor<2xi64>
  %a = nn.gather %x[%all] axis = 0 : (tensor<6x4xf32>, tensor<6xi64>) -> tensor<6x4xf32>
  %b = nn.gather %x[%odd] axis = 0 : (tensor<6x4xf32>, tensor<3x1xi64>) -> tensor<3x1x4xf32>
  %c = nn.gather %x[%down] axis = 0 : (tensor<6x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  %d = nn.gather %x[%up] axis = 0 {untrained_row = 0 : i64} : (tensor<6x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  return %a, %b, %c, %d : tensor<6x4xf32>, tensor<3x1x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// A triangle of ones, compared with zero, made a mask: what it was chosen by decides at once.
// CHECK-LABEL: @mask_of_ones
// CHECK-DAG: %[[ZERO:.*]] = nn.constant dense<0.000000e+00>
// CHECK-DAG: %[[LOW:.*]] = nn.constant dense<-3.0
// CHECK: nn.select %arg0, %[[ZERO]], %[[LOW]] : tensor<3x3xi1>, tensor<3x3xf32>
// CHECK-NOT: nn.compare
// CHECK-NOT: nn.not
func.func @mask_of_ones(%seen: tensor<3x3xi1>) -> tensor<3x3xf32> {
  %one = nn.constant dense<1.0> : tensor<3x3xf32>
  %zero = nn.constant dense<0.0> : tensor<3x3xf32>
  %low = nn.constant dense<-3.0e38> : tensor<3x3xf32>
  %t = nn.select %seen, %one, %zero : tensor<3x3xi1>, tensor<3x3xf32>
  %h = nn.compare eq %t, %zero : tensor<3x3xf32> -> tensor<3x3xi1>
  %m = nn.select %h, %low, %zero : tensor<3x3xi1>, tensor<3x3xf32>
  return %m : tensor<3x3xf32>
}

// Both alternatives compare alike: that is no choice.
// CHECK-LABEL: @no_choice
// CHECK: nn.compare
func.func @no_choice(%seen: tensor<3xi1>) -> tensor<3xi1> {
  %one = nn.constant dense<1.0> : tensor<3xf32>
  %two = nn.constant dense<2.0> : tensor<3xf32>
  %zero = nn.constant dense<0.0> : tensor<3xf32>
  %t = nn.select %seen, %one, %two : tensor<3xi1>, tensor<3xf32>
  %h = nn.compare gt %t, %zero : tensor<3xf32> -> tensor<3xi1>
  return %h : tensor<3xi1>
}

// CHECK-LABEL: func.func @moved_positions(
// CHECK-NEXT: %[[COLUMNS:.*]] = nn.iota dim = 3 : tensor<1x2x3x8xi32>
// CHECK-NEXT: return %[[COLUMNS]] :
func.func @moved_positions() -> tensor<1x2x3x8xi32> {
  %p = nn.iota dim = 1 : tensor<12x8xi32>
  %r = nn.reshape %p : tensor<12x8xi32> -> tensor<1x4x3x8xi32>
  %s = nn.slice %r starts = [0, 2, 0, 0] strides = [1, 1, 1, 1] : tensor<1x4x3x8xi32> -> tensor<1x2x3x8xi32>
  return %s : tensor<1x2x3x8xi32>
}

// Cut or regrouped themselves, they are others.
// CHECK-LABEL: func.func @cut_positions(
// CHECK: nn.slice
// CHECK: nn.reshape
func.func @cut_positions() -> (tensor<12x4xi32>, tensor<96xi32>) {
  %p = nn.iota dim = 1 : tensor<12x8xi32>
  %s = nn.slice %p starts = [0, 4] strides = [1, 1] : tensor<12x8xi32> -> tensor<12x4xi32>
  %r = nn.reshape %p : tensor<12x8xi32> -> tensor<96xi32>
  return %s, %r : tensor<12x4xi32>, tensor<96xi32>
}
