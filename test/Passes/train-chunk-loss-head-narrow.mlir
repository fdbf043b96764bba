// Gradients of a matrix in 16 bits are added up in f32, tile by tile: with one tile in a round as with two, since bits do not
// depend on the number of rounds.
// RUN: lowtide-opt %s --nn-fuse-patterns=loss-head-always --train-differentiate --canonicalize --cse --train-chunk-loss-head=chunks=2 --canonicalize --cse | FileCheck %s --check-prefix=TWO
// RUN: lowtide-opt %s --nn-fuse-patterns=loss-head-always --train-differentiate --canonicalize --cse --train-chunk-loss-head=chunks=4 --canonicalize --cse | FileCheck %s --check-prefix=FOUR

// TWO-LABEL: func.func @gradient
// TWO: train.accumulate 2 slices
// TWO-COUNT-2: nn.dot {{.*}} {transpose_a} : (tensor<16x32xbf16>, tensor<16x8xbf16>) -> tensor<32x8xf32>
// TWO-NOT: -> tensor<32x8xbf16>
// TWO: train.next
// FOUR-LABEL: func.func @gradient
// FOUR: train.accumulate 4 slices
// FOUR-COUNT-1: nn.dot {{.*}} {transpose_a} : (tensor<16x32xbf16>, tensor<16x8xbf16>) -> tensor<32x8xf32>
// FOUR-NOT: -> tensor<32x8xbf16>
// FOUR: train.next
func.func @forward(%x: tensor<64x8xbf16> {train.binding = #train.batch<"x">},
    %t: tensor<64x32xf32> {train.binding = #train.batch<"t">},
    %w: tensor<32x8xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %narrow = nn.cast %w : tensor<32x8xf32> -> tensor<32x8xbf16>
  %p = nn.dot %x, %narrow {transpose_b} : (tensor<64x8xbf16>, tensor<32x8xbf16>) -> tensor<64x32xbf16>
  %wide = nn.cast %p : tensor<64x32xbf16> -> tensor<64x32xf32>
  %l = nn.log_softmax %wide dim = 1 : tensor<64x32xf32>
  %terms = nn.mul %t, %l : tensor<64x32xf32>
  %sum = nn.reduce_sum %terms dims = [0, 1] : tensor<64x32xf32> -> tensor<f32>
  %loss = nn.neg %sum : tensor<f32>
  return %loss : tensor<f32>
}
