// Frozen matrices in codes: what all functions only read in products, in whole blocks. A transposed one is coded as the
// framework has it. Trained ones, biases, what something else reads too, the head and small ones stay.
// RUN: lowtide-opt %s --train-encode-frozen=frozen-weights=nf4 2>%t.err | FileCheck %s --check-prefixes=CHECK,NF4
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.err
// RUN: lowtide-opt %s --train-encode-frozen=frozen-weights=int8 2>/dev/null | FileCheck %s --check-prefixes=CHECK,INT8
// RUN: lowtide-opt %s --train-encode-frozen=frozen-weights=fp8 2>/dev/null | FileCheck %s --check-prefixes=CHECK,FP8
// RUN: not lowtide-opt %s --train-encode-frozen=frozen-weights=fp3 2>&1 | FileCheck %s --check-prefix=CODEC

// REMARK: remark: @forward: 2 frozen matrices in nf4: 49152 bytes → 6912 bytes
// REMARK: remark: @eval: 1 frozen matrices in nf4: 32768 bytes → 4608 bytes
// CODEC: error: frozen-weights: 'fp3' is none of auto, f32, bf16, f16, int8, nf4, fp8

// CHECK: module attributes {train.adapters = [{a = "a", b = "b", input_dim = 1 : i64, kind = "linear", module = "turned", weight = ""}
// CHECK-SAME: {a = "c", b = "d", input_dim = 1 : i64, kind = "linear", module = "head", weight = "head.weight"}]}
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x64xf32> {train.binding = #train.batch<"x">}
// NF4-SAME: %[[CODES:[a-z0-9]+]]: tensor<64x32xui8> {onnx.initializer = "w", onnx.source_shape = array<i64: 64, 64>, train.binding = #train.constant<"fc.weight">, train.coded = {codec = "nf4", coded_dims = array<i64: 64, 64>, scales = "fc.weight.scale"}}
// INT8-SAME: %[[CODES:[a-z0-9]+]]: tensor<64x64xi8> {onnx.initializer = "w", {{.*}}train.binding = #train.constant<"fc.weight">, train.coded = {codec = "int8", coded_dims = array<i64: 64, 64>, scales = "fc.weight.scale"}}
// FP8-SAME: %[[CODES:[a-z0-9]+]]: tensor<64x64xui8> {onnx.initializer = "w", {{.*}}train.binding = #train.constant<"fc.weight">, train.coded = {codec = "fp8", coded_dims = array<i64: 64, 64>, scales = "fc.weight.scale"}}
// NF4-SAME: %[[TURNED:[a-z0-9]+]]: tensor<128x32xui8> {onnx.initializer = "t", onnx.source_shape = array<i64: 128, 64>, train.binding = #train.constant<"turned.weight">, train.coded = {codec = "nf4", coded_dims = array<i64: 128, 64>, coded_transposed, scales = "turned.weight.scale"}}
// CHECK-SAME: tensor<128x128xf32> {onnx.initializer = "r", train.binding = #train.constant<"read.weight">}
// CHECK-SAME: tensor<128x64xf32> {onnx.initializer = "p", train.binding = #train.param<"trained.weight">}
// CHECK-SAME: tensor<64x16xf32> {onnx.initializer = "s", train.binding = #train.constant<"small.weight">}
// CHECK-SAME: tensor<16x512xf32> {onnx.initializer = "h", train.binding = #train.constant<"head.weight">}
// CHECK-SAME: %[[SCALE:[a-z0-9]+]]: tensor<64xf32> {onnx.initializer = "w", train.binding = #train.constant<"fc.weight.scale">, train.coded = {codec = "{{nf4|int8|fp8}}", coded_dims = array<i64: 64, 64>}}
// CHECK-SAME: %[[SCALES:[a-z0-9]+]]: tensor<128xf32> {onnx.initializer = "t", train.binding = #train.constant<"turned.weight.scale">, train.coded = {codec = "{{nf4|int8|fp8}}", coded_dims = array<i64: 128, 64>, coded_transposed}}

// FP8-DAG: nn.from_code e4m3 %[[CODES]] : tensor<64x64xui8> -> tensor<64x64xf32>
// NF4-DAG: nn.from_code nf4 %{{.*}} : tensor<64x32x2xui8> -> tensor<64x32x2xf32>
// INT8-DAG: nn.cast %[[CODES]] : tensor<64x64xi8> -> tensor<64x64xf32>
// CHECK-DAG: nn.broadcast %[[SCALE]] dims = [0] : tensor<64xf32> -> tensor<64x{{32x2|64}}xf32>
// NF4-DAG: %[[W:.*]] = nn.reshape %{{.*}} : tensor<64x32x2xf32> -> tensor<64x64xf32>
// CHECK-DAG: %[[T:.*]] = nn.transpose %{{.*}} [1, 0] : tensor<128x64xf32> -> tensor<64x128xf32>
// NF4: nn.dot %[[X]], %[[W]] {transpose_b}
// CHECK: nn.dot %{{.*}}, %[[T]] :

// CHECK-LABEL: func.func @eval
// NF4-SAME: tensor<128x32xui8> {{.*}}#train.constant<"turned.weight">
module attributes {train.adapters = [
    {a = "a", b = "b", input_dim = 0 : i64, kind = "linear", module = "turned", weight = "turned.weight"},
    {a = "c", b = "d", input_dim = 1 : i64, kind = "linear", module = "head", weight = "head.weight"}]} {
func.func @forward(%x: tensor<4x64xf32> {train.binding = #train.batch<"x">},
    %w: tensor<64x64xf32> {onnx.initializer = "w", train.binding = #train.constant<"fc.weight">},
    %turned: tensor<64x128xf32> {onnx.initializer = "t", onnx.transposed = array<i64: 1, 0>, train.binding = #train.constant<"turned.weight">},
    %read: tensor<128x128xf32> {onnx.initializer = "r", train.binding = #train.constant<"read.weight">},
    %trained: tensor<128x64xf32> {onnx.initializer = "p", train.binding = #train.param<"trained.weight">},
    %small: tensor<64x16xf32> {onnx.initializer = "s", train.binding = #train.constant<"small.weight">},
    %head: tensor<16x512xf32> {onnx.initializer = "h", train.binding = #train.constant<"head.weight">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %a = nn.dot %x, %w {transpose_b} : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  %b = nn.dot %a, %turned : (tensor<4x64xf32>, tensor<64x128xf32>) -> tensor<4x128xf32>
  %c = nn.dot %b, %read : (tensor<4x128xf32>, tensor<128x128xf32>) -> tensor<4x128xf32>
  %d = nn.dot %c, %trained : (tensor<4x128xf32>, tensor<128x64xf32>) -> tensor<4x64xf32>
  %e = nn.dot %d, %small : (tensor<4x64xf32>, tensor<64x16xf32>) -> tensor<4x16xf32>
  %f = nn.dot %e, %head : (tensor<4x16xf32>, tensor<16x512xf32>) -> tensor<4x512xf32>
  %loss = nn.reduce_sum %f dims = [0, 1] : tensor<4x512xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
// Here something else reads one of the matrices.
func.func @eval(%x: tensor<4x64xf32> {train.binding = #train.batch<"x">},
    %turned: tensor<64x128xf32> {onnx.initializer = "t", onnx.transposed = array<i64: 1, 0>, train.binding = #train.constant<"turned.weight">},
    %read: tensor<128x128xf32> {onnx.initializer = "r", train.binding = #train.constant<"read.weight">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %a = nn.dot %x, %turned : (tensor<4x64xf32>, tensor<64x128xf32>) -> tensor<4x128xf32>
  %b = nn.dot %a, %read : (tensor<4x128xf32>, tensor<128x128xf32>) -> tensor<4x128xf32>
  %c = nn.dot %b, %b {transpose_b} : (tensor<4x128xf32>, tensor<4x128xf32>) -> tensor<4x4xf32>
  %norm = nn.reduce_sum %read dims = [0, 1] : tensor<128x128xf32> -> tensor<f32>
  %sum = nn.reduce_sum %c dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  %loss = nn.add %sum, %norm : tensor<f32>
  return %loss : tensor<f32>
}
}
