// RUN: lowtide-opt "--onnx-legalize=loss='nll(classes, labels)'" %s | FileCheck %s --check-prefix=NLL
// RUN: lowtide-opt "--onnx-legalize=loss='bce(parts, target)'" %s | FileCheck %s --check-prefix=BCE
// RUN: lowtide-opt "--onnx-legalize=loss='nll(parts, labels)'" %s | FileCheck %s --check-prefix=LOG
// RUN: lowtide-opt "--onnx-legalize=loss='bce(flat, target)'" %s | FileCheck %s --check-prefix=FLAT
// RUN: lowtide-opt "--onnx-legalize=loss='cross_entropy(classes, labels)'" %s 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: lowtide-opt "--onnx-legalize=loss='bce_with_logits(parts, target)'" %s 2>&1 | FileCheck %s --check-prefix=SIGMOID
// RUN: not lowtide-opt --onnx-legalize=require-loss=true %s 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not lowtide-opt "--onnx-legalize=loss='hinge(classes, labels)'" %s 2>&1 | FileCheck %s --check-prefix=KIND

// Losses of probabilities read the logits that these were made of.
// NLL:      nn.softmax_cross_entropy %arg0, %{{.*}} ignore_index = -100
// BCE-NOT:  nn.log
// BCE:      nn.softplus %arg0
// BCE:      nn.mul %arg0, %
// FLAT-NOT: nn.log
// FLAT:     %[[LOGITS:.*]] = nn.reshape %arg0 : tensor<4x10xf32> -> tensor<40xf32>
// FLAT:     nn.softplus %[[LOGITS]]
// Others are kept from 0, whose logarithm is not finite.
// LOG:      %[[P:.*]] = nn.sigmoid %arg0
// LOG:      %[[ABOVE:.*]] = nn.max %[[P]], %
// LOG:      %[[BELOW:.*]] = nn.min %[[ABOVE]], %
// LOG:      %[[L:.*]] = nn.log %[[BELOW]]
// LOG:      nn.softmax_cross_entropy %[[L]], %
// TWICE:    warning: {{.*}}--loss: cross_entropy takes logits, and 'classes' holds probabilities
// TWICE:    note: {{.*}}their loss is --loss='nll(classes, labels)'
// SIGMOID:  warning: {{.*}}--loss: bce_with_logits takes logits, and 'parts' holds probabilities
// SIGMOID:  note: {{.*}}their loss is --loss='bce(parts, target)'
// NONE:     note: say which loss to add, for example --loss='nll(classes, labels)'
// KIND:     error: --loss: unknown kind 'hinge' (column 1)
// KIND:     note: there are cross_entropy(LOGITS, LABELS), nll(PROBABILITIES, LABELS), {{.*}}, kl_div(LOG_PROBABILITIES, TARGET)
func.func @model(%x: tensor<4x10xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "classes"}, !onnx.value {onnx.output = "parts"}, !onnx.value {onnx.output = "flat"}) {
  %0 = onnx.node "Softmax"(%x) {attrs = {}, domain = "", outputs = ["classes"], version = 13 : i64} : (tensor<4x10xf32>) -> !onnx.value
  %1 = onnx.node "Sigmoid"(%x) {attrs = {}, domain = "", outputs = ["parts"], version = 13 : i64} : (tensor<4x10xf32>) -> !onnx.value
  %shape = onnx.node "Constant"() {attrs = {value_ints = [40]}, domain = "", outputs = ["shape"], version = 13 : i64} : () -> !onnx.value
  %2 = onnx.node "Reshape"(%1, %shape) {attrs = {}, domain = "", outputs = ["flat"], version = 14 : i64} : (!onnx.value, !onnx.value) -> !onnx.value
  return %0, %1, %2 : !onnx.value, !onnx.value, !onnx.value
}
