// A loop for the rows of a second product reads what a first loop makes, and comes after all that this one reads within
// its body: the matrix in 16 bits.
// RUN: lowtide-opt %s --pass-pipeline="builtin.module(func.func(train-chunk-loss-head{chunks=2}))" | FileCheck %s

// CHECK-LABEL: func.func @train
// CHECK: [[NARROW:%.*]] = nn.cast %arg1 : tensor<64x32xf32> -> tensor<64x32xbf16>
// CHECK: train.accumulate
// CHECK: nn.linear_cross_entropy_grad {{%.*}}, [[NARROW]]
// CHECK: train.accumulate
// CHECK: nn.dot {{.*}} tensor<32x80xf32>
func.func @train(%x: tensor<96x32xf32>, %w: tensor<64x32xf32>, %labels: tensor<96xi64>, %dloss: tensor<96xf32>,
                 %m: tensor<32x80xf32>) -> (tensor<f32>, tensor<64x32xf32>, tensor<f32>) {
  %narrow = nn.cast %w : tensor<64x32xf32> -> tensor<64x32xbf16>
  %x16 = nn.cast %x : tensor<96x32xf32> -> tensor<96x32xbf16>
  %loss, %lse, %dx, %dw = nn.linear_cross_entropy_grad %x16, %narrow labels %labels dloss %dloss : (tensor<96x32xbf16>, tensor<64x32xbf16>, tensor<96xi64>, tensor<96xf32>) -> (tensor<96xf32>, tensor<96xf32>, tensor<96x32xbf16>, tensor<64x32xf32>)
  %sum = nn.reduce_sum %loss dims = [0] : tensor<96xf32> -> tensor<f32>
  %wide = nn.cast %dx : tensor<96x32xbf16> -> tensor<96x32xf32>
  %p = nn.dot %wide, %m : (tensor<96x32xf32>, tensor<32x80xf32>) -> tensor<96x80xf32>
  %q = nn.mul %p, %p : tensor<96x80xf32>
  %norm = nn.reduce_sum %q dims = [0, 1] : tensor<96x80xf32> -> tensor<f32>
  return %sum, %dw, %norm : tensor<f32>, tensor<64x32xf32>, tensor<f32>
}
