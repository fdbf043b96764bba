// RUN: not lowtide-opt %s --split-input-file --nn-decompose 2>&1 | FileCheck %s

// CHECK: error: cannot be decomposed: values of a step have static shapes
func.func @commit(%new: tensor<?xf32>, %old: tensor<?xf32>, %yes: tensor<i1>) -> tensor<?xf32> {
  %a = train.commit %new or %old if %yes : (tensor<i1>, tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %a : tensor<?xf32>
}

// -----

// CHECK: error: cannot be decomposed: values of a step have static shapes
func.func @unranked(%new: tensor<*xf32>, %old: tensor<*xf32>, %yes: tensor<i1>) -> tensor<*xf32> {
  %a = train.commit %new or %old if %yes : (tensor<i1>, tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  return %a : tensor<*xf32>
}
