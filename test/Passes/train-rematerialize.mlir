// RUN: lowtide-opt %s --train-set-target=threads-max=1 --train-rematerialize=device-budget=4160 | FileCheck %s
// RUN: lowtide-opt %s --train-set-target=threads-max=1 --train-rematerialize=device-budget=4160 -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: lowtide-opt %s --train-set-target=threads-max=1 --train-rematerialize=device-budget=1MiB | FileCheck %s --check-prefix=LARGE
// RUN: lowtide-opt %s --train-set-target=threads-max=1 --train-rematerialize=device-budget=4160 --plan-lower --plan-place --verify-budget --verify-plan | FileCheck %s --check-prefix=PLAN
// RUN: lowtide-opt %s --train-set-target=threads-max=1 --train-rematerialize="device-budget=4160 bound=true" -o /dev/null 2>&1 | FileCheck %s --check-prefix=BOUND
// RUN: lowtide-opt %s --train-set-target=threads-max=1 --train-rematerialize="device-budget=4160 remat-strategy=lp-rounding" -o /dev/null 2>&1 | FileCheck %s --check-prefix=ROUND
// RUN: lowtide-opt %s --train-set-target=threads-max=1 --train-rematerialize="device-budget=4160 flips=on" | FileCheck %s --check-prefix=FLIPS
// RUN: lowtide-opt %s --train-set-target=threads-max=1 --train-rematerialize="device-budget=1MiB flips=on" | FileCheck %s --check-prefix=KEPT
// RUN: not lowtide-opt %s --train-rematerialize="device-budget=4160 remat-strategy=knapsack" 2>&1 | FileCheck %s --check-prefix=STRATEGY
// RUN: not lowtide-opt %s --train-set-target=threads-max=1 --train-rematerialize=device-budget=4159 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: not lowtide-opt %s --train-rematerialize="device-budget=2KiB" 2>&1 | FileCheck %s --check-prefix=STATIC
// RUN: not lowtide-opt %s --train-rematerialize="device-budget=lots" 2>&1 | FileCheck %s --check-prefix=WORD

// 2112 bytes are parameter, batch and loss; three activations are 3 KiB, of which 2 fit. One runs again, after the
// cotangent that its reader waits for.
// CHECK: module attributes {train.device_budget = 4160 : i64, train.target
// CHECK-LABEL: func.func @train
// CHECK-SAME: %[[X:.*]]: tensor<256xf32> {train.binding = #train.batch<"x">}
// CHECK: %[[A1:.*]] = nn.kernel loop (%{{.*}} = %[[X]])
// CHECK: %[[A2:.*]] = nn.kernel loop (%{{.*}} = %[[A1]])
// CHECK: %[[A3:.*]] = nn.kernel loop (%{{.*}} = %[[A2]])
// CHECK: %[[D2:.*]] = nn.kernel loop (%{{.*}} = %{{.*}}, %{{.*}} = %[[A2]])
// CHECK: %[[AGAIN:.*]] = train.remat %[[X]] after(%[[D2]]) : tensor<256xf32>, tensor<256xf32>
// CHECK: %[[B1:.*]] = nn.kernel loop (%{{.*}} = %[[AGAIN]]) attributes {train.recomputed}
// CHECK: nn.kernel loop (%{{.*}} = %[[D2]], %{{.*}} = %[[B1]])

// REMARK: remark: @train: peak 3.00 KiB → 2.00 KiB (1 values recomputed, +{{.*}} % FLOPs{{.*}}); saved activations 3.00 KiB → 2.00 KiB
// REMARK-NOT: remark:

// BOUND: remark: @train: recomputes +{{[0-9.]+}} %; no plan for this kernel graph in this order at 4.06 KiB recomputes less than +{{[0-9.]+}} %
// ROUND: remark: @train: peak 3.00 KiB → 2.00 KiB (1 values recomputed
// STRATEGY: error: remat-strategy: 'knapsack' is none of fit, none, sqrt, greedy-xla, min-cut, lp-rounding

