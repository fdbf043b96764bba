// RUN: lowtide-opt "--onnx-legalize=loss='cross_entropy(logits, labels)'" %s | FileCheck %s
// RUN: lowtide-opt "--onnx-legalize=loss='mse(logits, target)'" %s | FileCheck %s --check-prefix=MSE
// RUN: not lowtide-opt --onnx-legalize=require-loss=true %s 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not lowtide-opt "--onnx-legalize=loss='cross_entropy(scores, labels)'" %s 2>&1 | FileCheck %s --check-prefix=MISSING

// CHECK:      func.func @forward(%{{.*}}: tensor<4x10xf32> {onnx.input = "x", train.binding = #train.batch<"x">}, %[[LABELS:.*]]: tensor<4xi64> {train.binding = #train.batch<"labels">})
// CHECK-SAME:   -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<4x10xf32> {train.binding = #train.output<"logits">})
// CHECK:        nn.softmax_cross_entropy %{{.*}}, %[[LABELS]] ignore_index = -100
// MSE:        tensor<4x10xf32> {train.binding = #train.batch<"target">}
// MSE:          nn.sub
// NONE:       error: the model has no loss: none of its outputs ('logits') is the only scalar float one
// NONE:       note: say which loss to add, for example --loss='cross_entropy(logits, labels)'
// MISSING:    error: --loss: the model has no output 'scores'; it has 'logits'
func.func @model(%x: tensor<4x10xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "logits"}) {
  %0 = onnx.node "Tanh"(%x) {attrs = {}, domain = "", outputs = ["logits"], version = 20 : i64} : (tensor<4x10xf32>) -> !onnx.value
  return %0 : !onnx.value
}
