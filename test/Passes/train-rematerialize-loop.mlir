// RUN: lowtide-opt %s --train-set-target=threads-max=1 --train-rematerialize=device-budget=6400 | FileCheck %s
// RUN: lowtide-opt %s --train-set-target=threads-max=1 --train-rematerialize=device-budget=6400 -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: lowtide-opt %s --train-set-target=threads-max=1 --train-rematerialize=device-budget=1MiB | FileCheck %s --check-prefix=LARGE
// RUN: lowtide-opt %s --train-set-target=threads-max=1 --train-rematerialize=device-budget=6400 --plan-lower --plan-place --verify-budget --verify-plan | FileCheck %s --check-prefix=PLAN
// RUN: not lowtide-opt %s --train-set-target=threads-max=1 --train-rematerialize=device-budget=5000 2>&1 | FileCheck %s --check-prefix=SMALL

// A round has three values of 1 KiB at once: its part of the batch and two activations, then three activations. One is
// recomputed, from the parameter that the round reads from outside; the sums that it hands on stay.
// CHECK: train.accumulate 2 slices(%[[XK:.*]] = %{{.*}}) carries(%{{.*}} = %{{.*}}, %[[GK:.*]] = %{{.*}})
// CHECK: %[[A1:.*]] = nn.kernel loop (%{{.*}} = %[[W:[a-z0-9]+]])
// CHECK-NEXT: nn.exp
// CHECK: %[[A2:.*]] = nn.kernel loop (%{{.*}} = %[[A1]], %{{.*}} = %[[XK]])
// CHECK: %[[D3:.*]] = nn.kernel loop (%{{.*}} = %{{.*}}, %{{.*}} = %[[A2]])
// CHECK: %[[AGAIN:.*]] = train.remat %[[W]] after(%[[D3]]) : tensor<256xf32>, tensor<256xf32>
// CHECK: %[[B1:.*]] = nn.kernel loop (%{{.*}} = %[[AGAIN]]) attributes {train.recomputed}
// CHECK: %[[D1:.*]] = nn.kernel loop (%{{.*}} = %[[D3]], %{{.*}} = %[[B1]])
// CHECK: nn.kernel loop (%{{.*}} = %[[D1]], %{{.*}} = %[[GK]])
// CHECK: train.next

// REMARK: remark: @train: peak 4.06 KiB → 3.06 KiB (1 values recomputed, +{{.*}} % FLOPs
// REMARK-SAME: ; saved activations 3.00 KiB → 2.00 KiB
// REMARK: note: each of 2 rounds: peak 3.00 KiB → 2.00 KiB (1 values recomputed

// LARGE-NOT: train.remat
// LARGE-NOT: train.recomputed

// PLAN: plan.arena @transient transient in device bytes 3072 align 64

// Two parts are what it has already.
// SMALL: error: @train cannot fit 4.88 KiB (5000 bytes)
// SMALL: note: what helps: the batch of 512 in more parts (--micro-batches=4 or more)

func.func @train(%x: tensor<512xf32> {train.binding = #train.batch<"x">},
                 %w: tensor<256xf32> {train.binding = #train.param<"w">})
    -> (tensor<256xf32> {train.binding = #train.param<"w">}, tensor<f32> {train.binding = #train.metric<"loss">}) {
  %lz = nn.kernel loop () : () -> (tensor<f32>) {
    %s = nn.constant dense<0.0> : tensor<f32>
    nn.yield %s : tensor<f32>
  }
  %gz = nn.kernel loop () : () -> (tensor<256xf32>) {
    %s = nn.constant dense<0.0> : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %loss, %g = train.accumulate 2 slices(%xk = %x) carries(%l = %lz, %gk = %gz)
      : (tensor<512xf32>, tensor<f32>, tensor<256xf32>) -> (tensor<f32>, tensor<256xf32>) {
    %a1 = nn.kernel loop (%a = %w) : (tensor<256xf32>) -> (tensor<256xf32>) {
      %s = nn.exp %a : tensor<256xf32>
      nn.yield %s : tensor<256xf32>
    } loc("layer1")
    %a2 = nn.kernel loop (%a = %a1, %b = %xk) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
      %s = nn.mul %a, %b : tensor<256xf32>
      nn.yield %s : tensor<256xf32>
    }
    %a3 = nn.kernel loop (%a = %a2) : (tensor<256xf32>) -> (tensor<256xf32>) {
      %s = nn.exp %a : tensor<256xf32>
      nn.yield %s : tensor<256xf32>
    }
    %lk = nn.kernel row (%a = %a3, %b = %l) : (tensor<256xf32>, tensor<f32>) -> (tensor<f32>) {
      %s = nn.reduce_sum %a dims = [0] : tensor<256xf32> -> tensor<f32>
      %t = nn.add %s, %b : tensor<f32>
      nn.yield %t : tensor<f32>
    }
    %d3 = nn.kernel loop (%a = %a3, %b = %a2) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
      %s = nn.mul %a, %b : tensor<256xf32>
      nn.yield %s : tensor<256xf32>
    }
    %d1 = nn.kernel loop (%a = %d3, %b = %a1) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
      %s = nn.mul %a, %b : tensor<256xf32>
      nn.yield %s : tensor<256xf32>
    }
    %gn = nn.kernel loop (%a = %d1, %b = %gk) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
      %s = nn.add %a, %b : tensor<256xf32>
      nn.yield %s : tensor<256xf32>
    }
    train.next carries(%lk, %gn : tensor<f32>, tensor<256xf32>)
  }
  %new = nn.kernel loop (%a = %w, %b = %g) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.sub %a, %b : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  return %new, %loss : tensor<256xf32>, tensor<f32>
}
