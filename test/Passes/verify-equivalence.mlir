// RUN: lowtide-opt %s --verify-equivalence --split-input-file --verify-diagnostics

// Other order, and one op in a kernel.
func.func @before(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = nn.add %x, %y : tensor<4xf32>
  %b = nn.mul %x, %y : tensor<4xf32>
  %c = nn.mul %a, %b : tensor<4xf32>
  return %b, %c : tensor<4xf32>, tensor<4xf32>
}
func.func @after(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %b = nn.mul %x, %y : tensor<4xf32>
  %c = nn.kernel loop (%p = %x, %q = %y, %r = %b) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>) {
    %a = nn.add %p, %q : tensor<4xf32>
    %d = nn.mul %a, %r : tensor<4xf32>
    nn.yield %d : tensor<4xf32>
  }
  return %b, %c : tensor<4xf32>, tensor<4xf32>
}

// -----

// A wrong operand.
func.func @before(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note@below {{the first operation that differs, before: nn.sub}}
  %a = nn.sub %x, %y : tensor<4xf32>
  return %a : tensor<4xf32>
}
func.func @after(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{the rewrite changed the value of 0 : i64 in @after, which it must not}}
  // expected-note@below {{the first operation that differs, after: nn.sub}}
  // expected-note@below {{they differ: operand 0: the argument 0 : i64, then the argument 1 : i64}}
  %a = nn.sub %y, %x : tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

// Updates swapped.
func.func @before(%x: tensor<4xf32> {train.binding = #train.param<"a">}, %y: tensor<4xf32> {train.binding = #train.param<"b">})
    -> (tensor<4xf32> {train.binding = #train.param<"a">}, tensor<4xf32> {train.binding = #train.param<"b">}) {
  %a = nn.exp %x : tensor<4xf32>
  %b = nn.exp %y : tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}
func.func @after(%x: tensor<4xf32> {train.binding = #train.param<"a">}, %y: tensor<4xf32> {train.binding = #train.param<"b">})
    -> (tensor<4xf32> {train.binding = #train.param<"a">}, tensor<4xf32> {train.binding = #train.param<"b">}) {
  // expected-error@below {{changed the value of #train.param<"b">}}
  // expected-note@below {{both sides compute the same values; what is returned as one was returned as another: nn.exp, then nn.exp}}
  %a = nn.exp %x : tensor<4xf32>
  // expected-error@below {{changed the value of #train.param<"a">}}
  // expected-note@below {{both sides compute the same values; what is returned as one was returned as another: nn.exp, then nn.exp}}
  %b = nn.exp %y : tensor<4xf32>
  return %b, %a : tensor<4xf32>, tensor<4xf32>
}
