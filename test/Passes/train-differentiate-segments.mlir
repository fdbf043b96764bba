// RUN: lowtide-opt %s '--nn-segment-scans=min-bytes=256' --train-differentiate --canonicalize --cse | FileCheck %s
// RUN: lowtide-opt %s --train-differentiate --canonicalize --cse | FileCheck %s --check-prefix=WHOLE

// The way back through a segment multiplies the states before all of its steps with the weights at once: its inner loop
// has the cotangents' product alone. A loop over the whole sequence multiplies step by step.
// CHECK: nn.scan 4 reversed
// CHECK:   %[[STATES:.*]] = nn.reshape %{{.*}} : tensor<4x2x4xf32> -> tensor<8x4xf32>
// CHECK:   %[[ALL:.*]] = nn.dot %[[STATES]], %{{.*}} {transpose_b} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
// CHECK:   %[[STEPS:.*]] = nn.reshape %[[ALL]] : tensor<8x4xf32> -> tensor<4x2x4xf32>
// CHECK:   nn.scan 4 reversed slices({{.*}} = %[[STEPS]])
// CHECK-NOT: {transpose_b}
// CHECK:     nn.dot %{{.*}}, %{{.*}} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
// CHECK-NOT: nn.dot
// CHECK:     nn.next
// WHOLE: nn.scan 16 reversed
// WHOLE:   nn.dot %{{.*}}, %{{.*}} {transpose_b} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
// WHOLE:   nn.dot %{{.*}}, %{{.*}} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
// WHOLE:   nn.next
func.func @forward(%x: tensor<16x2x4xf32> {train.binding = #train.batch<"x", dim = 1>},
    %h: tensor<2x4xf32> {train.binding = #train.param<"h">}, %u: tensor<4x4xf32> {train.binding = #train.param<"u">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %last, %ys = nn.scan 16 slices(%part = %x) carries(%state = %h) reads(%weight = %u)
      : (tensor<16x2x4xf32>, tensor<2x4xf32>, tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<16x2x4xf32>) {
    %step = nn.reshape %part : tensor<1x2x4xf32> -> tensor<2x4xf32>
    %p = nn.dot %state, %weight {transpose_b} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %sum = nn.add %step, %p : tensor<2x4xf32>
    %next = nn.sin %sum : tensor<2x4xf32>
    %row = nn.reshape %next : tensor<2x4xf32> -> tensor<1x2x4xf32>
    nn.next carries(%next : tensor<2x4xf32>) rows(%row : tensor<1x2x4xf32>)
  }
  %loss = nn.reduce_sum %ys dims = [0, 1, 2] : tensor<16x2x4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
