// RUN: lowtide-opt %s --verify-equivalence --split-input-file --verify-diagnostics

// What a loop adds up is the same in another memory.
func.func @before(%x: tensor<4x3xf32>, %zero: tensor<3xf32>) -> tensor<3xf32> {
  %sum = train.accumulate 4 slices(%part = %x) carries(%old = %zero) : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<3xf32> {
    %row = nn.reshape %part : tensor<1x3xf32> -> tensor<3xf32>
    %new = nn.add %old, %row : tensor<3xf32>
    train.next carries(%new : tensor<3xf32>)
  }
  return %sum : tensor<3xf32>
}
func.func @after(%x: tensor<4x3xf32>, %zero: tensor<3xf32>) -> tensor<3xf32> {
  %first = train.move %zero : tensor<3xf32> to tensor<3xf32, #train.space<file>>
  %sum = train.accumulate 4 slices(%part = %x) carries(%old = %first)
      : (tensor<4x3xf32>, tensor<3xf32, #train.space<file>>) -> tensor<3xf32, #train.space<file>> {
    %row = nn.reshape %part : tensor<1x3xf32> -> tensor<3xf32>
    %loaded = train.move %old : tensor<3xf32, #train.space<file>> to tensor<3xf32>
    %new = nn.add %loaded, %row : tensor<3xf32>
    %stored = train.move %new : tensor<3xf32> to tensor<3xf32, #train.space<file>>
    train.next carries(%stored : tensor<3xf32, #train.space<file>>)
  }
  %back = train.move %sum : tensor<3xf32, #train.space<file>> to tensor<3xf32>
  return %back : tensor<3xf32>
}

// -----

// A round that stores what it has loaded.
func.func @before(%x: tensor<4x3xf32>, %zero: tensor<3xf32>) -> tensor<3xf32> {
  // expected-note @below {{the first operation that differs, before: train.accumulate}}
  %sum = train.accumulate 4 slices(%part = %x) carries(%old = %zero) : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<3xf32> {
    %row = nn.reshape %part : tensor<1x3xf32> -> tensor<3xf32>
    %new = nn.add %old, %row : tensor<3xf32>
    train.next carries(%new : tensor<3xf32>)
  }
  return %sum : tensor<3xf32>
}
func.func @after(%x: tensor<4x3xf32>, %zero: tensor<3xf32>) -> tensor<3xf32> {
  %first = train.move %zero : tensor<3xf32> to tensor<3xf32, #train.space<file>>
  // expected-note @below {{the first operation that differs, after: train.accumulate}}
  %sum = train.accumulate 4 slices(%part = %x) carries(%old = %first)
      : (tensor<4x3xf32>, tensor<3xf32, #train.space<file>>) -> tensor<3xf32, #train.space<file>> {
    %row = nn.reshape %part : tensor<1x3xf32> -> tensor<3xf32>
    %loaded = train.move %old : tensor<3xf32, #train.space<file>> to tensor<3xf32>
    %new = nn.add %loaded, %row : tensor<3xf32>
    %stored = train.move %loaded : tensor<3xf32> to tensor<3xf32, #train.space<file>>
    train.next carries(%stored : tensor<3xf32, #train.space<file>>)
  }
  // expected-error @below {{changed the value}}
  // expected-note @below {{they differ: operand 2: nn.add, then train.accumulate}}
  %back = train.move %sum : tensor<3xf32, #train.space<file>> to tensor<3xf32>
  return %back : tensor<3xf32>
}
