// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --train-rematerialize="device-budget=17MiB host-budget=5MiB disk-budget=40MiB" --plan-lower --plan-place --plan-assign-streams --verify-budget --verify-plan | FileCheck %s
// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --train-rematerialize="device-budget=17MiB host-budget=5MiB disk-budget=40MiB" -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: lowtide-opt %s --train-set-target=target=cuda:sm_90 --train-rematerialize="device-budget=17MiB host-budget=40MiB disk-budget=40MiB" | FileCheck %s --check-prefix=WIDE
// RUN: not lowtide-opt %s --train-set-target=target=cuda:sm_90 --train-rematerialize="device-budget=17MiB host-budget=3MiB disk-budget=5MiB" 2>&1 | FileCheck %s --check-prefix=NARROW
// RUN: not lowtide-opt %s --train-set-target=target=cuda:sm_90 --train-rematerialize="device-budget=1MiB host-budget=5MiB disk-budget=40MiB" 2>&1 | FileCheck %s --check-prefix=STATICS

// Pinned memory of the host has room for one of two momenta; the other one lies in the file. Each memory has lanes of
// its own.
// CHECK: train.disk_budget = 41943040 : i64, train.host_budget = 5242880 : i64
// CHECK-DAG: plan.arena @state_host_pinned state in host_pinned bytes 4194304 align 64
// CHECK-DAG: plan.arena @state_file state in file bytes 4194304 align 4096
// CHECK: plan.program @train batch 4096 peak {{.*}} streams 5
// CHECK: plan.copy @state_host_pinned[{{.*}} to @transient[{{.*}} stream 1
// CHECK: plan.copy @transient[{{.*}} to @state_host_pinned[{{.*}} stream 2
// CHECK: plan.copy @state_file[{{.*}} to @transient[{{.*}} stream 3
// CHECK: plan.copy @transient[{{.*}} to @state_file[{{.*}} stream 4

// REMARK: 1 loads of 4.00 MiB from space host_pinned and 4.00 MiB stored there; 1 loads of 4.00 MiB from space file and 4.00 MiB stored there, which takes {{.*}} % more time by the estimate

// Where the faster memory has room for everything, nothing lies in the other one.
// WIDE-NOT: #train.space<file>
// WIDE-COUNT-2: tensor<4096x256xf32, #train.space<host_pinned>> {train.binding = #train.state<

// NARROW: error: {{.*}}cannot fit 17.00 MiB

// What lies elsewhere is not what the device has no room for.
// STATICS: error: cannot fit 1.00 MiB: parameters, optimizer state and batch alone are 12.00 MiB
// STATICS: note: the largest of them: "x" of 4.00 MiB
// STATICS-NOT: momentum

func.func @train(%x: tensor<4096x256xf32> {train.binding = #train.batch<"x">},
                 %m: tensor<4096x256xf32> {train.binding = #train.state<"first.momentum">},
                 %n: tensor<4096x256xf32> {train.binding = #train.state<"second.momentum">})
    -> (tensor<4096x256xf32> {train.binding = #train.state<"first.momentum">},
        tensor<4096x256xf32> {train.binding = #train.state<"second.momentum">},
        tensor<f32> {train.binding = #train.metric<"loss">}) {
  %r = nn.kernel row (%p = %x) : (tensor<4096x256xf32>) -> (tensor<4096xf32>) {
    %t = nn.reduce_sum %p dims = [1] : tensor<4096x256xf32> -> tensor<4096xf32>
    nn.yield %t : tensor<4096xf32>
  }
  %loss = nn.kernel row (%p = %r) : (tensor<4096xf32>) -> (tensor<f32>) {
    %t = nn.reduce_sum %p dims = [0] : tensor<4096xf32> -> tensor<f32>
    nn.yield %t : tensor<f32>
  }
  %a = nn.kernel loop (%p = %x, %t = %m) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> (tensor<4096x256xf32>) {
    %u = nn.mul %p, %t : tensor<4096x256xf32>
    nn.yield %u : tensor<4096x256xf32>
  }
  %b = nn.kernel loop (%p = %x, %t = %n) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> (tensor<4096x256xf32>) {
    %u = nn.mul %p, %t : tensor<4096x256xf32>
    nn.yield %u : tensor<4096x256xf32>
  }
  return %a, %b, %loss : tensor<4096x256xf32>, tensor<4096x256xf32>, tensor<f32>
}
