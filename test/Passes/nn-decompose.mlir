// RUN: lowtide-opt %s --pass-pipeline='builtin.module(func.func(nn-decompose))' | FileCheck %s

// Compound ops become what emitters read; what a library computes stays.
// CHECK-LABEL: @norm
// CHECK-NOT: nn.layer_norm
// CHECK: nn.reduce_sum
// CHECK: nn.rsqrt
// CHECK: nn.dot
// CHECK: return
func.func @norm(%x: tensor<3x4xf32>, %w: tensor<4xf32>, %b: tensor<4xf32>, %m: tensor<4x5xf32>) -> tensor<3x5xf32> {
  %y, %mean, %rstd = nn.layer_norm %x, %w, %b axis = 1 epsilon = 1.0e-5
      : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3xf32>, tensor<3xf32>)
  %z = nn.dot %y, %m : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  return %z : tensor<3x5xf32>
}

// An update: scalars in f64, rounded once; the tensor in its own type.
// CHECK-LABEL: @update
// CHECK-SAME: %[[W:.*]]: tensor<4xf32>, %[[G:.*]]: tensor<4xf32>, %[[LR:.*]]: tensor<f32>
// CHECK: nn.cast %[[LR]] : tensor<f32> -> tensor<f64>
// CHECK: %[[DECAY:.*]] = nn.mul %[[W]], %{{.*}} : tensor<4xf32>
// CHECK: %[[L2:.*]] = nn.add %[[G]], %[[DECAY]] : tensor<4xf32>
// CHECK: %[[RATE:.*]] = nn.cast %{{.*}} : tensor<f64> -> tensor<f32>
// CHECK: %[[SPREAD:.*]] = nn.broadcast %[[RATE]] dims = [] : tensor<f32> -> tensor<4xf32>
// CHECK: %[[STEP:.*]] = nn.mul %[[L2]], %[[SPREAD]]
// CHECK: %[[NEW:.*]] = nn.sub %[[W]], %[[STEP]]
// CHECK: return %[[NEW]]
func.func @update(%w: tensor<4xf32>, %g: tensor<4xf32>, %lr: tensor<f32>, %step: tensor<i64>) -> tensor<4xf32> {
  %n = train.sgd %w gradient %g lr %lr step %step {lr_scale = 0.5, weight_decay = 0.01} : tensor<4xf32>, tensor<f32>, tensor<i64>
  return %n : tensor<4xf32>
}

// Logits of 16-bit operands have 16 bits; what is picked of them is picked of those. With a bias they are f32 sums.
// CHECK-LABEL: @narrow_head
// CHECK: %[[P:.*]] = nn.dot %arg0, %arg1 {transpose_b} : (tensor<4x8xbf16>, tensor<6x8xbf16>) -> tensor<4x6xbf16>
// CHECK: nn.reduce_max %{{.*}} -> tensor<4xf32>
// CHECK: nn.gather_elements %[[P]]
func.func @narrow_head(%x: tensor<4x8xbf16>, %w: tensor<6x8xbf16>, %l: tensor<4xi64>) -> tensor<4xf32> {
  %loss, %lse = nn.linear_cross_entropy %x, %w labels %l : (tensor<4x8xbf16>, tensor<6x8xbf16>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>)
  return %loss : tensor<4xf32>
}

// CHECK-LABEL: @narrow_head_with_bias
// CHECK: nn.dot %arg0, %arg1 {transpose_b} : (tensor<4x8xbf16>, tensor<6x8xbf16>) -> tensor<4x6xf32>
func.func @narrow_head_with_bias(%x: tensor<4x8xbf16>, %w: tensor<6x8xbf16>, %b: tensor<6xbf16>, %l: tensor<4xi64>) -> tensor<4xf32> {
  %loss, %lse = nn.linear_cross_entropy %x, %w bias %b labels %l : (tensor<4x8xbf16>, tensor<6x8xbf16>, tensor<6xbf16>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>)
  return %loss : tensor<4xf32>
}
