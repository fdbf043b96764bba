// RUN: lowtide-opt %s --train-set-target=target=cpu --train-rematerialize="device-budget=22MiB disk-budget=40MiB" | FileCheck %s
// RUN: lowtide-opt %s --train-set-target=target=cpu --train-rematerialize="device-budget=22MiB disk-budget=40MiB" -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: lowtide-opt %s --train-set-target=target=cpu --train-rematerialize="device-budget=22MiB disk-budget=40MiB" --plan-lower=weights=on --plan-place --plan-assign-streams --verify-budget --verify-plan | FileCheck %s --check-prefix=PLAN
// RUN: lowtide-opt %s --train-set-target=target=cpu --train-rematerialize="device-budget=30MiB disk-budget=40MiB" | FileCheck %s --check-prefix=LARGE
// RUN: not lowtide-opt %s --train-set-target=target=cpu --train-rematerialize="device-budget=22MiB disk-budget=3MiB" 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: not lowtide-opt %s --train-set-target=target=cpu --train-rematerialize="device-budget=22MiB" 2>&1 | FileCheck %s --check-prefix=SMALL

// CHECK: func.func @train(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<1024x1024xf32, #train.space<file>> {train.binding = #train.param<"w">
// CHECK-SAME: %[[F:[a-z0-9]+]]: tensor<256x8xf32> {train.binding = #train.param<"few">
// CHECK: %[[FIRST:.*]] = train.move %[[W]] : tensor<1024x1024xf32, #train.space<file>> to tensor<1024x1024xf32>
// CHECK: nn.dot %{{.*}}, %[[FIRST]] :
// CHECK-NOT: %[[FIRST]]
// CHECK: nn.exp
// CHECK-NOT: %[[FIRST]]
// CHECK: %[[AGAIN:.*]] = train.remat %[[W]] after(
// CHECK: %[[SECOND:.*]] = train.move %[[AGAIN]] : tensor<1024x1024xf32, #train.space<file>> to tensor<1024x1024xf32>
// CHECK-NOT: %[[FIRST]]
// CHECK: nn.dot %{{.*}}, %[[SECOND]] :
// CHECK: %[[NEW:.*]] = nn.kernel loop (%{{.*}} = %[[SECOND]],
// CHECK: %[[KEPT:.*]] = train.move %[[NEW]] : tensor<1024x1024xf32> to tensor<1024x1024xf32, #train.space<file>>
// CHECK: return %[[KEPT]],

// What another entry reads comes from there, too.
// CHECK: func.func @eval(
// CHECK-SAME: %[[E:[a-z0-9]+]]: tensor<1024x1024xf32, #train.space<file>> {train.binding = #train.param<"w">
// CHECK: %[[LOADED:.*]] = train.move %[[E]]
// CHECK: nn.dot %{{.*}}, %[[LOADED]] :
// CHECK-NOT: train.move

// REMARK: remark: @train: peak 13.{{[0-9]+}} MiB → 9.{{[0-9]+}} MiB (1 values recomputed, +0.0 % FLOPs, +{{.*}} % time{{.*}}; 2 loads of 8.00 MiB from space file and 4.00 MiB stored there, which takes
// REMARK: remark: @eval: peak {{.*}}; 1 loads of 4.00 MiB from space file and 0 bytes stored there

// PLAN-DAG: plan.arena @params params in device bytes 8192 align 64 image 8192
// PLAN-DAG: plan.arena @params_file params in file bytes 4194304 align 4096 image 4194304
// PLAN-DAG: plan.arena @staging staging in device bytes 2097152 align 4096
// PLAN: plan.program @train batch 256
// PLAN: plan.binding param "w" tensor<1024x1024xf32> @params_file
// PLAN-COUNT-2: plan.copy @params_file[0 + 4194304] : {{[0-9]+}} to @transient[{{.*}}] : {{[0-9]+}} stream {{[12]}}
// PLAN: plan.copy @transient[{{.*}}] : {{[0-9]+}} to @params_file[0 + 4194304] : {{[0-9]+}} stream {{[12]}}
// PLAN: plan.program @eval batch 256
// PLAN: plan.copy @params_file[0 + 4194304] : {{[0-9]+}} to @transient[{{.*}}]

