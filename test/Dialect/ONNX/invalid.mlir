// RUN: lowtide-opt %s --split-input-file --verify-diagnostics

func.func @outputs(%x: tensor<2xf32>) {
  // expected-error @+1 {{names 2 outputs but has 1 results}}
  %0 = onnx.node "Relu"(%x) {attrs = {}, domain = "", outputs = ["a", "b"], version = 20 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @operator(%x: tensor<2xf32>) {
  // expected-error @+1 {{has an empty operator name}}
  %0 = onnx.node ""(%x) {attrs = {}, domain = "", outputs = ["a"], version = 20 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @version(%x: tensor<2xf32>) {
  // expected-error @+1 {{has operator set version 0, expected at least 1}}
  %0 = onnx.node "Relu"(%x) {attrs = {}, domain = "", outputs = ["a"], version = 0 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @subgraphs(%x: tensor<i1>) {
  // expected-error @+1 {{names 0 subgraphs but has 1 regions}}
  %0 = onnx.node "If"(%x) {attrs = {}, domain = "", outputs = ["a"], version = 20 : i64} : (tensor<i1>) -> tensor<i1> graphs {
    onnx.yield %x : tensor<i1>
  }
  return
}
