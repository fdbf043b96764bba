// RUN: lowtide-opt %s --split-input-file '--nn-segment-scans=min-bytes=256' --canonicalize --cse | FileCheck %s
// RUN: lowtide-opt %s --split-input-file --nn-segment-scans --canonicalize --cse | FileCheck %s --check-prefix=SMALL

// Sixteen steps become four segments of four. The products with the input are made segment by segment; the last step's
// row is the state that the loop carries on.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<16x2x3xf32> {{.*}}, %[[H:[a-z0-9]+]]: tensor<2x4xf32> {{.*}}, %[[W:[a-z0-9]+]]: tensor<4x3xf32> {{.*}}, %[[U:[a-z0-9]+]]: tensor<4x4xf32>
// CHECK: %[[LAST:.*]] = nn.scan 4 slices(%[[XS:.*]] = %[[X]]) carries(%[[HS:.*]] = %[[H]]) reads(%[[WS:.*]] = %[[W]], %[[US:.*]] = %[[U]])
// CHECK: %[[ROWS:.*]] = nn.reshape %[[XS]] : tensor<4x2x3xf32> -> tensor<8x3xf32>
// CHECK: %[[ALL:.*]] = nn.dot %[[ROWS]], %[[WS]] {transpose_b}
// CHECK: %[[STEPS:.*]] = nn.reshape %[[ALL]] : tensor<8x4xf32> -> tensor<4x2x4xf32>
// CHECK: %[[END:.*]] = nn.scan 4 slices(%{{.*}} = %[[STEPS]]) carries(%{{.*}} = %[[HS]]) reads(%{{.*}} = %[[US]])
// CHECK: nn.next carries(%[[END]] : tensor<2x4xf32>)
// CHECK: nn.reduce_sum %[[LAST]]
// Where the steps leave less than 1 MiB, nothing is cut.
// SMALL-COUNT-4: nn.scan {{16|23}}
// SMALL-NOT: nn.scan
func.func @forward(%x: tensor<16x2x3xf32> {train.binding = #train.batch<"x", dim = 1>},
    %h: tensor<2x4xf32> {train.binding = #train.param<"h">},
    %w: tensor<4x3xf32> {train.binding = #train.param<"w">}, %u: tensor<4x4xf32> {train.binding = #train.param<"u">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %rows = nn.reshape %x : tensor<16x2x3xf32> -> tensor<32x3xf32>
  %all = nn.dot %rows, %w {transpose_b} : (tensor<32x3xf32>, tensor<4x3xf32>) -> tensor<32x4xf32>
  %xs = nn.reshape %all : tensor<32x4xf32> -> tensor<16x2x4xf32>
  %last, %ys = nn.scan 16 slices(%part = %xs) carries(%state = %h) reads(%weight = %u)
      : (tensor<16x2x4xf32>, tensor<2x4xf32>, tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<16x2x4xf32>) {
    %step = nn.reshape %part : tensor<1x2x4xf32> -> tensor<2x4xf32>
    %p = nn.dot %state, %weight {transpose_b} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %sum = nn.add %step, %p : tensor<2x4xf32>
    %next = nn.tanh %sum : tensor<2x4xf32>
    %row = nn.reshape %next : tensor<2x4xf32> -> tensor<1x2x4xf32>
    nn.next carries(%next : tensor<2x4xf32>) rows(%row : tensor<1x2x4xf32>)
  }
  %turned = nn.transpose %ys [1, 0, 2] : tensor<16x2x4xf32> -> tensor<2x16x4xf32>
  %end = nn.slice %turned starts = [0, 15, 0] strides = [1, 1, 1] : tensor<2x16x4xf32> -> tensor<2x1x4xf32>
  %loss = nn.reduce_sum %end dims = [0, 1, 2] : tensor<2x1x4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Of 23 steps that are walked from the last on, the first three are left for a loop of their own; a slice that something
// else reads, too, is cut as it is.
// CHECK-LABEL: func.func @forward
// CHECK: %[[MAIN:.*]] = nn.slice %[[X:.*]] starts = [3, 0] strides = [1, 1] : tensor<23x8xf32> -> tensor<20x8xf32>
// CHECK: %[[FIRST:.*]]:2 = nn.scan 4 reversed slices(%[[PART:.*]] = %[[MAIN]]) carries
// CHECK: nn.scan 5 reversed slices(%{{.*}} = %[[PART]])
// CHECK: %[[REST:.*]] = nn.slice %[[X]] starts = [0, 0] strides = [1, 1] : tensor<23x8xf32> -> tensor<3x8xf32>
// CHECK: %[[SECOND:.*]]:2 = nn.scan 3 reversed slices(%{{.*}} = %[[REST]]) carries(%{{.*}} = %[[FIRST]]#0)
// CHECK: nn.concat %[[SECOND]]#1, %[[FIRST]]#1 dim = 0
func.func @forward(%x: tensor<23x8xf32> {train.binding = #train.batch<"x">},
    %w: tensor<8xf32> {train.binding = #train.param<"w">}) -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %zero = nn.constant dense<0.0> : tensor<8xf32>
  %twice = nn.add %x, %x : tensor<23x8xf32>
  %last, %ys = nn.scan 23 reversed slices(%part = %twice) carries(%state = %zero) reads(%weight = %w)
      : (tensor<23x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<23x8xf32>) {
    %step = nn.reshape %part : tensor<1x8xf32> -> tensor<8xf32>
    %kept = nn.mul %state, %weight : tensor<8xf32>
    %sum = nn.add %kept, %step : tensor<8xf32>
    %next = nn.sin %sum : tensor<8xf32>
    %row = nn.reshape %kept : tensor<8xf32> -> tensor<1x8xf32>
    nn.next carries(%next : tensor<8xf32>) rows(%row : tensor<1x8xf32>)
  }
  %both = nn.mul %ys, %twice : tensor<23x8xf32>
  %loss = nn.reduce_sum %both dims = [0, 1] : tensor<23x8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A loop that carries nothing has no steps that depend on each other.
// CHECK-LABEL: func.func @forward
// CHECK: nn.scan 16
// CHECK-NOT: nn.scan
func.func @forward(%x: tensor<16x64xf32> {train.binding = #train.batch<"x">},
    %w: tensor<64xf32> {train.binding = #train.param<"w">}) -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %ys = nn.scan 16 slices(%part = %x) reads(%weight = %w) : (tensor<16x64xf32>, tensor<64xf32>) -> tensor<16x64xf32> {
    %step = nn.reshape %part : tensor<1x64xf32> -> tensor<64xf32>
    %y = nn.mul %step, %weight : tensor<64xf32>
    %row = nn.reshape %y : tensor<64xf32> -> tensor<1x64xf32>
    nn.next rows(%row : tensor<1x64xf32>)
  }
  %loss = nn.reduce_sum %ys dims = [0, 1] : tensor<16x64xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// What repeats a smaller value is cut with it, also where two read it: the segments' slices are the smaller one.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<16x2xf32> {{.*}}, %[[Z:[a-z0-9]+]]: tensor<16x2x8xf32>
// CHECK: nn.scan 4 slices(%[[PART:.*]] = %[[X]], %{{.*}} = %[[Z]]) carries
// CHECK: nn.broadcast %[[PART]] dims = [0, 1] : tensor<4x2xf32> -> tensor<4x2x8xf32>
func.func @forward(%x: tensor<16x2xf32> {train.binding = #train.batch<"x", dim = 1>}, %z: tensor<16x2x8xf32> {train.binding = #train.batch<"z", dim = 1>}, %h: tensor<2x8xf32> {train.binding = #train.param<"h">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %wide = nn.broadcast %x dims = [0, 1] : tensor<16x2xf32> -> tensor<16x2x8xf32>
  %a = nn.mul %wide, %z : tensor<16x2x8xf32>
  %b = nn.sub %wide, %z : tensor<16x2x8xf32>
  %last = nn.scan 16 slices(%ap = %a, %bp = %b) carries(%state = %h)
      : (tensor<16x2x8xf32>, tensor<16x2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32> {
    %as = nn.reshape %ap : tensor<1x2x8xf32> -> tensor<2x8xf32>
    %bs = nn.reshape %bp : tensor<1x2x8xf32> -> tensor<2x8xf32>
    %kept = nn.mul %as, %state : tensor<2x8xf32>
    %next = nn.add %kept, %bs : tensor<2x8xf32>
    nn.next carries(%next : tensor<2x8xf32>)
  }
  %loss = nn.reduce_sum %last dims = [0, 1] : tensor<2x8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
