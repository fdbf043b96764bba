// RUN: not lowtide-opt %s --split-input-file --train-order 2>&1 | FileCheck %s
// RUN: not lowtide-opt %s --train-set-target=target=cuda:sm_90 --split-input-file --nn-batch-launches 2>&1 | FileCheck %s --check-prefixes=CHECK,GPU

// CHECK: error: cannot generate code: 'tensor<4x0xf32>' has no elements
func.func @train(%x: tensor<4x0xf32> {train.binding = #train.batch<"x">}) -> (tensor<4xf32> {train.binding = #train.output<"sums">}) {
  %0 = nn.kernel row (%a = %x) : (tensor<4x0xf32>) -> (tensor<4xf32>) {
    %s = nn.reduce_sum %a dims = [1] : tensor<4x0xf32> -> tensor<4xf32>
    nn.yield %s : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// GPU: error: no code is generated for a 'cross' kernel of this form
func.func @train(%y: tensor<4x8xf32> {train.binding = #train.batch<"y">}) -> (tensor<4x8xf32> {train.binding = #train.output<"same">}) {
  %0 = nn.kernel cross (%a = %y) : (tensor<4x8xf32>) -> (tensor<4x8xf32>) {
    %s = nn.relu %a : tensor<4x8xf32>
    nn.yield %s : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// -----

// As many elements as wrap to none.
// CHECK: error: cannot generate code: 'tensor<4294967296x4294967296xf32>' has more elements than 2^63 - 1
func.func @train(%x: tensor<f32> {train.binding = #train.param<"x">}) -> (tensor<f32> {train.binding = #train.output<"same">}) {
  %0 = nn.kernel loop (%a = %x) : (tensor<f32>) -> (tensor<4294967296x4294967296xf32>) {
    %b = nn.broadcast %a dims = [] : tensor<f32> -> tensor<4294967296x4294967296xf32>
    nn.yield %b : tensor<4294967296x4294967296xf32>
  }
  return %x : tensor<f32>
}

// -----

// Two elements a byte.
// CHECK: error: cannot generate code: 'tensor<8xi4>' has elements that take no place of their own
func.func @train(%x: tensor<8xi4> {train.binding = #train.batch<"x">}) -> (tensor<8xf32> {train.binding = #train.output<"y">}) {
  %0 = nn.kernel loop (%a = %x) : (tensor<8xi4>) -> (tensor<8xf32>) {
    %b = nn.cast %a : tensor<8xi4> -> tensor<8xf32>
    nn.yield %b : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}
