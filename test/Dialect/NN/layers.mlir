// RUN: lowtide-opt %s | lowtide-opt | FileCheck %s

// CHECK-LABEL: func.func @layers
func.func @layers(%x: tensor<2x3xf32>, %c: tensor<3xf32>, %l: tensor<2xi64>, %im: tensor<1x3x8x8xf32>,
                  %w: tensor<4x3x3x3xf32>, %q: tensor<1x2x4x8xf32>, %q4: tensor<1x1x4x4xf32>, %s: tensor<i64>) {
  // CHECK: nn.softmax %{{.*}} dim = 1 : tensor<2x3xf32>
  %0 = nn.softmax %x dim = 1 : tensor<2x3xf32>
  // CHECK: nn.softmax_cross_entropy %{{.*}}, %{{.*}} weights %{{.*}} ignore_index = -100 : (tensor<2x3xf32>, tensor<2xi64>, tensor<3xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  %1:2 = nn.softmax_cross_entropy %x, %l weights %c ignore_index = -100 : (tensor<2x3xf32>, tensor<2xi64>, tensor<3xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  // CHECK: nn.softmax_cross_entropy %{{.*}}, %{{.*}} : (tensor<2x3xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>)
  %2:2 = nn.softmax_cross_entropy %x, %l : (tensor<2x3xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>)
  // CHECK: nn.conv %{{.*}}, %{{.*}} strides = [1, 1] pads = [1, 1], [1, 1] dilations = [1, 1] groups = 1
  %3 = nn.conv %im, %w strides = [1, 1] pads = [1, 1], [1, 1] dilations = [1, 1] groups = 1 : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x8x8xf32>
  // CHECK: nn.max_pool %{{.*}} kernel = [2, 2] strides = [2, 2] pads = [0, 0], [0, 0] dilations = [1, 1] : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
  %4 = nn.max_pool %3 kernel = [2, 2] strides = [2, 2] pads = [0, 0], [0, 0] dilations = [1, 1] : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale = 5.000000e-01 causal : (
  %5:2 = nn.attention %q, %q, %q scale = 0.5 causal : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  // CHECK: nn.attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} scale = 5.000000e-01 causal : (
  %8:3 = nn.attention_grad %q, %q, %q, %5#0, %5#1, %5#0 mask %q4 scale = 0.5 causal : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4xf32>, tensor<1x2x4x8xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>)
  // CHECK: nn.layer_norm %{{.*}}, %{{.*}}, %{{.*}} axis = 1 epsilon = 1.000000e-05 : (
  %6:3 = nn.layer_norm %x, %c, %c axis = 1 epsilon = 1.0e-5 : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  // CHECK: nn.random_uniform %{{.*}}, %{{.*}}, %{{.*}} op = 3 batch_dim = 0 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x3xf32>
  %7 = nn.random_uniform %s, %s, %s op = 3 batch_dim = 0 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x3xf32>
  return
}
