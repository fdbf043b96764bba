// RUN: lowtide-opt %s --verify-legal --split-input-file --verify-diagnostics --allow-unregistered-dialect

func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = nn.exp %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{'other.op' is left after legalization: it is not supported here}}
  %y = "other.op"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@below {{'other.op' is left after legalization: it is not supported here}}
  %z = "other.op"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}

// -----

func.func @forward(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error@below {{'func.return' has the type 'tensor<?xf32>': every shape must be known}}
  return %x : tensor<?xf32>
}

// -----

// One error says it; a count that leaves 63 bits is too large, too.
func.func @forward(%x: tensor<1048577x1048576xf32>) -> tensor<1048577x1048576xf32> {
  // expected-error@below {{'nn.exp' has the type 'tensor<1048577x1048576xf32>': a tensor holds at most 2^40 elements}}
  // expected-note@below {{--dim and --batch set the sizes that a model leaves open}}
  %y = nn.exp %x : tensor<1048577x1048576xf32>
  %z = nn.exp %y : tensor<1048577x1048576xf32>
  return %z : tensor<1048577x1048576xf32>
}

// -----

func.func @forward(%x: tensor<1048576x1048576x1048576x1048576xbf16>) -> tensor<1048576x1048576x1048576x1048576xbf16> {
  // expected-error@below {{a tensor holds at most 2^40 elements}}
  // expected-note@below {{--dim and --batch set}}
  %y = nn.exp %x : tensor<1048576x1048576x1048576x1048576xbf16>
  return %y : tensor<1048576x1048576x1048576x1048576xbf16>
}

// -----

func.func @forward(%x: tensor<1048576x1048576xf32>) -> tensor<1048576x1048576xf32> {
  %y = nn.exp %x : tensor<1048576x1048576xf32>
  return %y : tensor<1048576x1048576xf32>
}
