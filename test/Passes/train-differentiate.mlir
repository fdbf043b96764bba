// RUN: lowtide-opt %s --train-differentiate --split-input-file | FileCheck %s

// A parameter used twice, a frozen tensor, an integer operand and an output that the loss does not need.

// CHECK-LABEL: func.func @gradient(
// CHECK-SAME:    %[[X:.*]]: tensor<8x4xf32> {train.binding = #train.batch<"x">},
// CHECK-SAME:    %[[W:.*]]: tensor<4x3xf32> {train.binding = #train.param<"w">},
// CHECK-SAME:    %[[C:.*]]: tensor<8x3xf32> {train.binding = #train.constant<"c">})
// CHECK-SAME:    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<8x3xf32> {train.binding = #train.output<"h">}, tensor<4x3xf32> {train.binding = #train.gradient<"w">})
func.func @forward(%x: tensor<8x4xf32> {train.binding = #train.batch<"x">},
                   %w: tensor<4x3xf32> {train.binding = #train.param<"w">},
                   %c: tensor<8x3xf32> {train.binding = #train.constant<"c">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<8x3xf32> {train.binding = #train.output<"h">}) {
  // CHECK: %[[H:.*]] = nn.dot %[[X]], %[[W]]
  %h = nn.dot %x, %w : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
  %t = nn.tanh %h : tensor<8x3xf32>
  %unneeded = nn.exp %t : tensor<8x3xf32>
  // CHECK: %[[M:.*]] = nn.mul %[[T:.*]], %[[C]]
  %m = nn.mul %t, %c : tensor<8x3xf32>
  // CHECK: %[[LOSS:.*]] = nn.reduce_sum %[[M]]
  %loss = nn.reduce_sum %m dims = [0, 1] : tensor<8x3xf32> -> tensor<f32>
  // CHECK: %[[ONE:.*]] = nn.constant dense<1.000000e+00> : tensor<f32>
  // CHECK: %[[DM:.*]] = nn.broadcast %[[ONE]]
  // CHECK: %[[DT:.*]] = nn.mul %[[DM]], %[[C]]
  // CHECK-NOT: nn.mul %[[DM]], %[[T]]
  // CHECK: %[[DH:.*]] = nn.mul %[[DT]]
  // CHECK: %[[DW:.*]] = nn.dot %[[X]], %[[DH]] {transpose_a}
  // CHECK: return %[[LOSS]], %[[H]], %[[DW]]
  return %loss, %h : tensor<f32>, tensor<8x3xf32>
}

// -----

// Fan-in: contributions are added in reverse program order as they arrive; x * x gives two.

// CHECK-LABEL: func.func @gradient
func.func @forward(%w: tensor<4xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  // CHECK: %[[E:.*]] = nn.exp %[[W:.*]] :
  // CHECK: nn.add
  %e = nn.exp %w : tensor<4xf32>
  %s = nn.mul %w, %w : tensor<4xf32>
  %y = nn.add %e, %s : tensor<4xf32>
  %loss = nn.reduce_sum %y dims = [0] : tensor<4xf32> -> tensor<f32>
  // CHECK: %[[DY:.*]] = nn.broadcast
  // CHECK: %[[A:.*]] = nn.mul %[[DY]], %[[W]]
  // CHECK: %[[B:.*]] = nn.mul %[[DY]], %[[W]]
  // CHECK: %[[AB:.*]] = nn.add %[[A]], %[[B]]
  // CHECK: %[[D:.*]] = nn.mul %[[DY]], %[[E]]
  // CHECK: %[[DW:.*]] = nn.add %[[AB]], %[[D]]
  // CHECK: return %{{.*}}, %[[DW]]
  return %loss : tensor<f32>
}

// -----

// Nothing flows through integers; f16 parts of the graph have f16 cotangents.

// CHECK-LABEL: func.func @gradient
func.func @forward(%w: tensor<4xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %i = nn.cast %w : tensor<4xf32> -> tensor<4xi32>
  %f = nn.cast %i : tensor<4xi32> -> tensor<4xf32>
  %h = nn.cast %w : tensor<4xf32> -> tensor<4xf16>
  %hh = nn.exp %h : tensor<4xf16>
  %b = nn.cast %hh : tensor<4xf16> -> tensor<4xf32>
  // CHECK: nn.mul %{{.*}}, %[[F:.*]] : tensor<4xf32>
  %y = nn.mul %b, %f : tensor<4xf32>
  %loss = nn.reduce_sum %y dims = [0] : tensor<4xf32> -> tensor<f32>
  // CHECK: %[[DB:.*]] = nn.mul %{{.*}}, %{{.*}} : tensor<4xf32>
  // CHECK: %[[DHH:.*]] = nn.cast %[[DB]] : tensor<4xf32> -> tensor<4xf16>
  // CHECK: %[[DH:.*]] = nn.mul %[[DHH]], %{{.*}} : tensor<4xf16>
  // CHECK: %[[DW:.*]] = nn.cast %[[DH]] : tensor<4xf16> -> tensor<4xf32>
  // CHECK-NEXT: return %{{.*}}, %[[DW]]
  return %loss : tensor<f32>
}

// -----

// What is added at places: its cotangent is read there, and that of what it is added to is the sum's.

// CHECK-LABEL: func.func @gradient
// CHECK-SAME: %[[I:[^:]*]]: tensor<3xi64>
func.func @forward(%i: tensor<3xi64> {train.binding = #train.batch<"i">},
                   %x: tensor<5x2xf32> {train.binding = #train.param<"x">},
                   %u: tensor<3x2xf32> {train.binding = #train.param<"u">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  // CHECK: %[[Y:.*]] = nn.scatter add
  // CHECK: %[[DY:.*]] = nn.mul
  // CHECK: %[[DU:.*]] = nn.gather %[[DY]][%[[I]]] axis = 0
  // CHECK: return %{{.*}}, %[[DY]], %[[DU]]
  %y = nn.scatter add %u into %x[%i] axis = 0 : (tensor<5x2xf32>, tensor<3xi64>, tensor<3x2xf32>) -> tensor<5x2xf32>
  %e = nn.exp %y : tensor<5x2xf32>
  %loss = nn.reduce_sum %e dims = [0, 1] : tensor<5x2xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
