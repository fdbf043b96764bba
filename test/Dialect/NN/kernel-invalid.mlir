// RUN: lowtide-opt %s -split-input-file -verify-diagnostics

func.func @emitter(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{expected one of [loop, row, column, scatter, single, batch, cross, library] for loop nest of a kernel}}
  %r = nn.kernel spiral (%a = %x) : (tensor<2xf32>) -> tensor<2xf32> {
    nn.yield %a : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}

// -----

func.func @count(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{1 operands, but 2 types}}
  %r = nn.kernel loop (%a = %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> {
    nn.yield %a : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}

// -----

func.func @yields(%x: tensor<2xf32>) -> tensor<3xf32> {
  %r = nn.kernel loop (%a = %x) : (tensor<2xf32>) -> tensor<3xf32> {
    // expected-error @+1 {{yields other types than the kernel's results}}
    nn.yield %a : tensor<2xf32>
  }
  return %r : tensor<3xf32>
}
