// RUN: not lowtide-opt --onnx-legalize=require-loss=true %s 2>&1 | FileCheck %s
// RUN: lowtide-opt --onnx-legalize=loss=nll %s | FileCheck %s --check-prefix=NAMED

// A loss and a metric, each one number: which of them is the loss is for the user to say.
// CHECK: error: the model has no loss: none of its outputs ('scores', 'nll', 'accuracy') is the only scalar float one
// CHECK: note: say which of them is the loss, for example --loss=nll
// NAMED: -> (tensor<f32> {train.binding = #train.metric<"loss">}
func.func @model(%x: tensor<4x10xf32> {onnx.input = "x"})
    -> (!onnx.value {onnx.output = "scores"}, !onnx.value {onnx.output = "nll"}, !onnx.value {onnx.output = "accuracy"}) {
  %0 = onnx.node "Tanh"(%x) {attrs = {}, domain = "", outputs = ["scores"], version = 13 : i64} : (tensor<4x10xf32>) -> !onnx.value
  %1 = onnx.node "ReduceMean"(%0) {attrs = {keepdims = 0 : i64}, domain = "", outputs = ["nll"], version = 13 : i64} : (!onnx.value) -> !onnx.value
  %2 = onnx.node "ReduceMax"(%0) {attrs = {keepdims = 0 : i64}, domain = "", outputs = ["accuracy"], version = 13 : i64} : (!onnx.value) -> !onnx.value
  return %0, %1, %2 : !onnx.value, !onnx.value, !onnx.value
}
