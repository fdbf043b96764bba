// RUN: lowtide-opt %s --canonicalize --split-input-file | FileCheck %s

// What nothing reads goes: rows, a state that only it needs, an operand that no round reads. What a round makes of the same
// tensors every time is made once, before the first.
// CHECK-LABEL: func.func @unused
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x2xf32>, %[[Y:[a-z0-9]+]]: tensor<4x3xf32>, %[[H:[a-z0-9]+]]: tensor<2xf32>, %[[W:[a-z0-9]+]]: tensor<2x2xf32>
// CHECK: %[[TURNED:.*]] = nn.tanh %[[W]]
// CHECK: %[[LAST:.*]] = nn.scan 4 slices(%[[PART:.*]] = %[[X]]) carries(%[[STATE:.*]] = %[[H]]) reads(%[[READ:.*]] = %[[TURNED]]) : (tensor<4x2xf32>, tensor<2xf32>, tensor<2x2xf32>) -> tensor<2xf32> {
// CHECK-NOT: nn.tanh
// CHECK-NOT: nn.exp
// CHECK: nn.next carries(%{{.*}} : tensor<2xf32>)
// CHECK: return %[[LAST]]
func.func @unused(%x: tensor<4x2xf32>, %y: tensor<4x3xf32>, %h: tensor<2xf32>, %w: tensor<2x2xf32>) -> tensor<2xf32> {
  %last, %other, %rows = nn.scan 4 slices(%a = %x, %b = %y) carries(%s = %h, %t = %h) reads(%v = %w)
      : (tensor<4x2xf32>, tensor<4x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<4x3xf32>) {
    %turned = nn.tanh %v : tensor<2x2xf32>
    %row = nn.reshape %s : tensor<2xf32> -> tensor<1x2xf32>
    %p = nn.dot %row, %turned : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
    %sum = nn.add %p, %a : tensor<1x2xf32>
    %next = nn.reshape %sum : tensor<1x2xf32> -> tensor<2xf32>
    %u = nn.exp %t : tensor<2xf32>
    %e = nn.exp %b : tensor<1x3xf32>
    nn.next carries(%next, %u : tensor<2xf32>, tensor<2xf32>) rows(%e : tensor<1x3xf32>)
  }
  return %last : tensor<2xf32>
}

// -----

// One round is no loop.
// CHECK-LABEL: func.func @once
// CHECK-NOT: nn.scan
// CHECK: nn.add
func.func @once(%x: tensor<2xf32>, %h: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %last, %rows = nn.scan 1 slices(%a = %x) carries(%s = %h) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %sum = nn.add %a, %s : tensor<2xf32>
    nn.next carries(%sum : tensor<2xf32>) rows(%a : tensor<2xf32>)
  }
  return %last, %rows : tensor<2xf32>, tensor<2xf32>
}
