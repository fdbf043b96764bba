// RUN: lowtide-opt %s --nn-fuse-patterns=loss-head-always --train-differentiate=function=distilled --canonicalize --cse --train-chunk-loss-head=chunks=2 --canonicalize --cse | FileCheck %s --check-prefix=TAUGHT
// RUN: lowtide-opt %s --nn-fuse-patterns=loss-head-always --train-differentiate=function=policy --canonicalize --cse --train-chunk-loss-head=chunks=2 --canonicalize --cse | FileCheck %s --check-prefix=POLICY
// RUN: lowtide-opt %s --nn-fuse-patterns=loss-head-always --train-differentiate=function=squares --canonicalize --cse --train-chunk-loss-head=chunks=2 --canonicalize --cse | FileCheck %s --check-prefix=LAYER
// RUN: lowtide-opt %s --nn-fuse-patterns --train-differentiate=function=moderate --canonicalize --cse --train-chunk-loss-head --canonicalize --cse | FileCheck %s --check-prefix=KEPT
// RUN: lowtide-opt %s --nn-fuse-patterns --train-differentiate=function=moderate --canonicalize --cse --train-chunk-loss-head=chunks=-1 --canonicalize --cse | FileCheck %s --check-prefix=TWICE

// A teacher's product joins the loop, and what is detached between reshapes becomes rows and classes.
// TAUGHT-LABEL: func.func @gradient
// TAUGHT-SAME: tensor<4x16x8xf32>{{.*}} %[[W:[a-z0-9]+]]: tensor<32x8xf32> {{.*}} %[[T:[a-z0-9]+]]: tensor<32x8xf32>
// TAUGHT-NOT: {{64x32|4x16x32}}
// TAUGHT: train.accumulate 2 slices(%[[XK:[a-z0-9]+]] = %{{.*}}, %{{.*}} = %{{.*}}) carries(
// TAUGHT-DAG: nn.dot %[[XK]], %[[W]] {transpose_b} : (tensor<32x8xf32>, tensor<32x8xf32>) -> tensor<32x32xf32>
// TAUGHT-DAG: %[[Q:.*]] = nn.dot %[[XK]], %[[T]] {transpose_b} : (tensor<32x8xf32>, tensor<32x8xf32>) -> tensor<32x32xf32>
// TAUGHT: %[[STILL:.*]] = nn.stop_gradient %[[Q]]
// TAUGHT: nn.softmax %[[STILL]] dim = 1
// TAUGHT-COUNT-2: nn.dot {{.*}} {transpose_a} : (tensor<16x32xf32>, tensor<16x8xf32>) -> tensor<32x8xf32>
// TAUGHT: train.next
// TAUGHT-NOT: {{64x32|4x16x32}}
// TAUGHT: return
func.func @distilled(%x: tensor<4x16x8xf32> {train.binding = #train.batch<"x">},
    %w: tensor<32x8xf32> {train.binding = #train.param<"w">},
    %t: tensor<32x8xf32> {train.binding = #train.constant<"t">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %rows = nn.reshape %x : tensor<4x16x8xf32> -> tensor<64x8xf32>
  %p = nn.dot %rows, %w {transpose_b} : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %q = nn.dot %rows, %t {transpose_b} : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %q3 = nn.reshape %q : tensor<64x32xf32> -> tensor<4x16x32xf32>
  %still = nn.stop_gradient %q3 : tensor<4x16x32xf32>
  %taught = nn.softmax %still dim = 2 : tensor<4x16x32xf32>
  %p3 = nn.reshape %p : tensor<64x32xf32> -> tensor<4x16x32xf32>
  %l = nn.log_softmax %p3 dim = 2 : tensor<4x16x32xf32>
  %terms = nn.mul %taught, %l : tensor<4x16x32xf32>
  %sum = nn.reduce_sum %terms dims = [0, 1, 2] : tensor<4x16x32xf32> -> tensor<f32>
  %loss = nn.neg %sum : tensor<f32>
  return %loss : tensor<f32>
}

// The entropy's bonus needs what is made of all rows before the gradients: logits are computed twice, though no
// cross-entropy is among them. What labels pick is picked of rows, and its cotangents are scattered to rows of the loop.
// POLICY-LABEL: func.func @gradient
// POLICY-NOT: {{64x32|4x16x32}}
// POLICY: train.accumulate 2 slices
// POLICY: nn.gather_elements {{.*}} axis = 1 : (tensor<32x32xf32>, tensor<32x1xi64>) -> tensor<32x1xf32>
// POLICY: train.next rows(%{{.*}}, %{{.*}} : tensor<32x1xf32>, tensor<32xf32>)
// POLICY: train.accumulate 2 slices{{.*}} carries(
// POLICY: nn.scatter_elements_add{{.*}} axis = 1 : (tensor<32x1xi64>, tensor<32x1xf32>) -> tensor<32x32xf32>
// POLICY-COUNT-2: nn.dot {{.*}} {transpose_a} : (tensor<16x32xf32>, tensor<16x8xf32>) -> tensor<32x8xf32>
// POLICY: train.next carries
// POLICY-NOT: {{64x32|4x16x32}}
// POLICY: return
func.func @policy(%x: tensor<64x8xf32> {train.binding = #train.batch<"x">},
    %y: tensor<4x16x1xi64> {train.binding = #train.batch<"y">},
    %old: tensor<4x16x1xf32> {train.binding = #train.batch<"old">},
    %w: tensor<32x8xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %p = nn.dot %x, %w {transpose_b} : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %p3 = nn.reshape %p : tensor<64x32xf32> -> tensor<4x16x32xf32>
  %l = nn.log_softmax %p3 dim = 2 : tensor<4x16x32xf32>
  %picked = nn.gather_elements %l[%y] axis = 2 : (tensor<4x16x32xf32>, tensor<4x16x1xi64>) -> tensor<4x16x1xf32>
  %change = nn.sub %picked, %old : tensor<4x16x1xf32>
  %ratio = nn.exp %change : tensor<4x16x1xf32>
  %gain = nn.reduce_sum %ratio dims = [0, 1, 2] : tensor<4x16x1xf32> -> tensor<f32>
  %e = nn.exp %l : tensor<4x16x32xf32>
  %el = nn.mul %e, %l : tensor<4x16x32xf32>
  %entropy = nn.reduce_sum %el dims = [2] : tensor<4x16x32xf32> -> tensor<4x16xf32>
  %all = nn.reduce_sum %entropy dims = [0, 1] : tensor<4x16xf32> -> tensor<f32>
  %square = nn.mul %all, %all : tensor<f32>
  %loss = nn.sub %square, %gain : tensor<f32>
  return %loss : tensor<f32>
}

// Sixteen numbers for each row lead on: another layer, not the logits of a loss.
// LAYER-LABEL: func.func @gradient
// LAYER-NOT: train.accumulate
// LAYER: return
func.func @squares(%x: tensor<64x8xf32> {train.binding = #train.batch<"x">},
    %w: tensor<32x8xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %p = nn.dot %x, %w {transpose_b} : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %h = nn.tanh %p : tensor<64x32xf32>
  %pairs = nn.reshape %h : tensor<64x32xf32> -> tensor<64x16x2xf32>
  %best = nn.reduce_max %pairs dims = [2] : tensor<64x16x2xf32> -> tensor<64x16xf32>
  %all = nn.reduce_sum %best dims = [0] : tensor<64x16xf32> -> tensor<16xf32>
  %norm = nn.mul %all, %all : tensor<16xf32>
  %wide = nn.broadcast %norm dims = [1] : tensor<16xf32> -> tensor<64x16xf32>
  %out = nn.mul %best, %wide : tensor<64x16xf32>
  %rows = nn.reduce_sum %out dims = [1] : tensor<64x16xf32> -> tensor<64xf32>
  %loss = nn.reduce_sum %rows dims = [0] : tensor<64xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// Logits of 4 MiB that gradients need again: kept as long as no budget asks for less.
// KEPT-LABEL: func.func @gradient
// KEPT: %[[P:.*]] = nn.dot {{.*}} -> tensor<1024x1024xf32>
// KEPT: train.accumulate {{[0-9]+}} slices({{.*}} = %[[P]]
// KEPT-NOT: nn.dot
// KEPT: train.accumulate {{[0-9]+}} slices({{.*}} = %[[P]]
// KEPT-NOT: {transpose_b}
// KEPT: return
// TWICE-LABEL: func.func @gradient
// TWICE-NOT: 1024x1024
// TWICE: train.accumulate
// TWICE: nn.dot {{.*}} {transpose_b}
// TWICE: train.accumulate
// TWICE: nn.dot {{.*}} {transpose_b}
// TWICE: return
func.func @moderate(%x: tensor<1024x8xf32> {train.binding = #train.batch<"x">},
    %w: tensor<1024x8xf32> {train.binding = #train.param<"w">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}) {
  %p = nn.dot %x, %w {transpose_b} : (tensor<1024x8xf32>, tensor<1024x8xf32>) -> tensor<1024x1024xf32>
  %l = nn.log_softmax %p dim = 1 : tensor<1024x1024xf32>
  %e = nn.exp %l : tensor<1024x1024xf32>
  %el = nn.mul %e, %l : tensor<1024x1024xf32>
  %entropy = nn.reduce_sum %el dims = [1] : tensor<1024x1024xf32> -> tensor<1024xf32>
  %all = nn.reduce_sum %entropy dims = [0] : tensor<1024xf32> -> tensor<f32>
  %loss = nn.mul %all, %all : tensor<f32>
  return %loss : tensor<f32>
}
