// What train-autocast says of a step: how much is kept in 16 bits, and which ops compute in which precision, in the order
// of the policies; after them the layers that were told otherwise.
// RUN: lowtide-opt %s --train-autocast=precision=mixed-bf16 2>&1 | FileCheck %s
// RUN: lowtide-opt %s --train-autocast="precision=mixed-bf16 precision-override=shift=bf16;head=f32" --cse 2>%t.said | FileCheck %s --check-prefix=TOLD
// RUN: FileCheck %s --check-prefix=TOLD-TABLE < %t.said
// RUN: lowtide-opt %s --train-autocast="precision=mixed-f16 precision-override=shift=f16" 2>&1 | FileCheck %s --check-prefix=F16

// CHECK: remark: @gradient in mixed-bf16: {{[0-9]+}} values rounded, {{[0-9]+}} recomputed after the loss, saved activations {{[0-9]+}} bytes → {{[0-9]+}} bytes
// CHECK: note: 16-bit operands, sums in f32: nn.dot ×3
// CHECK-NEXT: note: f32: sums, norms, losses, functions: nn.exp ×1, nn.reduce_sum ×1
// CHECK-NEXT: note: as its operands are kept; arithmetic in f32: nn.add ×1
// CHECK-NOT: as told

// TOLD-TABLE: remark: @gradient in mixed-bf16:
// TOLD-TABLE: note: 16-bit operands, sums in f32: nn.dot ×2
// TOLD-TABLE-NEXT: note: f32: sums, norms, losses, functions: nn.reduce_sum ×1
// TOLD-TABLE-NEXT: note: as its operands are kept; arithmetic in f32: nn.add ×1
// TOLD-TABLE-NEXT: note: f32, as told: nn.dot ×1
// TOLD-TABLE-NEXT: note: 16 bits, as told: nn.exp ×1

// F16: note: 16 bits, as told: nn.exp ×1

// The sum reads the exponential as it is kept in 16 bits; the head is f32.
// TOLD-LABEL: func.func @gradient
// TOLD-SAME: %[[W:[^:]*]]: tensor<8x8xf32> {train.binding = #train.param<"w">}
// TOLD: %[[E:.*]] = nn.exp
// TOLD: %[[EL:.*]] = nn.cast %[[E]] : tensor<4x8xf32> -> tensor<4x8xbf16>
// TOLD: %[[EW:.*]] = nn.cast %[[EL]] : tensor<4x8xbf16> -> tensor<4x8xf32>
// TOLD: %[[A:.*]] = nn.add %[[EW]],
// TOLD: nn.dot %[[A]], %[[W]] : (tensor<4x8xf32>, tensor<8x8xf32>)
func.func @gradient(%x: tensor<4x8xf32> {train.binding = #train.batch<"x">},
                    %w: tensor<8x8xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<8x8xf32> {train.binding = #train.gradient<"w">}) {
  %y = nn.dot %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %e = nn.exp %y : tensor<4x8xf32> loc("shift")
  %a = nn.add %e, %y : tensor<4x8xf32>
  %z = nn.dot %a, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("head")
  %loss = nn.reduce_sum %z dims = [0, 1] : tensor<4x8xf32> -> tensor<f32>
  %dw = nn.dot %x, %e {transpose_a} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %loss, %dw : tensor<f32>, tensor<8x8xf32>
}
