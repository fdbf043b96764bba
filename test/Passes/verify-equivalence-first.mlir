// Of two functions that differ, the first operation that does is named on both sides, where it is, and in what it differs.
// RUN: lowtide-opt %s --verify-equivalence --split-input-file --verify-diagnostics

// An attribute, below an operation that is the same but for it.
func.func @before(%x: tensor<4x4xf32>) -> tensor<4xf32> {
  // expected-note@below {{the first operation that differs, before: nn.reduce_sum}}
  %a = nn.reduce_sum %x dims = [0] : tensor<4x4xf32> -> tensor<4xf32>
  %b = nn.exp %a : tensor<4xf32>
  return %b : tensor<4xf32>
}
func.func @after(%x: tensor<4x4xf32>) -> tensor<4xf32> {
  // expected-note@below {{the first operation that differs, after: nn.reduce_sum}}
  %a = nn.reduce_sum %x dims = [1] : tensor<4x4xf32> -> tensor<4xf32>
  // expected-error@below {{the rewrite changed the value of 0 : i64 in @after}}
  // expected-note@below {{they differ: attribute dims: array<i64: 0>, then array<i64: 1>}}
  %b = nn.exp %a : tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----

// An operand; what comes before is the same in another order and in a kernel.
func.func @before(%x: tensor<4xf32> {train.binding = #train.batch<"x">}, %y: tensor<4xf32>) -> tensor<4xf32> {
  %a = nn.exp %x : tensor<4xf32>
  %b = nn.neg %y : tensor<4xf32>
  // expected-note@below {{the first operation that differs, before: nn.mul}}
  %c = nn.mul %a, %b : tensor<4xf32>
  return %c : tensor<4xf32>
}
func.func @after(%x: tensor<4xf32> {train.binding = #train.batch<"x">}, %y: tensor<4xf32>) -> tensor<4xf32> {
  %b = nn.neg %y : tensor<4xf32>
  // expected-error@below {{the rewrite changed the value of 0 : i64 in @after}}
  // expected-note@below {{they differ: operand 1: nn.neg, then the argument #train.batch<"x">}}
  %c = nn.kernel loop (%p = %x, %q = %b) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>) {
    %a = nn.exp %p : tensor<4xf32>
    // expected-note@below {{the first operation that differs, after: nn.mul}}
    %d = nn.mul %a, %p : tensor<4xf32>
    nn.yield %d : tensor<4xf32>
  }
  return %c : tensor<4xf32>
}

// -----

// An operation is missing.
func.func @before(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note@below {{the first operation that differs, before: nn.exp}}
  %a = nn.exp %x : tensor<4xf32>
  %b = nn.add %a, %y : tensor<4xf32>
  return %b : tensor<4xf32>
}
func.func @after(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{the rewrite changed the value of 0 : i64 in @after}}
  // expected-note@below {{the first operation that differs, after: nn.add}}
  // expected-note@below {{they differ: nn.exp and nn.add are other operations}}
  %b = nn.add %x, %y : tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----

// Two operations in the other order, one made of the other.
func.func @before(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note@below {{the first operation that differs, before: nn.exp}}
  %a = nn.exp %x : tensor<4xf32>
  %b = nn.neg %a : tensor<4xf32>
  return %b : tensor<4xf32>
}
func.func @after(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note@below {{the first operation that differs, after: nn.neg}}
  %a = nn.neg %x : tensor<4xf32>
  // expected-error@below {{the rewrite changed the value of 0 : i64 in @after}}
  // expected-note@below {{they differ: nn.exp and nn.neg are other operations}}
  %b = nn.exp %a : tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----

// A constant, deep below.
func.func @before(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-note@below {{the first operation that differs, before: nn.constant}}
  %c = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %a = nn.mul %x, %c : tensor<2xf32>
  %b = nn.exp %a : tensor<2xf32>
  return %b : tensor<2xf32>
}
func.func @after(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-note@below {{the first operation that differs, after: nn.constant}}
  %c = nn.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %a = nn.mul %x, %c : tensor<2xf32>
  // expected-error@below {{the rewrite changed the value of 0 : i64 in @after}}
  // expected-note@below {{they differ: attribute value: dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>, then dense<[1.000000e+00, 3.000000e+00]> : tensor<2xf32>}}
  %b = nn.exp %a : tensor<2xf32>
  return %b : tensor<2xf32>
}

// -----

// Rounds of a loop: what each computes, not the loop.
func.func @before(%x: tensor<8x4xf32>, %z: tensor<f32>) -> tensor<f32> {
  %s = train.accumulate 4 slices(%p = %x) carries(%q = %z) : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32> {
    // expected-note@below {{the first operation that differs, before: nn.exp}}
    %e = nn.exp %p : tensor<2x4xf32>
    %r = nn.reduce_sum %e dims = [0, 1] : tensor<2x4xf32> -> tensor<f32>
    %t = nn.add %q, %r : tensor<f32>
    train.next carries(%t : tensor<f32>)
  }
  return %s : tensor<f32>
}
func.func @after(%x: tensor<8x4xf32>, %z: tensor<f32>) -> tensor<f32> {
  // expected-error@below {{the rewrite changed the value of 0 : i64 in @after}}
  // expected-note@below {{they differ: nn.exp and nn.neg are other operations}}
  %s = train.accumulate 4 slices(%p = %x) carries(%q = %z) : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32> {
    // expected-note@below {{the first operation that differs, after: nn.neg}}
    %e = nn.neg %p : tensor<2x4xf32>
    %r = nn.reduce_sum %e dims = [0, 1] : tensor<2x4xf32> -> tensor<f32>
    %t = nn.add %q, %r : tensor<f32>
    train.next carries(%t : tensor<f32>)
  }
  return %s : tensor<f32>
}
