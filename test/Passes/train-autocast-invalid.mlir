// RUN: not lowtide-opt %s --split-input-file --train-autocast=precision=bf16 2>&1 | FileCheck %s

// A kernel's code is made for the types that it was formed with.
// CHECK: error: cannot be cast to bf16: train-autocast takes a step before its kernels and library calls are formed
func.func @train(%w: tensor<4xf32> {train.binding = #train.param<"w">}) -> (tensor<4xf32> {train.binding = #train.output<"y">}) {
  %0 = nn.kernel loop (%a = %w) : (tensor<4xf32>) -> (tensor<4xf32>) {
    %1 = nn.relu %a : tensor<4xf32>
    nn.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// CHECK: error: @model holds a '!onnx.value'; train-autocast takes steps, whose values are tensors of static shape
func.func @model(%a: tensor<2x3xf32> {onnx.input = "a"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "Relu"(%a) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<2x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}
