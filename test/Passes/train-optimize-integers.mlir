// RUN: not lowtide-opt %s --train-optimize 2>&1 | FileCheck %s

// CHECK: error: result 0 of @gradient is called a gradient and is 'tensor<4xi32>'; gradients are float tensors of static shape
func.func @gradient(%w: tensor<4xi32> {train.binding = #train.param<"w">}) -> (tensor<4xi32> {train.binding = #train.output<"grad/w">}) {
  return %w : tensor<4xi32>
}
