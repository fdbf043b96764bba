// RUN: not lowtide-opt %s --split-input-file --train-average-weights=ema=0.999 2>&1 | FileCheck %s

// CHECK: error: ema: @train writes 'v', which it does not read as a float tensor of the same type
func.func @train(%w: tensor<8xf32> {train.binding = #train.param<"w">}) -> (tensor<8xf32> {train.binding = #train.param<"v">}) {
  return %w : tensor<8xf32>
}

// -----

// CHECK: error: ema: @train writes 'w', which it does not read as a float tensor of the same type
func.func @train(%w: tensor<8xi32> {train.binding = #train.param<"w">}) -> (tensor<8xi32> {train.binding = #train.param<"w">}) {
  return %w : tensor<8xi32>
}

// -----

// CHECK: error: ema: @train has a state 'w.ema' already
func.func @train(%w: tensor<8xf32> {train.binding = #train.param<"w">}) -> (tensor<8xf32> {train.binding = #train.param<"w">}, tensor<8xf32> {train.binding = #train.param<"w">}) {
  return %w, %w : tensor<8xf32>, tensor<8xf32>
}

// -----

// CHECK: error: ema: @train keeps a lower half of 'w', which is no half of it
func.func @train(%w: tensor<8xf32> {train.binding = #train.param<"w">}, %l: tensor<8xi16> {train.binding = #train.state<"w.low_half">}) -> (tensor<8xf32> {train.binding = #train.param<"w">}, tensor<8xi16> {train.binding = #train.state<"w.low_half">}) {
  return %w, %l : tensor<8xf32>, tensor<8xi16>
}
