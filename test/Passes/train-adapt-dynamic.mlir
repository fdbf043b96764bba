// RUN: not lowtide-opt %s --train-adapt="lora='fc:r=2'" 2>&1 | FileCheck %s

// CHECK: error: argument 1 of @forward is 'tensor<?x6xf32>'; low-rank pairs belong to tensors of static shape
func.func @forward(%x: tensor<4x6xf32> {train.binding = #train.batch<"x">}, %w: tensor<?x6xf32> {train.binding = #train.param<"fc.weight">}) -> (tensor<4x6xf32> {train.binding = #train.metric<"loss">}) {
  return %x : tensor<4x6xf32>
}
