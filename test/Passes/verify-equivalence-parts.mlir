// RUN: lowtide-opt %s --verify-equivalence=parts=true --split-input-file --verify-diagnostics

// All parts of two ops in one loop, and op by op in two.
func.func @before(%x: tensor<4x3xf32>, %zero: tensor<3xf32>) -> (tensor<3xf32>, tensor<4x3xf32>) {
  %sum, %ys = train.accumulate 2 slices(%part = %x) carries(%sofar = %zero) : (tensor<4x3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<4x3xf32>) {
    %y = nn.exp %part : tensor<2x3xf32>
    %term = nn.reduce_sum %y dims = [0] : tensor<2x3xf32> -> tensor<3xf32>
    %next = nn.add %sofar, %term : tensor<3xf32>
    train.next carries(%next : tensor<3xf32>) rows(%y : tensor<2x3xf32>)
  }
  return %sum, %ys : tensor<3xf32>, tensor<4x3xf32>
}
func.func @after(%x: tensor<4x3xf32>, %zero: tensor<3xf32>) -> (tensor<3xf32>, tensor<4x3xf32>) {
  %ys = train.accumulate 2 slices(%part = %x) : (tensor<4x3xf32>) -> tensor<4x3xf32> {
    %y = nn.exp %part : tensor<2x3xf32>
    train.next rows(%y : tensor<2x3xf32>)
  }
  %sum = train.accumulate 2 slices(%y = %ys) carries(%sofar = %zero) : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<3xf32> {
    %term = nn.reduce_sum %y dims = [0] : tensor<2x3xf32> -> tensor<3xf32>
    %next = nn.add %sofar, %term : tensor<3xf32>
    train.next carries(%next : tensor<3xf32>)
  }
  return %sum, %ys : tensor<3xf32>, tensor<4x3xf32>
}

// -----

// Parts are added up from the last one on.
func.func @before(%x: tensor<4x3xf32>, %zero: tensor<3xf32>) -> tensor<3xf32> {
  // expected-note @below {{the first operation that differs, before: train.accumulate}}
  %sum = train.accumulate 2 slices(%part = %x) carries(%sofar = %zero) : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<3xf32> {
    %term = nn.reduce_sum %part dims = [0] : tensor<2x3xf32> -> tensor<3xf32>
    %next = nn.add %sofar, %term : tensor<3xf32>
    train.next carries(%next : tensor<3xf32>)
  }
  return %sum : tensor<3xf32>
}
func.func @after(%x: tensor<4x3xf32>, %zero: tensor<3xf32>) -> tensor<3xf32> {
  // expected-note @below {{the first operation that differs, after: train.accumulate}}
  // expected-note @below {{they differ}}
  // expected-error @below {{the rewrite changed the value of 0 : i64 in @after, which it must not}}
  %sum = train.accumulate 2 reversed slices(%part = %x) carries(%sofar = %zero) : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<3xf32> {
    %term = nn.reduce_sum %part dims = [0] : tensor<2x3xf32> -> tensor<3xf32>
    %next = nn.add %sofar, %term : tensor<3xf32>
    train.next carries(%next : tensor<3xf32>)
  }
  return %sum : tensor<3xf32>
}
