// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --train-rematerialize="device-budget=3MiB host-budget=40MiB" -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: lowtide-opt %t.mlir --plan-lower --plan-place --plan-assign-streams --verify-budget --verify-plan | FileCheck %s --check-prefix=PLAN
// RUN: not lowtide-opt %s --train-set-target=target=cuda:sm_90 --train-rematerialize="device-budget=3MiB host-budget=1MiB" 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --train-rematerialize="device-budget=20MiB host-budget=40MiB" | FileCheck %s --check-prefix=LARGE

// Four sums of a loop, of which a round reads one at a time: each waits in pinned memory, where the zeros are stored
// first, and the rounds load it before its sum and store it after that.
// CHECK-COUNT-4: train.move %{{.*}} : tensor<512x512xf32> to tensor<512x512xf32, #train.space<host_pinned>>
// CHECK: train.accumulate 2
// CHECK: %[[D:.*]] = nn.dot
// CHECK: %[[OLD:.*]] = train.move %{{.*}} : tensor<512x512xf32, #train.space<host_pinned>> to tensor<512x512xf32>
// CHECK: %[[NEW:.*]] = nn.kernel loop (%{{.*}} = %[[OLD]], %{{.*}} = %[[D]])
// CHECK: train.move %[[NEW]] : tensor<512x512xf32> to tensor<512x512xf32, #train.space<host_pinned>>
// CHECK: train.next

// PLAN: plan.arena @host_pinned transient in host_pinned bytes 4194304
// PLAN: plan.repeat 2 carries [@host_pinned[{{.*}}, @host_pinned[{{.*}}, @host_pinned[{{.*}}, @host_pinned[
// PLAN-COUNT-4: plan.copy @host_pinned[{{.*}} to @transient[

// SMALL: error: @train cannot fit 3.00 MiB

// Where there is room, nothing moves.
// LARGE-NOT: train.move

