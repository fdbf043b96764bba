// RUN: lowtide-opt --onnx-legalize %s | FileCheck %s
// RUN: lowtide-opt --onnx-legalize=keep-model %s | FileCheck %s --check-prefix=KEPT

// What computes the file's images of parameters becomes an entry on the parameters of the step. A single number among them
// is no loss.
// CHECK-LABEL: func.func @forward(
// CHECK:       func.func @export(
// CHECK-SAME:    tensor<f32> {{{.*}}train.binding = #train.param<"s">}
// CHECK-SAME:    -> (tensor<f32> {train.binding = #train.output<"exp@image">})
// CHECK-NEXT:    %[[EXP:.*]] = nn.exp %{{.*}} : tensor<f32>
// CHECK-NEXT:    return %[[EXP]] : tensor<f32>

// What no step reads would have to be stored for its image's sake: @export_2 goes with it, @export_3 keeps the rest.
// CHECK-NOT:   @export_2
// CHECK:       func.func @export_3(
// CHECK-SAME:    tensor<f32> {{{.*}}train.binding = #train.param<"s">}
// CHECK-SAME:    -> (tensor<f32> {train.binding = #train.output<"neg@image">})
// CHECK-NOT:     nn.exp

// With the model, its images stay as they were.
// KEPT: func.func @export(
// KEPT-SAME: onnx.output = "exp@image"
func.func @model(%x: tensor<8x4xf32> {onnx.input = "x"},
                 %s: tensor<f32> {onnx.image_initializers = ["exp", "neg"], onnx.initializer = "s", onnx.parameter = "s", onnx.role = "parameter"},
                 %t: tensor<f32> {onnx.image_initializers = ["other"], onnx.initializer = "t", onnx.parameter = "t", onnx.role = "parameter"})
    -> (!onnx.value {onnx.output = "loss"}) {
  %0 = onnx.node "Exp"(%s) {attrs = {}, domain = "", outputs = ["exp"], version = 20 : i64} : (tensor<f32>) -> !onnx.value
  %1 = onnx.node "Mul"(%x, %0) {attrs = {}, domain = "", outputs = ["y"], version = 20 : i64} : (tensor<8x4xf32>, !onnx.value) -> !onnx.value
  %2 = onnx.node "ReduceMean"(%1) {attrs = {keepdims = 0 : i64}, domain = "", outputs = ["loss"], version = 20 : i64} : (!onnx.value) -> !onnx.value
  return %2 : !onnx.value
}

func.func @export(%s: tensor<f32> {onnx.image_initializers = ["exp", "neg"], onnx.initializer = "s", onnx.parameter = "s", onnx.role = "parameter"})
    -> (!onnx.value {onnx.output = "exp@image"}) {
  %0 = onnx.node "Exp"(%s) {attrs = {}, domain = "", outputs = ["exp"], version = 20 : i64} : (tensor<f32>) -> !onnx.value
  return %0 : !onnx.value
}

func.func @export_2(%t: tensor<f32> {onnx.image_initializers = ["other"], onnx.initializer = "t", onnx.parameter = "t", onnx.role = "parameter"})
    -> (!onnx.value {onnx.output = "other@image"}) {
  %0 = onnx.node "Exp"(%t) {attrs = {}, domain = "", outputs = ["other"], version = 20 : i64} : (tensor<f32>) -> !onnx.value
  return %0 : !onnx.value
}

func.func @export_3(%s: tensor<f32> {onnx.image_initializers = ["exp", "neg"], onnx.initializer = "s", onnx.parameter = "s", onnx.role = "parameter"},
                    %t: tensor<f32> {onnx.image_initializers = ["other"], onnx.initializer = "t", onnx.parameter = "t", onnx.role = "parameter"})
    -> (!onnx.value {onnx.output = "more@image"}, !onnx.value {onnx.output = "neg@image"}) {
  %0 = onnx.node "Exp"(%t) {attrs = {}, domain = "", outputs = ["more"], version = 20 : i64} : (tensor<f32>) -> !onnx.value
  %1 = onnx.node "Neg"(%s) {attrs = {}, domain = "", outputs = ["neg"], version = 20 : i64} : (tensor<f32>) -> !onnx.value
  return %0, %1 : !onnx.value, !onnx.value
}
