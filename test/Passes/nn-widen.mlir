// RUN: lowtide-opt %s --nn-widen --verify-step | FileCheck %s
// RUN: not lowtide-opt %s --nn-widen="from=f32 to=f16" 2>&1 | FileCheck %s --check-prefix=NARROW

// NARROW: error: cannot widen f32 to f16

// CHECK-LABEL: func.func @train
// CHECK-SAME: %[[W:.*]]: tensor<2xf64> {train.binding = #train.param<"w">}, %[[I:.*]]: tensor<2xi64> {train.binding = #train.batch<"i">}, %[[LR:.*]]: tensor<f64> {train.binding = #train.scalar<"lr">}
// CHECK-SAME: -> (tensor<f64> {train.binding = #train.metric<"loss">})
func.func @train(%w: tensor<2xf32> {train.binding = #train.param<"w">}, %i: tensor<2xi64> {train.binding = #train.batch<"i">},
                 %lr: tensor<f32> {train.binding = #train.scalar<"lr">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  // The constant keeps its f32 value.
  // CHECK: nn.constant dense<[0.10000000149011612, 2.500000e-01]> : tensor<2xf64>
  %c = nn.constant dense<[0.1, 0.25]> : tensor<2xf32>
  // The factor of a mean is the reciprocal of a whole number in the wider type, too; any other number is the f32.
  // CHECK: nn.constant dense<0.33333333333333331> : tensor<2xf64>
  %third = nn.constant dense<0.333333343> : tensor<2xf32>
  // CHECK: nn.constant dense<0.30000001192092896> : tensor<2xf64>
  %other = nn.constant dense<0.3> : tensor<2xf32>
  // CHECK: nn.cast %[[I]] : tensor<2xi64> -> tensor<2xf64>
  %f = nn.cast %i : tensor<2xi64> -> tensor<2xf32>
  // CHECK: nn.cast %{{.*}} : tensor<2xf64> -> tensor<2xf16>
  %h = nn.cast %f : tensor<2xf32> -> tensor<2xf16>
  %g = nn.cast %h : tensor<2xf16> -> tensor<2xf32>
  // CHECK: nn.mul %[[W]], %{{.*}} : tensor<2xf64>
  %y = nn.mul %w, %g : tensor<2xf32>
  // CHECK: nn.reduce_sum %{{.*}} : tensor<2xf64> -> tensor<f64>
  %third_y = nn.mul %y, %third : tensor<2xf32>
  %other_y = nn.mul %third_y, %other : tensor<2xf32>
  %loss = nn.reduce_sum %other_y dims = [0] : tensor<2xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
