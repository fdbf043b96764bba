// RUN: lowtide-opt %s --train-set-target=threads-max=1 --plan-lower --split-input-file | FileCheck %s
// RUN: lowtide-opt %s --plan-lower --plan-place --verify-plan --split-input-file | FileCheck %s --check-prefix=PROVED
// RUN: lowtide-opt %s --train-set-target=threads-max=1 --plan-lower --split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// PROVED-COUNT-6: plan.program

// A step of SGD: the parameter is updated in place, the gradient's bytes are a buffer, the loss lies in io.
// CHECK: plan.arena @params params in device bytes 64 align 64 image 64
// CHECK: plan.arena @state state in device bytes 0 align 64
// CHECK: plan.arena @io io in device bytes 128 align 64
// CHECK: plan.source "w" {initializer = "onnx::w", original_dims = array<i64: 2, 4>, permutation = array<i64: 1, 0>}
// CHECK: plan.program @train batch 4 peak 0
// CHECK: plan.binding param "w" tensor<4x2xf32> @params[0 + 32] : 1 -> [[NEW:[0-9]+]] from_image
// CHECK: plan.binding batch "x" tensor<4x2xf32> @io[0 + 32] : 2 -> 2 batch_dim 0
// CHECK: plan.binding metric "loss" tensor<4x2xf32> @io[64 + 32] : 0 -> 3
// CHECK: plan.buffer "b3" in @transient bytes 32
// CHECK-NOT: plan.buffer
// CHECK: plan.launch @[[K:.*]] reads [@params[0 + 32] : 1, @io[0 + 32] : 2] writes [@io[64 + 32] : 3]
// CHECK: plan.launch @{{.*}} reads [@io[0 + 32] : 2] writes [@b3[0 + 32] : 4]
// CHECK: plan.launch @{{.*}} reads [@params[0 + 32] : 1, @b3[0 + 32] : 4] writes [@params[0 + 32] : [[NEW]]]
// CHECK-NOT: plan.copy
// REMARK: remark: @train: 3 launches, 0 library calls, 0 copies, 1 buffers of 32 bytes in all
func.func @train(
    %w: tensor<4x2xf32> {train.binding = #train.param<"w">, onnx.initializer = "onnx::w", onnx.transposed = array<i64: 1, 0>},
    %x: tensor<4x2xf32> {train.binding = #train.batch<"x">})
    -> (tensor<4x2xf32> {train.binding = #train.param<"w">}, tensor<4x2xf32> {train.binding = #train.metric<"loss">}) {
  %loss = nn.kernel loop (%a = %w, %b = %x) : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<4x2xf32>) {
    %s = nn.mul %a, %b : tensor<4x2xf32>
    nn.yield %s : tensor<4x2xf32>
  }
  %g = nn.kernel loop (%b = %x) : (tensor<4x2xf32>) -> (tensor<4x2xf32>) {
    %s = nn.exp %b : tensor<4x2xf32>
    nn.yield %s : tensor<4x2xf32>
  }
  %new = nn.kernel loop (%a = %w, %b = %g) : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<4x2xf32>) {
    %s = nn.sub %a, %b : tensor<4x2xf32>
    nn.yield %s : tensor<4x2xf32>
  }
  return %new, %loss : tensor<4x2xf32>, tensor<4x2xf32>
}

// -----

// The old value is read after the update: the new one waits in a buffer and is copied at the end. Another result is the
// old value: it is saved first.
// CHECK: plan.program @train
// CHECK: plan.binding output "old" tensor<8xf32> @b[[OLD:[0-9]+]][0 + 32] : 0 -> [[OLDV:[0-9]+]]
// CHECK: plan.copy @params[0 + 32] : 1 to @b[[SAVED:[0-9]+]][0 + 32]
// CHECK: plan.launch @{{.*}} reads [@params[0 + 32] : 1] writes [@b[[NEW:[0-9]+]][0 + 32] : [[NEWV:[0-9]+]]]
// CHECK: plan.launch @{{.*}} reads [@params[0 + 32] : 1] writes [@io[0 + 32] : {{[0-9]+}}]
// CHECK: plan.copy @b[[NEW]][0 + 32] : [[NEWV]] to @params[0 + 32]
// CHECK: plan.copy @b[[SAVED]][0 + 32] : {{[0-9]+}} to @b[[OLD]][0 + 32] : [[OLDV]]
// REMARK: remark: @train: 2 launches, 0 library calls, 3 copies, 3 buffers of 96 bytes in all
func.func @train(%w: tensor<8xf32> {train.binding = #train.param<"w">})
    -> (tensor<8xf32> {train.binding = #train.param<"w">}, tensor<8xf32> {train.binding = #train.metric<"loss">},
        tensor<8xf32> {train.binding = #train.output<"old">}) {
  %new = nn.kernel loop (%a = %w) : (tensor<8xf32>) -> (tensor<8xf32>) {
    %s = nn.exp %a : tensor<8xf32>
    nn.yield %s : tensor<8xf32>
  }
  %loss = nn.kernel loop (%a = %w) : (tensor<8xf32>) -> (tensor<8xf32>) {
    %s = nn.tanh %a : tensor<8xf32>
    nn.yield %s : tensor<8xf32>
  }
  return %new, %loss, %w : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// Views share bytes; a dying operand is overwritten; two entries share parameters.
// CHECK: plan.program @eval
// CHECK: plan.binding param "w" tensor<8xf32> @params[0 + 32] : 1 -> 1
// CHECK: plan.binding output "y" tensor<8xf32> @b2[0 + 32] : 0 -> 4
// CHECK: plan.buffer "b2" in @transient bytes 32 kept
// CHECK-NOT: plan.buffer
// CHECK: plan.launch @{{.*}} reads [@params[0 + 32] : 1, @io[0 + 32] : 2] writes [@b2[0 + 32] : 3]
// CHECK: plan.launch @{{.*}} reads [@b2[0 + 32] : 3] writes [@b2[0 + 32] : 4]
// CHECK: plan.program @train
// CHECK: plan.binding param "w" tensor<8xf32> @params[0 + 32] : 1 -> 1
func.func @eval(%w: tensor<8xf32> {train.binding = #train.param<"w">}, %x: tensor<8xf32> {train.binding = #train.batch<"x">})
    -> (tensor<8xf32> {train.binding = #train.output<"y">}) {
  %h = nn.kernel loop (%a = %w, %b = %x) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>) {
    %s = nn.mul %a, %b : tensor<8xf32>
    nn.yield %s : tensor<8xf32>
  }
  %v = nn.reshape %h : tensor<8xf32> -> tensor<2x4xf32>
  %y = nn.kernel loop (%a = %v) : (tensor<2x4xf32>) -> (tensor<2x4xf32>) {
    %s = nn.exp %a : tensor<2x4xf32>
    nn.yield %s : tensor<2x4xf32>
  }
  %r = nn.reshape %y : tensor<2x4xf32> -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @train(%w: tensor<8xf32> {train.binding = #train.param<"w">})
    -> (tensor<8xf32> {train.binding = #train.param<"w">}) {
  return %w : tensor<8xf32>
}

// -----

// A loop: the sum is carried in place in the metric's slice, slices of the batch and rows of the result are copied, what is
// read from outside lives through all rounds.
// CHECK: plan.program @train batch 4
// CHECK: plan.launch @{{.*}} reads [@params[0 + 8] : 1] writes [@[[W:.*]][0 + 8] : [[WV:[0-9]+]]]
// CHECK: plan.launch @{{.*}} reads [] writes [@[[Z:.*]][0 + 8] : [[ZV:[0-9]+]]]
// CHECK: plan.copy @[[Z]][0 + 8] : [[ZV]] to @io[64 + 8] : [[ZERO:[0-9]+]]
// CHECK: plan.repeat 2 carries [@io[64 + 8] : [[ZERO]] -> [[SUM:[0-9]+]]] {
// CHECK-NEXT: plan.copy @io[0 + 16] : 2 step 16 to @[[PART:.*]][0 + 16] : [[PARTV:[0-9]+]]
// CHECK-NEXT: plan.launch @{{.*}} reads [@[[PART]][0 + 16] : [[PARTV]], @[[W]][0 + 8] : [[WV]]] writes [@[[ROWS:.*]][0 + 16] : [[ROWSV:[0-9]+]]]
// CHECK-NEXT: plan.launch @{{.*}} reads [@io[64 + 8] : [[ZERO]], @[[PART]][0 + 16] : [[PARTV]]] writes [@io[64 + 8] : [[SUM]]]
// CHECK-NEXT: plan.copy @[[ROWS]][0 + 16] : [[ROWSV]] to @{{.*}}[0 + 16] : {{[0-9]+}} step 16
// CHECK-NEXT: }
func.func @train(%w: tensor<2xf32> {train.binding = #train.param<"w">},
    %x: tensor<4x2xf32> {train.binding = #train.batch<"x">})
    -> (tensor<2xf32> {train.binding = #train.metric<"loss">}, tensor<4x2xf32> {train.binding = #train.output<"y">}) {
  %e = nn.kernel loop (%a = %w) : (tensor<2xf32>) -> (tensor<2xf32>) {
    %s = nn.exp %a : tensor<2xf32>
    nn.yield %s : tensor<2xf32>
  }
  %zero = nn.kernel single () : () -> (tensor<2xf32>) {
    %s = nn.constant dense<0.0> : tensor<2xf32>
    nn.yield %s : tensor<2xf32>
  }
  %sum, %y = train.accumulate 2 slices(%part = %x) carries(%before = %zero)
      : (tensor<4x2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<4x2xf32>) {
    %rows = nn.kernel loop (%a = %part, %b = %e) : (tensor<2x2xf32>, tensor<2xf32>) -> (tensor<2x2xf32>) {
      %s = nn.broadcast %b dims = [1] : tensor<2xf32> -> tensor<2x2xf32>
      %p = nn.mul %a, %s : tensor<2x2xf32>
      nn.yield %p : tensor<2x2xf32>
    }
    %after = nn.kernel column (%a = %before, %b = %part) : (tensor<2xf32>, tensor<2x2xf32>) -> (tensor<2xf32>) {
      %s = nn.reduce_sum %b dims = [0] : tensor<2x2xf32> -> tensor<2xf32>
      %p = nn.add %a, %s : tensor<2xf32>
      nn.yield %p : tensor<2xf32>
    }
    train.next carries(%after : tensor<2xf32>) rows(%rows : tensor<2x2xf32>)
  }
  return %sum, %y : tensor<2xf32>, tensor<4x2xf32>
}

// -----

// A reversed loop begins at the end of what it slices and lays down, and moves back.
// CHECK: plan.program @train batch 4
// CHECK: plan.repeat 2 {
// CHECK-NEXT: plan.copy @io[{{16|48}} + 16] : 1 step -16 to @[[PART:.*]][0 + 16] : [[PARTV:[0-9]+]]
// CHECK-NEXT: plan.launch @{{.*}} reads [@[[PART]][0 + 16] : [[PARTV]]] writes [@[[ROWS:.*]][0 + 16] : [[ROWSV:[0-9]+]]]
// CHECK-NEXT: plan.copy @[[ROWS]][0 + 16] : [[ROWSV]] to @{{.*}}[16 + 16] : {{[0-9]+}} step -16
// CHECK-NEXT: }
func.func @train(%x: tensor<4x2xf32> {train.binding = #train.batch<"x">})
    -> (tensor<4x2xf32> {train.binding = #train.output<"y">}) {
  %y = train.accumulate 2 reversed slices(%part = %x) : (tensor<4x2xf32>) -> tensor<4x2xf32> {
    %rows = nn.kernel loop (%a = %part) : (tensor<2x2xf32>) -> (tensor<2x2xf32>) {
      %s = nn.exp %a : tensor<2x2xf32>
      nn.yield %s : tensor<2x2xf32>
    }
    train.next rows(%rows : tensor<2x2xf32>)
  }
  return %y : tensor<4x2xf32>
}

// -----

// A gradient is a binding of a kind of its own, called after its parameter.
// CHECK: plan.binding gradient "grad/w" tensor<8xf32> @b{{[0-9]+}}[0 + 32] : 0 -> 2
func.func @gradient(%w: tensor<8xf32> {train.binding = #train.param<"w">})
    -> (tensor<8xf32> {train.binding = #train.gradient<"w">}) {
  %g = nn.kernel loop (%a = %w) : (tensor<8xf32>) -> (tensor<8xf32>) {
    %s = nn.exp %a : tensor<8xf32>
    nn.yield %s : tensor<8xf32>
  }
  return %g : tensor<8xf32>
}
