// RUN: not lowtide-opt %s --split-input-file --train-optimize 2>&1 | FileCheck %s

// CHECK: error: result 0 of @gradient is called a gradient and is 'tensor<4xi32>'; gradients are float tensors of static shape
func.func @gradient(%w: tensor<4xi32> {train.binding = #train.param<"w">}) -> (tensor<4xi32> {train.binding = #train.gradient<"w">}) {
  return %w : tensor<4xi32>
}

// -----

// CHECK: error: result 0 of @gradient is 'tensor<f32>', the parameter that it is the gradient of 'tensor<4xf32>'
func.func @gradient(%w: tensor<4xf32> {train.binding = #train.param<"w">}) -> (tensor<f32> {train.binding = #train.gradient<"w">}) {
  %0 = nn.reduce_sum %w dims = [0] : tensor<4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
