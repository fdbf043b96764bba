// RUN: lowtide-opt %s --train-autocast=precision=mixed-bf16 --cse | FileCheck %s
// RUN: lowtide-opt %s --train-autocast=precision=f16 --cse | FileCheck %s --check-prefix=PURE
// RUN: lowtide-opt %s --train-autocast="precision=mixed-bf16 precision-override=*.ln1,second=f32" --cse | FileCheck %s --check-prefix=TOLD
// RUN: not lowtide-opt %s --train-autocast="precision=mixed-bf16 precision-override=nobody=f32" 2>&1 | FileCheck %s --check-prefix=NOBODY
// RUN: not lowtide-opt %s --train-autocast="precision=mixed-bf16 precision-override=*.ln1=f16" 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: not lowtide-opt %s --train-autocast="precision=f8" 2>&1 | FileCheck %s --check-prefix=TYPE

// NOBODY: error: precision-override: pattern 'nobody' matches nothing among the layers
// WRONG: error: precision-override: '*.ln1=f16' is not of the form PATTERN,PATTERN=TYPE with TYPE f32 or bf16
// TYPE: error: precision: 'f8' is none of f32, mixed-bf16, mixed-f16, bf16, f16, f64

// The weight is cast once, for both passes; both read the activation in 16 bits; the gradient is the product's f32 sum.
// CHECK-LABEL: func.func @linear
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x8xf32>
// CHECK-SAME: %[[W:[^:]*]]: tensor<8x8xf32> {train.binding = #train.param<"w">}
// CHECK-DAG: %[[WL:.*]] = nn.cast %[[W]] : tensor<8x8xf32> -> tensor<8x8xbf16>
// CHECK-DAG: %[[XL:.*]] = nn.cast %[[X]] : tensor<4x8xf32> -> tensor<4x8xbf16>
// CHECK: %[[Y:.*]] = nn.dot %[[XL]], %[[WL]] : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
// CHECK: %[[YW:.*]] = nn.cast %[[Y]] : tensor<4x8xbf16> -> tensor<4x8xf32>
// CHECK: %[[H:.*]] = nn.relu %[[YW]] : tensor<4x8xf32>
// CHECK: %[[HL:.*]] = nn.cast %[[H]] : tensor<4x8xf32> -> tensor<4x8xbf16>
// CHECK: %[[HW:.*]] = nn.cast %[[HL]] : tensor<4x8xbf16> -> tensor<4x8xf32>
// CHECK: nn.dot %[[HL]], %[[WL]] : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xf32>
// CHECK: nn.compare gt %[[HW]]
// CHECK: %[[G:.*]] = nn.dot %[[HL]], %{{.*}} {transpose_a} : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<8x8xf32>
// CHECK: return %{{.*}}, %[[G]] : tensor<f32>, tensor<8x8xf32>

