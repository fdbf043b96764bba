// Matrices that the file holds in 16 bits get no codes, and are not said to be trained.
// RUN: not lowtide-opt %s --train-encode-frozen=frozen-weights=nf4 2>&1 | FileCheck %s
// CHECK: error: --frozen-weights=nf4 has no effect: no frozen matrix can be coded
// CHECK-NEXT: note: the file does not hold it in f32; export the module as module.float(): fc.weight and 1 more

func.func @forward(%x: tensor<4x64xf16> {train.binding = #train.batch<"x">},
    %w: tensor<64x64xf16> {onnx.initializer = "w", train.binding = #train.constant<"fc.weight">},
    %h: tensor<64x64xf16> {onnx.initializer = "h", train.binding = #train.constant<"head.weight">})
    -> (tensor<f16> {train.binding = #train.metric<"loss">}) {
  %0 = nn.dot %x, %w : (tensor<4x64xf16>, tensor<64x64xf16>) -> tensor<4x64xf16>
  %1 = nn.dot %0, %h : (tensor<4x64xf16>, tensor<64x64xf16>) -> tensor<4x64xf16>
  %loss = nn.reduce_sum %1 dims = [0, 1] : tensor<4x64xf16> -> tensor<f16>
  return %loss : tensor<f16>
}