// LARGE-NOT: train.remat
// LARGE-NOT: train.recomputed

// The budgets go from the smallest to that without recomputation, in 31 parts; only the last keeps all.
// FLIPS: func.func @train{{.*}} train.planned_budgets = array<i64: 32, 4160, 5184>
// FLIPS: nn.kernel loop {{.*}} attributes {train.flips = array<i64: 0, 5184, 5150>}
// FLIPS: nn.kernel loop {{.*}} attributes {train.flips = array<i64: 0, 5184, 5150>, train.recomputed}
// FLIPS-NOT: train.flips
// With 1 MiB it is kept as well.
// KEPT: attributes {train.flips = array<i64: 1, 5150, 5184>}
// KEPT-NOT: train.flips

// PLAN: plan.arena @transient transient in device bytes 2048 align 64

// SMALL: error: @train cannot fit 4.06 KiB (4159 bytes): at least 4.06 KiB (4160 bytes) are needed whatever is recomputed
// SMALL: one instruction needs 2.00 KiB at once (layer2): tensor<256xf32> of 1.00 KiB, tensor<256xf32> of 1.00 KiB from 'layer2'{{$}}
// SMALL: note: the smallest plan found has at its peak 4.06 KiB: 1.00 KiB of parameters, 1.06 KiB of batch, 2.00 KiB of saved activations; the largest: tensor<256xf32> of 1.00 KiB (saved activations)
// SMALL: note: the smallest plan found needs 4.06 KiB (4160 bytes); without recomputation it is 5.06 KiB
// SMALL: note: what helps: the batch of 256 in parts (--micro-batches=2 or more), activations in 16 bits (--precision=mixed-bf16), a smaller batch, a larger budget

// STATIC: error: cannot fit 2.00 KiB: parameters, optimizer state and batch alone are 2.06 KiB; at least 4.06 KiB (4160 bytes) are needed whatever is recomputed
// STATIC: note: the largest of them: "x" of 1.00 KiB, "w" of 1.00 KiB
// STATIC: note: the smallest plan found needs 4.06 KiB (4160 bytes); without recomputation it is 5.06 KiB
// STATIC: note: what helps: parameters in 16 bits (--precision=bf16), a smaller batch, a larger budget
// WORD: error: device-budget: 'lots' is no number of bytes; write 8MiB, 1.5GiB, 800MB, 4096 or 50%

func.func @train(%x: tensor<256xf32> {train.binding = #train.batch<"x">},
                 %w: tensor<256xf32> {train.binding = #train.param<"w">})
    -> (tensor<256xf32> {train.binding = #train.param<"w">}, tensor<f32> {train.binding = #train.metric<"loss">}) {
  %a1 = nn.kernel loop (%a = %x) : (tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.exp %a : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %a2 = nn.kernel loop (%a = %a1) : (tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.tanh %a : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %a3 = nn.kernel loop (%a = %a2) : (tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.exp %a : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %loss = nn.kernel row (%a = %a3) : (tensor<256xf32>) -> (tensor<f32>) {
    %s = nn.reduce_sum %a dims = [0] : tensor<256xf32> -> tensor<f32>
    nn.yield %s : tensor<f32>
  }
  %d3 = nn.kernel loop (%a = %a3) : (tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.mul %a, %a : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %d2 = nn.kernel loop (%a = %d3, %b = %a2) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.mul %a, %b : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  } loc("layer2")
  %d1 = nn.kernel loop (%a = %d2, %b = %a1) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.mul %a, %b : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  %new = nn.kernel loop (%a = %w, %b = %d1) : (tensor<256xf32>, tensor<256xf32>) -> (tensor<256xf32>) {
    %s = nn.sub %a, %b : tensor<256xf32>
    nn.yield %s : tensor<256xf32>
  }
  return %new, %loss : tensor<256xf32>, tensor<f32>
}