func.func @train(%x: tensor<64x512xf32> {train.binding = #train.batch<"x">}) -> (tensor<f32> {train.binding = #train.metric<"m0">}, tensor<f32> {train.binding = #train.metric<"m1">}, tensor<f32> {train.binding = #train.metric<"m2">}, tensor<f32> {train.binding = #train.metric<"m3">}) {
  %z0 = nn.kernel single () : () -> tensor<512x512xf32> {
    %c = nn.constant dense<0.0> : tensor<512x512xf32>
    nn.yield %c : tensor<512x512xf32>
  }
  %z1 = nn.kernel single () : () -> tensor<512x512xf32> {
    %c = nn.constant dense<0.0> : tensor<512x512xf32>
    nn.yield %c : tensor<512x512xf32>
  }
  %z2 = nn.kernel single () : () -> tensor<512x512xf32> {
    %c = nn.constant dense<0.0> : tensor<512x512xf32>
    nn.yield %c : tensor<512x512xf32>
  }
  %z3 = nn.kernel single () : () -> tensor<512x512xf32> {
    %c = nn.constant dense<0.0> : tensor<512x512xf32>
    nn.yield %c : tensor<512x512xf32>
  }
  %sum:4 = train.accumulate 2 slices(%part = %x) carries(%old0 = %z0, %old1 = %z1, %old2 = %z2, %old3 = %z3) : (tensor<64x512xf32>, tensor<512x512xf32>, tensor<512x512xf32>, tensor<512x512xf32>, tensor<512x512xf32>) -> (tensor<512x512xf32>, tensor<512x512xf32>, tensor<512x512xf32>, tensor<512x512xf32>) {
    %a0 = nn.kernel loop (%p = %part) : (tensor<32x512xf32>) -> (tensor<32x512xf32>) {
      %t = nn.exp %p : tensor<32x512xf32>
      nn.yield %t : tensor<32x512xf32>
    }
    %d0 = nn.dot %a0, %part {transpose_a} : (tensor<32x512xf32>, tensor<32x512xf32>) -> tensor<512x512xf32>
    %new0 = nn.kernel loop (%p = %old0, %q = %d0) : (tensor<512x512xf32>, tensor<512x512xf32>) -> (tensor<512x512xf32>) {
      %t = nn.add %p, %q : tensor<512x512xf32>
      nn.yield %t : tensor<512x512xf32>
    }
    %a1 = nn.kernel loop (%p = %part) : (tensor<32x512xf32>) -> (tensor<32x512xf32>) {
      %t = nn.tanh %p : tensor<32x512xf32>
      nn.yield %t : tensor<32x512xf32>
    }
    %d1 = nn.dot %a1, %part {transpose_a} : (tensor<32x512xf32>, tensor<32x512xf32>) -> tensor<512x512xf32>
    %new1 = nn.kernel loop (%p = %old1, %q = %d1) : (tensor<512x512xf32>, tensor<512x512xf32>) -> (tensor<512x512xf32>) {
      %t = nn.add %p, %q : tensor<512x512xf32>
      nn.yield %t : tensor<512x512xf32>
    }
    %a2 = nn.kernel loop (%p = %part) : (tensor<32x512xf32>) -> (tensor<32x512xf32>) {
      %t = nn.neg %p : tensor<32x512xf32>
      nn.yield %t : tensor<32x512xf32>
    }
    %d2 = nn.dot %a2, %part {transpose_a} : (tensor<32x512xf32>, tensor<32x512xf32>) -> tensor<512x512xf32>
    %new2 = nn.kernel loop (%p = %old2, %q = %d2) : (tensor<512x512xf32>, tensor<512x512xf32>) -> (tensor<512x512xf32>) {
      %t = nn.add %p, %q : tensor<512x512xf32>
      nn.yield %t : tensor<512x512xf32>
    }
    %a3 = nn.kernel loop (%p = %part) : (tensor<32x512xf32>) -> (tensor<32x512xf32>) {
      %t = nn.abs %p : tensor<32x512xf32>
      nn.yield %t : tensor<32x512xf32>
    }
    %d3 = nn.dot %a3, %part {transpose_a} : (tensor<32x512xf32>, tensor<32x512xf32>) -> tensor<512x512xf32>
    %new3 = nn.kernel loop (%p = %old3, %q = %d3) : (tensor<512x512xf32>, tensor<512x512xf32>) -> (tensor<512x512xf32>) {
      %t = nn.add %p, %q : tensor<512x512xf32>
      nn.yield %t : tensor<512x512xf32>
    }
    train.next carries(%new0, %new1, %new2, %new3 : tensor<512x512xf32>, tensor<512x512xf32>, tensor<512x512xf32>, tensor<512x512xf32>)
  }
  %m0 = nn.kernel row (%p = %sum#0) : (tensor<512x512xf32>) -> (tensor<f32>) {
    %t = nn.reduce_sum %p dims = [0, 1] : tensor<512x512xf32> -> tensor<f32>
    nn.yield %t : tensor<f32>
  }
  %m1 = nn.kernel row (%p = %sum#1) : (tensor<512x512xf32>) -> (tensor<f32>) {
    %t = nn.reduce_sum %p dims = [0, 1] : tensor<512x512xf32> -> tensor<f32>
    nn.yield %t : tensor<f32>
  }
  %m2 = nn.kernel row (%p = %sum#2) : (tensor<512x512xf32>) -> (tensor<f32>) {
    %t = nn.reduce_sum %p dims = [0, 1] : tensor<512x512xf32> -> tensor<f32>
    nn.yield %t : tensor<f32>
  }
  %m3 = nn.kernel row (%p = %sum#3) : (tensor<512x512xf32>) -> (tensor<f32>) {
    %t = nn.reduce_sum %p dims = [0, 1] : tensor<512x512xf32> -> tensor<f32>
    nn.yield %t : tensor<f32>
  }
  return %m0, %m1, %m2, %m3 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
}
