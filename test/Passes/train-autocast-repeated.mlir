// Of a value that is repeated, and read after the loss, what is repeated is kept: 32 elements in f32, then in 16 bits.
// RUN: lowtide-opt %s --train-autocast=precision=mixed-bf16 2>&1 | FileCheck %s

// CHECK: remark: @gradient in mixed-bf16: {{.*}} saved activations 128 bytes → 64 bytes
func.func @gradient(%x: tensor<4x8xf32> {train.binding = #train.batch<"x">},
                    %w: tensor<8x8xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<8x8xf32> {train.binding = #train.gradient<"w">}) {
  %y = nn.dot %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %e = nn.add %y, %y : tensor<4x8xf32>
  %b = nn.broadcast %e dims = [0, 1] : tensor<4x8xf32> -> tensor<4x8x16xf32>
  %s = nn.sin %b : tensor<4x8x16xf32>
  %loss = nn.reduce_sum %s dims = [0, 1, 2] : tensor<4x8x16xf32> -> tensor<f32>
  %c = nn.cos %b : tensor<4x8x16xf32>
  %g = nn.reduce_sum %c dims = [2] : tensor<4x8x16xf32> -> tensor<4x8xf32>
  %dw = nn.dot %x, %g {transpose_a} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %loss, %dw : tensor<f32>, tensor<8x8xf32>
}
