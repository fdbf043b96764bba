// RUN: lowtide-opt %s --verify-equivalence=rounds=true --split-input-file --verify-diagnostics

// Steps in a loop are the same in segments.
func.func @before(%x: tensor<4x3xf32>, %h: tensor<3xf32>) -> (tensor<3xf32>, tensor<4x3xf32>) {
  %last, %ys = nn.scan 4 slices(%part = %x) carries(%state = %h) : (tensor<4x3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<4x3xf32>) {
    %step = nn.reshape %part : tensor<1x3xf32> -> tensor<3xf32>
    %next = nn.mul %state, %step : tensor<3xf32>
    %row = nn.reshape %next : tensor<3xf32> -> tensor<1x3xf32>
    nn.next carries(%next : tensor<3xf32>) rows(%row : tensor<1x3xf32>)
  }
  return %last, %ys : tensor<3xf32>, tensor<4x3xf32>
}
func.func @after(%x: tensor<4x3xf32>, %h: tensor<3xf32>) -> (tensor<3xf32>, tensor<4x3xf32>) {
  %end, %rows = nn.scan 2 slices(%segment = %x) carries(%from = %h) reads(%first = %h)
      : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<4x3xf32>) {
    %last, %ys = nn.scan 2 slices(%part = %segment) carries(%state = %from) : (tensor<2x3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<2x3xf32>) {
      %step = nn.reshape %part : tensor<1x3xf32> -> tensor<3xf32>
      %next = nn.mul %state, %step : tensor<3xf32>
      %row = nn.reshape %next : tensor<3xf32> -> tensor<1x3xf32>
      nn.next carries(%next : tensor<3xf32>) rows(%row : tensor<1x3xf32>)
    }
    nn.next carries(%last : tensor<3xf32>) rows(%ys : tensor<2x3xf32>)
  }
  return %end, %rows : tensor<3xf32>, tensor<4x3xf32>
}

// -----

// Each segment starts from the first state.
func.func @before(%x: tensor<4x3xf32>, %h: tensor<3xf32>) -> (tensor<3xf32>, tensor<4x3xf32>) {
  // expected-note @below {{the first operation that differs, before: nn.scan}}
  %last, %ys = nn.scan 4 slices(%part = %x) carries(%state = %h) : (tensor<4x3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<4x3xf32>) {
    %step = nn.reshape %part : tensor<1x3xf32> -> tensor<3xf32>
    %next = nn.mul %state, %step : tensor<3xf32>
    %row = nn.reshape %next : tensor<3xf32> -> tensor<1x3xf32>
    nn.next carries(%next : tensor<3xf32>) rows(%row : tensor<1x3xf32>)
  }
  return %last, %ys : tensor<3xf32>, tensor<4x3xf32>
}
func.func @after(%x: tensor<4x3xf32>, %h: tensor<3xf32>) -> (tensor<3xf32>, tensor<4x3xf32>) {
  // expected-note @below {{the first operation that differs, after: nn.scan}}
  // expected-note @below {{they differ: attribute operandSegmentSizes}}
  // expected-error @below {{the rewrite changed the value of 0 : i64 in @after, which it must not}}
  // expected-error @below {{the rewrite changed the value of 1 : i64 in @after, which it must not}}
  %end, %rows = nn.scan 2 slices(%segment = %x) carries(%from = %h) reads(%first = %h)
      : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<4x3xf32>) {
    %last, %ys = nn.scan 2 slices(%part = %segment) carries(%state = %first) : (tensor<2x3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<2x3xf32>) {
      %step = nn.reshape %part : tensor<1x3xf32> -> tensor<3xf32>
      %next = nn.mul %state, %step : tensor<3xf32>
      %row = nn.reshape %next : tensor<3xf32> -> tensor<1x3xf32>
      nn.next carries(%next : tensor<3xf32>) rows(%row : tensor<1x3xf32>)
    }
    nn.next carries(%last : tensor<3xf32>) rows(%ys : tensor<2x3xf32>)
  }
  return %end, %rows : tensor<3xf32>, tensor<4x3xf32>
}

// -----

// Segments are walked from their last step on.
func.func @before(%x: tensor<4x3xf32>, %h: tensor<3xf32>) -> (tensor<3xf32>, tensor<4x3xf32>) {
  // expected-note @below {{the first operation that differs, before: nn.scan}}
  %last, %ys = nn.scan 4 slices(%part = %x) carries(%state = %h) : (tensor<4x3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<4x3xf32>) {
    %step = nn.reshape %part : tensor<1x3xf32> -> tensor<3xf32>
    %next = nn.mul %state, %step : tensor<3xf32>
    %row = nn.reshape %next : tensor<3xf32> -> tensor<1x3xf32>
    nn.next carries(%next : tensor<3xf32>) rows(%row : tensor<1x3xf32>)
  }
  return %last, %ys : tensor<3xf32>, tensor<4x3xf32>
}
func.func @after(%x: tensor<4x3xf32>, %h: tensor<3xf32>) -> (tensor<3xf32>, tensor<4x3xf32>) {
  // expected-note @below {{the first operation that differs, after: nn.scan}}
  // expected-note @below {{they differ: attribute operandSegmentSizes}}
  // expected-error @below {{the rewrite changed the value of 0 : i64 in @after, which it must not}}
  // expected-error @below {{the rewrite changed the value of 1 : i64 in @after, which it must not}}
  %end, %rows = nn.scan 2 slices(%segment = %x) carries(%from = %h) reads(%first = %h)
      : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<4x3xf32>) {
    %last, %ys = nn.scan 2 reversed slices(%part = %segment) carries(%state = %from) : (tensor<2x3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<2x3xf32>) {
      %step = nn.reshape %part : tensor<1x3xf32> -> tensor<3xf32>
      %next = nn.mul %state, %step : tensor<3xf32>
      %row = nn.reshape %next : tensor<3xf32> -> tensor<1x3xf32>
      nn.next carries(%next : tensor<3xf32>) rows(%row : tensor<1x3xf32>)
    }
    nn.next carries(%last : tensor<3xf32>) rows(%ys : tensor<2x3xf32>)
  }
  return %end, %rows : tensor<3xf32>, tensor<4x3xf32>
}
