// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --train-rematerialize="device-budget=36MiB host-budget=13MiB disk-budget=40MiB" -o %t.mlir 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: lowtide-opt %t.mlir --plan-lower --plan-place --plan-assign-streams --verify-budget --verify-plan | FileCheck %s --check-prefix=PLAN

// Pinned memory has room for the two states and one of two values that wait: the other one waits in the file.
// REMARK: 3 loads of 12.00 MiB from space host_pinned and 12.00 MiB stored there; 1 loads of 4.00 MiB from space file and 4.00 MiB stored there

// CHECK: func.func @train{{.*}} %[[M:[a-z0-9]+]]: tensor<1024x1024xf32, #train.space<host_pinned>> {train.binding = #train.state<"m">}
// CHECK: %[[OLD:.*]] = train.move %[[M]]
// CHECK: %[[A:.*]] = nn.kernel loop (%{{.*}} = %[[OLD]])
// CHECK: %[[FAR:.*]] = train.move %[[A]] : tensor<1024x1024xf32> to tensor<1024x1024xf32, #train.space<file>>
// CHECK: %[[B:.*]] = nn.kernel loop
// CHECK: nn.exp
// CHECK: %[[NEAR:.*]] = train.move %[[B]] : tensor<1024x1024xf32> to tensor<1024x1024xf32, #train.space<host_pinned>>
// CHECK: nn.dot
// CHECK: train.remat %[[NEAR]] after(
// CHECK: train.remat %[[FAR]] after(

// PLAN-DAG: plan.arena @host_pinned transient in host_pinned bytes 4194304 align 64
// PLAN-DAG: plan.arena @file transient in file bytes 4194304 align 4096
// PLAN-DAG: plan.copy @transient[{{.*}} to @host_pinned[0 + 4194304]
// PLAN-DAG: plan.copy @transient[{{.*}} to @file[0 + 4194304]
// PLAN-DAG: plan.copy @host_pinned[0 + 4194304] {{.*}} to @transient[
// PLAN-DAG: plan.copy @file[0 + 4194304] {{.*}} to @transient[

func.func @train(%y: tensor<32768x8xf32> {train.binding = #train.batch<"y">},
                 %k: tensor<8x256xf32> {train.binding = #train.param<"k">},
                 %m: tensor<1024x1024xf32> {train.binding = #train.state<"m">}, %n: tensor<1024x1024xf32> {train.binding = #train.state<"n">})
    -> (tensor<1024x1024xf32> {train.binding = #train.state<"m">}, tensor<1024x1024xf32> {train.binding = #train.state<"n">},
        tensor<f32> {train.binding = #train.metric<"loss">}) {
  %a = nn.kernel loop (%p0 = %m) : (tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>) {
    %t = nn.exp %p0 : tensor<1024x1024xf32>
    nn.yield %t : tensor<1024x1024xf32>
  }
  %b = nn.kernel loop (%p0 = %n) : (tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>) {
    %t = nn.exp %p0 : tensor<1024x1024xf32>
    nn.yield %t : tensor<1024x1024xf32>
  }
  %m1 = nn.kernel loop (%p0 = %m) : (tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>) {
    %t = nn.neg %p0 : tensor<1024x1024xf32>
    nn.yield %t : tensor<1024x1024xf32>
  }
  %n1 = nn.kernel loop (%p0 = %n) : (tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>) {
    %t = nn.neg %p0 : tensor<1024x1024xf32>
    nn.yield %t : tensor<1024x1024xf32>
  }
  %large = nn.dot %y, %k : (tensor<32768x8xf32>, tensor<8x256xf32>) -> tensor<32768x256xf32> loc("large")
  %r = nn.kernel row (%p0 = %large) : (tensor<32768x256xf32>) -> (tensor<32768xf32>) {
    %t = nn.reduce_sum %p0 dims = [1] : tensor<32768x256xf32> -> tensor<32768xf32>
    nn.yield %t : tensor<32768xf32>
  }
  %q = nn.kernel row (%p0 = %r) : (tensor<32768xf32>) -> (tensor<f32>) {
    %t = nn.reduce_sum %p0 dims = [0] : tensor<32768xf32> -> tensor<f32>
    nn.yield %t : tensor<f32>
  }
  %d = nn.kernel row (%p0 = %b) : (tensor<1024x1024xf32>) -> (tensor<1024xf32>) {
    %t = nn.reduce_sum %p0 dims = [1] : tensor<1024x1024xf32> -> tensor<1024xf32>
    nn.yield %t : tensor<1024xf32>
  }
  %e = nn.kernel row (%p0 = %a, %p1 = %d) : (tensor<1024x1024xf32>, tensor<1024xf32>) -> (tensor<1024xf32>) {
    %u = nn.reduce_sum %p0 dims = [1] : tensor<1024x1024xf32> -> tensor<1024xf32>
    %v = nn.mul %u, %p1 : tensor<1024xf32>
    nn.yield %v : tensor<1024xf32>
  }
  %f = nn.kernel row (%p0 = %e) : (tensor<1024xf32>) -> (tensor<f32>) {
    %t = nn.reduce_sum %p0 dims = [0] : tensor<1024xf32> -> tensor<f32>
    nn.yield %t : tensor<f32>
  }
  %loss = nn.kernel loop (%p0 = %q, %p1 = %f) : (tensor<f32>, tensor<f32>) -> (tensor<f32>) {
    %u = nn.add %p0, %p1 : tensor<f32>
    nn.yield %u : tensor<f32>
  }
  return %m1, %n1, %loss : tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<f32>
}
