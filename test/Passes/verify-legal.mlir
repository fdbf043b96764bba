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
