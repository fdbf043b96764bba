// RUN: lowtide-opt %s --train-autocast="precision=mixed-f16" | FileCheck %s

// The loss keeps f32, and so does its cotangent, which must have its type; x and weight are rounded, and what flows back to
// x has the type of x.
// CHECK-LABEL: func.func @gradient
// CHECK: nn.linear_cross_entropy_grad {{.*}} : (tensor<64x8xf16>, tensor<32x8xf16>, tensor<64xi64>, tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64x8xf16>, tensor<32x8xf32>)
func.func @gradient(%x: tensor<64x8xf32> {train.binding = #train.batch<"x">},
    %y: tensor<64xi64> {train.binding = #train.batch<"y">},
    %w: tensor<32x8xf32> {train.binding = #train.param<"w">})
    -> (tensor<64xf32> {train.binding = #train.output<"losses">}, tensor<64x8xf32> {train.binding = #train.gradient<"x">},
        tensor<32x8xf32> {train.binding = #train.gradient<"w">}) {
  %seed = nn.constant dense<0.015625> : tensor<64xf32>
  %h = nn.tanh %x : tensor<64x8xf32>
  %loss, %lse, %dx, %dw = nn.linear_cross_entropy_grad %h, %w labels %y dloss %seed ignore_index = -100 : (tensor<64x8xf32>, tensor<32x8xf32>, tensor<64xi64>, tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64x8xf32>, tensor<32x8xf32>)
  return %loss, %dx, %dw : tensor<64xf32>, tensor<64x8xf32>, tensor<32x8xf32>
}
