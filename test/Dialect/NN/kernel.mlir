// RUN: lowtide-opt %s | lowtide-opt | FileCheck %s

// CHECK-LABEL: func.func @two_results
// CHECK: nn.kernel loop (%{{.*}} = %arg0, %{{.*}} = %arg1) : (tensor<8x4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<f32>) {
// CHECK: nn.yield %{{.*}}, %{{.*}} : tensor<8x4xf32>, tensor<f32>
func.func @two_results(%x: tensor<8x4xf32>, %w: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<f32>) {
  %r:2 = nn.kernel loop (%a = %x, %b = %w) : (tensor<8x4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<f32>) {
    %w2 = nn.broadcast %b dims = [1] : tensor<4xf32> -> tensor<8x4xf32>
    %u = nn.add %a, %w2 : tensor<8x4xf32>
    %v = nn.reduce_sum %u dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
    nn.yield %u, %v : tensor<8x4xf32>, tensor<f32>
  }
  return %r#0, %r#1 : tensor<8x4xf32>, tensor<f32>
}

// CHECK-LABEL: func.func @no_operand
// CHECK: nn.kernel single () attributes {note = 1 : i64} : () -> tensor<2xf32> {
func.func @no_operand() -> tensor<2xf32> {
  %r = nn.kernel single () attributes {note = 1 : i64} : () -> tensor<2xf32> {
    %c = nn.constant dense<1.0> : tensor<2xf32>
    nn.yield %c : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}
