// RUN: lowtide-opt %s --train-inline-saved | FileCheck %s
// RUN: lowtide-opt %s --train-inline-saved=min-gap=100 | FileCheck %s --check-prefix=FAR

// The input of the activation is made of the normalized value, which the last kernel reads: the gradient of the
// activation makes it again, and the first kernel keeps it no longer.
// CHECK-LABEL: @activation
// CHECK: %[[Y:.*]] = nn.kernel "loop" {{.*}} -> tensor<8x4xf32>
// CHECK: nn.kernel "loop" (%[[DY:.*]] = %arg2, {{.*}} = %arg0, {{.*}} = %arg1) {{.*}} {
// CHECK-NEXT: %{{.*}} = nn.broadcast
// CHECK-NEXT: %[[N:.*]] = nn.mul
// CHECK-NEXT: %{{.*}} = nn.mul %[[DY]], %[[N]]
// FAR-LABEL: @activation
// FAR: %{{.*}}:2 = nn.kernel "loop" {{.*}} -> (tensor<8x4xf32>, tensor<8x4xf32>)
func.func @activation(%xhat: tensor<8x4xf32>, %w: tensor<4xf32>, %dy: tensor<8x4xf32>, %m: tensor<4x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %n:2 = nn.kernel "loop" (%a = %xhat, %b = %w) : (tensor<8x4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
    %0 = nn.broadcast %b dims = [1] : tensor<4xf32> -> tensor<8x4xf32>
    %1 = nn.mul %a, %0 : tensor<8x4xf32>
    %2 = nn.silu %1 : tensor<8x4xf32>
    nn.yield %1, %2 : tensor<8x4xf32>, tensor<8x4xf32>
  }
  %p = nn.dot %n#1, %m : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %q = nn.dot %p, %m : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %r = nn.dot %q, %m : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %g = nn.kernel "loop" (%a = %n#0, %b = %dy) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = nn.mul %b, %a : tensor<8x4xf32>
    nn.yield %0 : tensor<8x4xf32>
  }
  %h = nn.kernel "loop" (%a = %g, %b = %xhat, %c = %w) : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32> {
    %0 = nn.mul %a, %b : tensor<8x4xf32>
    %1 = nn.broadcast %c dims = [1] : tensor<4xf32> -> tensor<8x4xf32>
    %2 = nn.mul %0, %1 : tensor<8x4xf32>
    nn.yield %2 : tensor<8x4xf32>
  }
  return %r, %h : tensor<8x4xf32>, tensor<8x4xf32>
}
