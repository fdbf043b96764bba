// RUN: lowtide-opt %s | lowtide-opt | FileCheck %s

// CHECK-LABEL: func.func @unary
func.func @unary(%x: tensor<2x3xf32>, %i: tensor<4xi32>, %b: tensor<2xi1>, %u: tensor<2xui8>) {
  // CHECK: nn.abs %{{.*}} : tensor<2xui8>
  %0 = nn.abs %u : tensor<2xui8>
  // CHECK: nn.sign %{{.*}} : tensor<4xi32>
  %1 = nn.sign %i : tensor<4xi32>
  // CHECK: nn.gelu_tanh %{{.*}} : tensor<2x3xf32>
  %2 = nn.gelu_tanh %x : tensor<2x3xf32>
  // CHECK: nn.elu %{{.*}} : tensor<2x3xf32>
  %3 = nn.elu %x : tensor<2x3xf32>
  // CHECK: nn.elu %{{.*}} {alpha = 5.000000e-01 : f64} : tensor<2x3xf32>
  %4 = nn.elu %x {alpha = 0.5 : f64} : tensor<2x3xf32>
  // CHECK: nn.not %{{.*}} : tensor<2xi1>
  %5 = nn.not %b : tensor<2xi1>
  // CHECK: nn.is_nan %{{.*}} : tensor<2x3xf32> -> tensor<2x3xi1>
  %6 = nn.is_nan %x : tensor<2x3xf32> -> tensor<2x3xi1>
  return
}

// CHECK-LABEL: func.func @binary
func.func @binary(%x: tensor<2x3xf32>, %i: tensor<4xi32>) {
  // CHECK: nn.pow %{{.*}}, %{{.*}} : tensor<2x3xf32>
  %0 = nn.pow %x, %x : tensor<2x3xf32>
  // CHECK: nn.mod %{{.*}}, %{{.*}} : tensor<4xi32>
  %1 = nn.mod %i, %i : tensor<4xi32>
  // CHECK: nn.shift_left %{{.*}}, %{{.*}} : tensor<4xi32>
  %2 = nn.shift_left %i, %i : tensor<4xi32>
  // CHECK: nn.compare le %{{.*}}, %{{.*}} : tensor<2x3xf32> -> tensor<2x3xi1>
  %3 = nn.compare le %x, %x : tensor<2x3xf32> -> tensor<2x3xi1>
  return
}
