// RUN: lowtide-opt --onnx-legalize --split-input-file %s 2>/dev/null | FileCheck %s --check-prefixes=CHECK,TRAIN
// RUN: lowtide-opt --onnx-legalize=mode=eval --split-input-file %s | FileCheck %s --check-prefixes=CHECK,EVAL
// RUN: lowtide-opt --onnx-legalize=mode=as-is --split-input-file %s | FileCheck %s --check-prefixes=CHECK,ASIS
// RUN: lowtide-opt --onnx-legalize --split-input-file %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: lowtide-opt --onnx-legalize=dropout=0 --split-input-file %s 2>/dev/null | FileCheck %s --check-prefix=NODROP
// RUN: lowtide-opt --onnx-legalize=dropout=0.5 --split-input-file %s 2>&1 >/dev/null | FileCheck %s --check-prefix=MEETS

// Batch norm with trained scale that the exporter wrote in inference form is trained in training form.
// CHECK-LABEL: func.func @forward(
// TRAIN:         %{{.*}}, %[[MEAN:.*]], %[[VARIANCE:.*]] = nn.batch_norm %arg0, %arg1, %arg2
// TRAIN:         return %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>
// EVAL-NOT:      nn.batch_norm
// ASIS-NOT:      nn.batch_norm
// REMARK:        remark: batch norm 'y' is in inference form in the file and trained in training form; --mode=as-is keeps it
func.func @model(%x: tensor<4x2x3x3xf32> {onnx.input = "x"},
                 %scale: tensor<2xf32> {onnx.initializer = "bn.weight", onnx.role = "parameter"},
                 %bias: tensor<2xf32> {onnx.initializer = "bn.bias", onnx.role = "parameter"},
                 %mean: tensor<2xf32> {onnx.initializer = "bn.running_mean", onnx.role = "state"},
                 %var: tensor<2xf32> {onnx.initializer = "bn.running_var", onnx.role = "state"})
    -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "BatchNormalization"(%x, %scale, %bias, %mean, %var) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<4x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// Dropout draws by seed, step and row.
// CHECK-LABEL: func.func @forward(
// TRAIN-SAME:    #train.scalar<"seed">
// TRAIN-SAME:    #train.scalar<"step">
// TRAIN-SAME:    #train.scalar<"row">
// TRAIN:         nn.random_uniform %arg1, %arg2, %arg3 op = 0 batch_dim = 0
// EVAL-NEXT:     return %arg0
// ASIS:          nn.random_uniform
// NODROP-NOT:    nn.random_uniform
func.func @model(%x: tensor<4x8xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %ratio = onnx.constant dense<0.25> : tensor<f32>
  %training = onnx.constant dense<true> : tensor<i1>
  %0:2 = onnx.node "Dropout"(%x, %ratio, %training) {attrs = {}, domain = "", outputs = ["y", ""], version = 20 : i64} : (tensor<4x8xf32>, tensor<f32>, tensor<i1>) -> (!onnx.value, !onnx.value)
  return %0#0 : !onnx.value
}

// -----

// A rate that meets no dropout says so.
// MEETS-COUNT-2: warning: --dropout meets no dropout that draws
// MEETS-NOT: warning: --dropout
// CHECK-LABEL: func.func @forward(
func.func @model(%x: tensor<4x8xf32> {onnx.input = "x"}) -> (!onnx.value {onnx.output = "y"}) {
  %0 = onnx.node "Neg"(%x) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<4x8xf32>) -> !onnx.value
  return %0 : !onnx.value
}
