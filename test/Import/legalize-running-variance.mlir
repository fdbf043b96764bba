// RUN: lowtide-opt --onnx-legalize %s 2>/dev/null | FileCheck %s
// RUN: lowtide-opt --onnx-legalize=mode=as-is %s 2>/dev/null | FileCheck %s --check-prefix=BIASED
// RUN: sed s/pytorch/other/ %s | lowtide-opt --onnx-legalize 2>/dev/null | FileCheck %s --check-prefix=BIASED

// A training form in a file of PyTorch's keeps PyTorch's unbiased variance. As it is, and in files of others, it keeps
// ONNX's biased one.
// CHECK: %[[VARIANCE:.*]] = nn.unbiased_variance
// CHECK: %[[PART:.*]] = nn.mul %[[VARIANCE]],
// CHECK: %[[NEXT:.*]] = nn.add %{{.*}}, %[[PART]]
// CHECK: return %{{.*}}, %{{.*}}, %[[NEXT]]
// BIASED: nn.batch_norm
// BIASED-NOT: nn.unbiased_variance
func.func @model(%x: tensor<4x2xf32> {onnx.input = "x"},
                 %scale: tensor<2xf32> {onnx.initializer = "bn.weight", onnx.role = "parameter"},
                 %bias: tensor<2xf32> {onnx.initializer = "bn.bias", onnx.role = "parameter"},
                 %mean: tensor<2xf32> {onnx.initializer = "bn.running_mean", onnx.role = "state"},
                 %var: tensor<2xf32> {onnx.initializer = "bn.running_var", onnx.role = "state"})
    -> (!onnx.value {onnx.output = "y"}) attributes {onnx.producer = "pytorch 2.4.0"} {
  %0:3 = onnx.node "BatchNormalization"(%x, %scale, %bias, %mean, %var) {attrs = {training_mode = 1 : i64}, domain = "", outputs = ["y", "m", "v"], version = 20 : i64} : (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (!onnx.value, !onnx.value, !onnx.value)
  return %0#0 : !onnx.value
}