// The parameter itself has 16 bits; its gradient does not.
// PURE-LABEL: func.func @linear
// PURE-SAME: tensor<8x8xf16> {train.binding = #train.param<"w">}
// PURE-SAME: tensor<8x8xf32> {train.binding = #train.gradient<"w">}
func.func @linear(%x: tensor<4x8xf32> {train.binding = #train.batch<"x">},
                  %w: tensor<8x8xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<8x8xf32> {train.binding = #train.gradient<"w">}) {
  %y = nn.dot %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %h = nn.relu %y : tensor<4x8xf32>
  %z = nn.dot %h, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %loss = nn.reduce_sum %z dims = [0, 1] : tensor<4x8xf32> -> tensor<f32>
  %dz = nn.constant dense<0.5> : tensor<4x8xf32>
  %zero = nn.constant dense<0.0> : tensor<4x8xf32>
  %active = nn.compare gt %h, %zero : tensor<4x8xf32> -> tensor<4x8xi1>
  %dh = nn.select %active, %dz, %zero : tensor<4x8xi1>, tensor<4x8xf32>
  %dw = nn.dot %h, %dh {transpose_a} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %loss, %dw : tensor<f32>, tensor<8x8xf32>
}

// A residual stream of f32 data stays f32, for the backward pass too; so do statistics.
// CHECK-LABEL: func.func @residual
// CHECK-NOT: bf16
// CHECK: return

// As told: the layer is f32, whatever its parts.
// TOLD-LABEL: func.func @residual
// TOLD-NOT: bf16
// TOLD: return
func.func @residual(%x: tensor<4x8xf32> {train.binding = #train.batch<"x">},
                    %y: tensor<4x8xf32> {train.binding = #train.batch<"y">},
                    %s: tensor<8xf32> {train.binding = #train.param<"h.0.ln1.weight">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<8xf32> {train.binding = #train.gradient<"h.0.ln1.weight">}) {
  %r = nn.add %x, %y : tensor<4x8xf32> loc("h.0.ln1")
  %n, %mean, %rstd = nn.layer_norm %r, %s, %s axis = 1 epsilon = 1.0e-5
      : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) loc("/h.0/ln1/LayerNormalization")
  %loss = nn.reduce_sum %n dims = [0, 1] : tensor<4x8xf32> -> tensor<f32> loc("second")
  %m = nn.broadcast %mean dims = [0] : tensor<4xf32> -> tensor<4x8xf32>
  %c = nn.sub %r, %m : tensor<4x8xf32> loc("second")
  %g = nn.reduce_sum %c dims = [0] : tensor<4x8xf32> -> tensor<8xf32>
  return %loss, %g : tensor<f32>, tensor<8xf32>
}

// What the model itself computes in 16 bits stays as it is written.
// CHECK-LABEL: func.func @written_narrow
// CHECK: %[[T:.*]] = nn.tanh %{{.*}} : tensor<4x8xbf16>
// CHECK: nn.dot %[[T]], %{{.*}} : (tensor<4x8xbf16>, tensor<8x2xbf16>)
func.func @written_narrow(%x: tensor<4x8xbf16>, %w: tensor<8x2xf32> {train.binding = #train.param<"w">}) -> tensor<4x2xf32> {
  %t = nn.tanh %x : tensor<4x8xbf16>
  %f = nn.cast %t : tensor<4x8xbf16> -> tensor<4x8xf32>
  %y = nn.dot %f, %w : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// A loss head and its derivative: products of rounded operands, the cotangent of x as x is kept, all sums f32.
// CHECK-LABEL: func.func @head
// CHECK: nn.linear_cross_entropy_grad {{.*}} : (tensor<8x4xbf16>, tensor<9x4xbf16>, tensor<8xi64>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8x4xbf16>, tensor<9x4xf32>)
func.func @head(%x: tensor<8x4xf32>, %w: tensor<9x4xf32> {train.binding = #train.param<"w">}, %y: tensor<8xi64>,
                %d: tensor<8xf32>) -> (tensor<8xf32>, tensor<8x4xf32>, tensor<9x4xf32>) {
  %loss, %lse, %dx, %dw = nn.linear_cross_entropy_grad %x, %w labels %y dloss %d : (tensor<8x4xf32>, tensor<9x4xf32>, tensor<8xi64>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8x4xf32>, tensor<9x4xf32>)
  return %loss, %dx, %dw : tensor<8xf32>, tensor<8x4xf32>, tensor<9x4xf32>
}

// Data that the backward pass reads through a view are cast once more there: nothing of them is kept.
// CHECK-LABEL: func.func @viewed_data
// CHECK: nn.tanh
// CHECK: %[[AGAIN:.*]] = nn.cast %arg0 {train.again} : tensor<2x3x8xf32> -> tensor<2x3x8xbf16>
// CHECK: %[[VIEW:.*]] = nn.reshape %[[AGAIN]] : tensor<2x3x8xbf16> -> tensor<6x8xbf16>
// CHECK: nn.dot %[[VIEW]], %{{.*}} {transpose_a}
func.func @viewed_data(%x: tensor<2x3x8xf32> {train.binding = #train.batch<"x">},
                       %w: tensor<8x4xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<8x4xf32> {train.binding = #train.gradient<"w">}) {
  %rows = nn.reshape %x : tensor<2x3x8xf32> -> tensor<6x8xf32>
  %y = nn.dot %rows, %w : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  %h = nn.tanh %y : tensor<6x4xf32>
  %loss = nn.reduce_sum %h dims = [0, 1] : tensor<6x4xf32> -> tensor<f32>
  %one = nn.constant dense<1.0> : tensor<6x4xf32>
  %square = nn.mul %h, %h : tensor<6x4xf32>
  %dy = nn.sub %one, %square : tensor<6x4xf32>
  %dw = nn.dot %rows, %dy {transpose_a} : (tensor<6x8xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  return %loss, %dw : tensor<f32>, tensor<8x4xf32>
}

// Means are statistics; what a product makes of them is an activation, and kept in 16 bits.
// CHECK-LABEL: func.func @product_of_means
// CHECK: %[[P:.*]] = nn.dot %{{.*}}, %{{.*}} : (tensor<4x8xbf16>, tensor<8x3xbf16>) -> tensor<4x3xbf16>
// CHECK: %[[E:.*]] = nn.tanh
// CHECK: %[[K:.*]] = nn.cast %[[E]] : tensor<4x3xf32> -> tensor<4x3xbf16>
// CHECK: %[[KW:.*]] = nn.cast %[[K]]
// CHECK: nn.mul %[[KW]], %[[KW]]
func.func @product_of_means(%x: tensor<4x6x8xf32> {train.binding = #train.batch<"x">},
                            %w: tensor<8x3xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<8x3xf32> {train.binding = #train.gradient<"w">}) {
  %mean = nn.reduce_sum %x dims = [1] : tensor<4x6x8xf32> -> tensor<4x8xf32>
  %y = nn.dot %mean, %w : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  %h = nn.tanh %y : tensor<4x3xf32>
  %loss = nn.reduce_sum %h dims = [0, 1] : tensor<4x3xf32> -> tensor<f32>
  %one = nn.constant dense<1.0> : tensor<4x3xf32>
  %square = nn.mul %h, %h : tensor<4x3xf32>
  %dy = nn.sub %one, %square : tensor<4x3xf32>
  %dw = nn.dot %mean, %dy {transpose_a} : (tensor<4x8xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
  return %loss, %dw : tensor<f32>, tensor<8x3xf32>
}

// A sine is as small as a hyperbolic tangent: what a product reads of it in 16 bits, the backward pass reads, too. An
// exponential may be anything, and stays f32: the backward pass makes it again of what the product kept.
// CHECK-LABEL: func.func @bounded
// CHECK: %[[S:.*]] = nn.sin
// CHECK: %[[SL:.*]] = nn.cast %[[S]] : tensor<4x8xf32> -> tensor<4x8xbf16>
// CHECK: %[[SW:.*]] = nn.cast %[[SL]] : tensor<4x8xbf16> -> tensor<4x8xf32>
// CHECK: %[[LOSS:.*]] = nn.reduce_sum
// CHECK: %[[E:.*]] = nn.exp %{{.*}} {train.again} : tensor<4x8xf32>
// CHECK: %[[G:.*]] = nn.mul %[[SW]], %[[E]]
// CHECK: return %[[LOSS]], %[[G]]
func.func @bounded(%x: tensor<4x8xf32> {train.binding = #train.batch<"x">},
                   %w: tensor<8x8xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<4x8xf32> {train.binding = #train.gradient<"w">}) {
  %y = nn.dot %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %s = nn.sin %y : tensor<4x8xf32>
  %e = nn.exp %y : tensor<4x8xf32>
  %z = nn.dot %s, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %u = nn.add %z, %e : tensor<4x8xf32>
  %loss = nn.reduce_sum %u dims = [0, 1] : tensor<4x8xf32> -> tensor<f32>
  %g = nn.mul %s, %e : tensor<4x8xf32>
  return %loss, %g : tensor<f32>, tensor<4x8xf32>
}

// Of a difference from data the 16-bit prediction is kept, not the difference. The sum of f32 and of a prediction is
// kept as it is: its terms would be more to read.
// CHECK-LABEL: func.func @made_again
// CHECK: %[[P:.*]] = nn.dot {{.*}} -> tensor<4x8xbf16>
// CHECK: %[[R:.*]] = nn.add %{{.*}}, %{{.*}} : tensor<4x8xf32>
// CHECK: nn.reduce_sum
// CHECK: %[[PW:.*]] = nn.cast %[[P]] {train.again} : tensor<4x8xbf16> -> tensor<4x8xf32>
// CHECK: %[[D:.*]] = nn.sub %[[PW]], %arg0 {train.again} : tensor<4x8xf32>
// CHECK: nn.mul %[[D]], %[[R]] : tensor<4x8xf32>
func.func @made_again(%y: tensor<4x8xf32> {train.binding = #train.batch<"y">},
                      %i: tensor<4xi64> {train.binding = #train.batch<"i">},
                      %w: tensor<8x8xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<8x8xf32> {train.binding = #train.gradient<"w">}) {
  %rows = nn.gather %w[%i] axis = 0 : (tensor<8x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  %p = nn.dot %y, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %r = nn.add %rows, %p : tensor<4x8xf32>
  %d = nn.sub %p, %y : tensor<4x8xf32>
  %both = nn.add %r, %d : tensor<4x8xf32>
  %loss = nn.reduce_sum %both dims = [0, 1] : tensor<4x8xf32> -> tensor<f32>
  %m = nn.mul %d, %r : tensor<4x8xf32>
  %g = nn.dot %y, %m {transpose_a} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %loss, %g : tensor<f32>, tensor<8x8xf32>
}