// Where there is room, nothing moves.
// LARGE-NOT: train.move

// SMALL: error: @train cannot fit 22.00 MiB

// A matrix that is read before the large value is there, after it, and replaced at the end: it need not be there in
// between. The small one stays.
func.func @train(%x: tensor<256x1024xf32> {train.binding = #train.batch<"x">},
                 %y: tensor<8192x256xf32> {train.binding = #train.batch<"y", dim = -1>},
                 %z: tensor<1024x256xf32> {train.binding = #train.batch<"z", dim = -1>},
                 %w: tensor<1024x1024xf32> {train.binding = #train.param<"w">},
                 %f: tensor<256x8xf32> {train.binding = #train.param<"few">})
    -> (tensor<1024x1024xf32> {train.binding = #train.param<"w">}, tensor<f32> {train.binding = #train.metric<"loss">}) {
  %a = nn.dot %x, %w : (tensor<256x1024xf32>, tensor<1024x1024xf32>) -> tensor<256x1024xf32> loc("layer")
  %s = nn.kernel row (%p = %a) : (tensor<256x1024xf32>) -> (tensor<256xf32>) {
    %t = nn.reduce_sum %p dims = [1] : tensor<256x1024xf32> -> tensor<256xf32>
    nn.yield %t : tensor<256xf32>
  }
  %large = nn.kernel loop (%p = %y) : (tensor<8192x256xf32>) -> (tensor<8192x256xf32>) {
    %t = nn.exp %p : tensor<8192x256xf32>
    nn.yield %t : tensor<8192x256xf32>
  }
  %h = nn.dot %z, %f : (tensor<1024x256xf32>, tensor<256x8xf32>) -> tensor<1024x8xf32>
  %r = nn.kernel row (%p = %large) : (tensor<8192x256xf32>) -> (tensor<8192xf32>) {
    %t = nn.reduce_sum %p dims = [1] : tensor<8192x256xf32> -> tensor<8192xf32>
    nn.yield %t : tensor<8192xf32>
  }
  %loss = nn.kernel row (%p = %r) : (tensor<8192xf32>) -> (tensor<f32>) {
    %t = nn.reduce_sum %p dims = [0] : tensor<8192xf32> -> tensor<f32>
    nn.yield %t : tensor<f32>
  }
  %q = nn.kernel row (%p = %s) : (tensor<256xf32>) -> (tensor<f32>) {
    %t = nn.reduce_sum %p dims = [0] : tensor<256xf32> -> tensor<f32>
    nn.yield %t : tensor<f32>
  }
  %sum = nn.kernel loop (%p = %loss, %o = %q) : (tensor<f32>, tensor<f32>) -> (tensor<f32>) {
    %t = nn.add %p, %o : tensor<f32>
    nn.yield %t : tensor<f32>
  }
  %d = nn.dot %a, %w : (tensor<256x1024xf32>, tensor<1024x1024xf32>) -> tensor<256x1024xf32>
  %g = nn.dot %z, %d : (tensor<1024x256xf32>, tensor<256x1024xf32>) -> tensor<1024x1024xf32>
  %next = nn.kernel loop (%p = %w, %o = %g) : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>) {
    %t = nn.mul %p, %o : tensor<1024x1024xf32>
    nn.yield %t : tensor<1024x1024xf32>
  }
  return %next, %sum : tensor<1024x1024xf32>, tensor<f32>
}

func.func @eval(%x: tensor<256x1024xf32> {train.binding = #train.batch<"x">},
                %w: tensor<1024x1024xf32> {train.binding = #train.param<"w">})
    -> (tensor<256x1024xf32> {train.binding = #train.output<"a">}) {
  %a = nn.dot %x, %w : (tensor<256x1024xf32>, tensor<1024x1024xf32>) -> tensor<256x1024xf32>
  return %a : tensor<256x1024xf32>
}
