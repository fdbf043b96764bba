// RUN: not lowtide-opt %s --train-differentiate 2>&1 | FileCheck %s

// CHECK: error: argument 0 of @forward is 'tensor<?xf32>'; derivatives are of tensors of static shape
func.func @forward(%w: tensor<?xf32> {train.binding = #train.param<"w">}) -> (tensor<?xf32> {train.binding = #train.metric<"loss">}) {
  return %w : tensor<?xf32>
}
