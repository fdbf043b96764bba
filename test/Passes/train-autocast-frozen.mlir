// Frozen weights that every step only reads rounded are bound in 16 bits: directly, or through a movement. What is also
// read in f32, and what one of the steps reads in f32, keeps its type. Where parameters stay f32, the f32 numbers are kept.
// RUN: lowtide-opt %s --train-autocast=precision=bf16 | FileCheck %s --check-prefixes=CHECK,PURE
// RUN: lowtide-opt %s --train-autocast="precision=mixed-bf16 frozen-weights=bf16" | FileCheck %s --check-prefixes=CHECK,MIXED
// RUN: lowtide-opt %s --train-autocast=precision=mixed-bf16 | FileCheck %s --check-prefixes=CHECK,MIXED
// RUN: lowtide-opt %s --train-autocast="precision=mixed-bf16 frozen-weights=f32" | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: lowtide-opt %s --train-autocast="precision=bf16 frozen-weights=f32" | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: not lowtide-opt %s --train-autocast="precision=mixed-bf16 frozen-weights=f16" 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: lowtide-opt %s --train-autocast=precision=mixed-bf16 --cse | FileCheck %s --check-prefix=SAME

// ERROR: error: frozen-weights: 'f16' is neither f32 nor bf16, in which a step of precision mixed-bf16 reads weights

// CHECK-LABEL: func.func @gradient
// PURE-SAME: tensor<8x8xbf16> {train.binding = #train.constant<"w">}
// MIXED-SAME: tensor<8x8xbf16> {train.binding = #train.constant<"w">, train.coded = {keeps_original}}
// WIDE-SAME: tensor<8x8xf32> {train.binding = #train.constant<"w">}
// PURE-SAME: tensor<64xbf16> {train.binding = #train.constant<"flat">}
// MIXED-SAME: tensor<64xbf16> {train.binding = #train.constant<"flat">, train.coded = {keeps_original}}
// WIDE-SAME: tensor<64xf32> {train.binding = #train.constant<"flat">}
// CHECK-SAME: tensor<8xf32> {train.binding = #train.constant<"bias">}
// CHECK-SAME: tensor<8x8xf32> {train.binding = #train.constant<"twice">}
// CHECK-SAME: tensor<8x8xf32> {train.binding = #train.constant<"elsewhere">}
// SAME-LABEL: func.func @gradient
// SAME: %[[X:.*]] = nn.cast %arg0 : tensor<4x8xf32> -> tensor<4x8xbf16>
// SAME: nn.dot %[[X]], %arg1 : (tensor<4x8xbf16>, tensor<8x8xbf16>)
func.func @gradient(%x: tensor<4x8xf32> {train.binding = #train.batch<"x">},
                    %w: tensor<8x8xf32> {train.binding = #train.constant<"w">},
                    %flat: tensor<64xf32> {train.binding = #train.constant<"flat">},
                    %bias: tensor<8xf32> {train.binding = #train.constant<"bias">},
                    %twice: tensor<8x8xf32> {train.binding = #train.constant<"twice">},
                    %elsewhere: tensor<8x8xf32> {train.binding = #train.constant<"elsewhere">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %a = nn.dot %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %square = nn.reshape %flat : tensor<64xf32> -> tensor<8x8xf32>
  %b = nn.dot %a, %square : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %rows = nn.broadcast %bias dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
  %c = nn.add %b, %rows : tensor<4x8xf32>
  %d = nn.dot %c, %twice : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %e = nn.dot %d, %elsewhere : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %exp = nn.exp %twice : tensor<8x8xf32>
  %f = nn.dot %e, %exp : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %loss = nn.reduce_sum %f dims = [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
func.func @eval(%x: tensor<4x8xf32> {train.binding = #train.batch<"x">},
                %w: tensor<8x8xf32> {train.binding = #train.constant<"w">},
                %elsewhere: tensor<8x8xf32> {train.binding = #train.constant<"elsewhere">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %a = nn.dot %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %exp = nn.exp %elsewhere : tensor<8x8xf32>
  %b = nn.dot %a, %exp : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %loss = nn.reduce_sum %b dims = [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
