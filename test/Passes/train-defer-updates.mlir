// Updates move into the step after: what they need is left as pending state, and the first reader of a parameter comes
// after its update.
// RUN: split-file %s %t
// RUN: lowtide-opt %t/clipped.mlir --train-defer-updates=updates=deferred --verify-step 2>/dev/null | FileCheck %t/clipped.mlir
// RUN: lowtide-opt %t/clipped.mlir --train-defer-updates=updates=deferred -o /dev/null 2>&1 | FileCheck %s --check-prefix=SAID
// RUN: lowtide-opt %t/clipped.mlir --train-defer-updates --verify-step | FileCheck %s --check-prefix=NOW
// RUN: lowtide-opt %t/scaled.mlir --train-defer-updates=updates=deferred --verify-step 2>/dev/null | FileCheck %t/scaled.mlir
// RUN: not lowtide-opt %t/clipped.mlir --train-defer-updates=updates=deferred --train-defer-updates=updates=deferred 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not lowtide-opt %t/own.mlir --train-defer-updates=updates=deferred 2>&1 | FileCheck %s --check-prefix=OWN
// RUN: not lowtide-opt %t/reads.mlir --train-defer-updates=updates=deferred 2>&1 | FileCheck %s --check-prefix=READS
// RUN: not lowtide-opt %t/output.mlir --train-defer-updates=updates=deferred 2>&1 | FileCheck %s --check-prefix=OUTPUT
// RUN: not lowtide-opt %t/clipped.mlir --train-defer-updates=updates=later 2>&1 | FileCheck %s --check-prefix=WORD

// SAID: remark: @train: 1 updates wait for the next step, and with them 48 bytes of gradients
// NOW-NOT: pending
// NOW-NOT: @flush
// TWICE: error: there is a @flush already: updates are deferred once
// OWN: error: unsupported: the update of 'w' is part of the file, and which gradient it reads is not known
// OWN: note: leave out --updates=deferred
// READS: error: unsupported: an update reads 'tensor<8xf32>' besides its gradient: it cannot wait for the next step
// OUTPUT: error: unsupported: @train returns 'y', which a pending update would overwrite before it is read
// WORD: error: updates: 'later' is none of now, deferred

//--- clipped.mlir
// The gradient waits as it was before it was clipped, and with it the norm, not what is made of it.
// CHECK-LABEL: func.func @train(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<8xf32> {train.binding = #train.param<"w">, train.group = "all"}, %[[M:[a-z0-9]+]]: tensor<8xf32> {train.binding = #train.state<"w.m">}
// CHECK-SAME: %[[LR:[a-z0-9]+]]: tensor<f32> {train.binding = #train.scalar<"lr">}, %[[STEP:[a-z0-9]+]]: tensor<i64> {train.binding = #train.scalar<"step">}
// CHECK-SAME: %[[FLAG:[a-z0-9]+]]: tensor<i1> {train.binding = #train.state<"pending", pending>}
// CHECK-SAME: %[[G:[a-z0-9]+]]: tensor<8xf32> {train.binding = #train.state<"pending/grad/w", pending>}
// CHECK-SAME: %[[NORM:[a-z0-9]+]]: tensor<f32> {train.binding = #train.state<"pending/global_norm", pending>}
// CHECK-SAME: %[[OLDLR:[a-z0-9]+]]: tensor<f32> {train.binding = #train.state<"pending/lr", pending>}
// CHECK-SAME: %[[OLDSTEP:[a-z0-9]+]]: tensor<i64> {train.binding = #train.state<"pending/step", pending>}
// What reads no parameter comes first.
// CHECK-NEXT: nn.exp
// CHECK-NEXT: %[[C:.*]] = train.clip_norm %[[G]] norm %[[NORM]]
// CHECK-NEXT: %[[NEW:.*]], %[[NEXT:.*]] = train.momentum %[[W]] gradient %[[C]] lr %[[OLDLR]] step %[[OLDSTEP]] state %[[M]]
// CHECK-NEXT: %[[W1:.*]] = train.commit %[[NEW]] or %[[W]] if %[[FLAG]]
// CHECK-NEXT: %[[M1:.*]] = train.commit %[[NEXT]] or %[[M]] if %[[FLAG]]
// CHECK-NEXT: nn.mul %[[W1]]
// CHECK: %[[G1:.*]] = nn.mul %{{.*}}, %[[W1]]
// CHECK: %[[NORM1:.*]] = train.global_norm %[[G1]]
// CHECK-NOT: train.clip_norm
// CHECK: %[[TRUE:.*]] = nn.constant dense<true>
// CHECK: return %{{.*}}, %[[NORM1]], %[[W1]], %[[M1]], %[[TRUE]], %[[G1]], %[[NORM1]], %[[LR]], %[[STEP]]
// CHECK-LABEL: func.func @flush(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<8xf32> {train.binding = #train.param<"w">, train.group = "all"}
// CHECK-NOT: train.batch
// CHECK: train.commit
// CHECK: %[[FALSE:.*]] = nn.constant dense<false>
// CHECK: return %{{.*}}, %{{.*}}, %[[FALSE]]
func.func @train(%w: tensor<8xf32> {train.binding = #train.param<"w">, train.group = "all"}, %m: tensor<8xf32> {train.binding = #train.state<"w.m">},
                 %x: tensor<8xf32> {train.binding = #train.batch<"x", dim = -1>}, %lr: tensor<f32> {train.binding = #train.scalar<"lr">},
                 %step: tensor<i64> {train.binding = #train.scalar<"step">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<f32> {train.binding = #train.metric<"grad_norm">},
        tensor<8xf32> {train.binding = #train.param<"w">}, tensor<8xf32> {train.binding = #train.state<"w.m">}) {
  %early = nn.exp %x : tensor<8xf32>
  %y = nn.mul %w, %early : tensor<8xf32>
  %loss = nn.reduce_sum %y dims = [0] : tensor<8xf32> -> tensor<f32>
  %g = nn.mul %early, %w : tensor<8xf32>
  %norm = train.global_norm %g : (tensor<8xf32>) -> tensor<f32>
  %c = train.clip_norm %g norm %norm {max_norm = 1.0 : f64} : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %new, %next = train.momentum %w gradient %c lr %lr step %step state %m {lr_scale = 1.0, weight_decay = 0.0, momentum = 0.9, dampening = 0.0, nesterov = 0.0} : tensor<8xf32>, tensor<f32>, tensor<i64>
  return %loss, %norm, %new, %next : tensor<f32>, tensor<f32>, tensor<8xf32>, tensor<8xf32>
}

//--- scaled.mlir
// Whether the step was finite is the flag: what was skipped is not pending. The scale is the next step's at once; of two
// gradients that are unscaled together each waits alone, and a tied weight is updated before its first reader.
// CHECK-LABEL: func.func @train(
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<8xf32> {train.binding = #train.param<"a">}, %[[B:[a-z0-9]+]]: tensor<4xf32> {train.binding = #train.param<"b">}
// CHECK-SAME: %[[SCALE:[a-z0-9]+]]: tensor<f32> {train.binding = #train.state<"loss_scale", initial = 8.000000e+00>}
// CHECK-SAME: %[[FLAG:[a-z0-9]+]]: tensor<i1> {train.binding = #train.state<"pending", pending>}
// CHECK-SAME: %[[GA:[a-z0-9]+]]: tensor<8xf16> {train.binding = #train.state<"pending/grad/a", pending>}
// CHECK-SAME: %[[GB:[a-z0-9]+]]: tensor<4xf32> {train.binding = #train.state<"pending/grad/b", pending>}
// CHECK-SAME: %[[OLD:[a-z0-9]+]]: tensor<f32> {train.binding = #train.state<"pending/loss_scale", pending>}
// CHECK: %[[WIDE:.*]] = nn.cast %[[GA]] : tensor<8xf16> -> tensor<8xf32>
// CHECK: %[[UA:.*]], %{{.*}} = train.unscale %[[WIDE]] by %[[OLD]] : (tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<i1>)
// CHECK: %[[A1:.*]] = train.commit %{{.*}} or %[[A]] if %[[FLAG]]
// CHECK: nn.reduce_sum %[[A1]]
// CHECK: train.unscale %[[GB]] by %[[OLD]] : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<i1>)
// CHECK: %[[B1:.*]] = train.commit %{{.*}} or %[[B]] if %[[FLAG]]
// CHECK: nn.mul %[[B1]], %[[B1]]
// CHECK: nn.mul %[[A1]], %[[A1]]
// CHECK: %{{.*}}:2, %[[FINITE:.*]] = train.unscale %{{.*}}, %{{.*}} by %[[SCALE]]
// CHECK: return %{{.*}}, %[[A1]], %[[B1]], %{{.*}}, %[[FINITE]],
func.func @train(%a: tensor<8xf32> {train.binding = #train.param<"a">}, %b: tensor<4xf32> {train.binding = #train.param<"b">},
                 %scale: tensor<f32> {train.binding = #train.state<"loss_scale", initial = 8.0>}, %lr: tensor<f32> {train.binding = #train.scalar<"lr">},
                 %step: tensor<i64> {train.binding = #train.scalar<"step">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<8xf32> {train.binding = #train.param<"a">},
        tensor<4xf32> {train.binding = #train.param<"b">}, tensor<f32> {train.binding = #train.state<"loss_scale", initial = 8.0>}) {
  %loss = nn.reduce_sum %a dims = [0] : tensor<8xf32> -> tensor<f32>
  %gb = nn.mul %b, %b : tensor<4xf32>
  %again = nn.mul %a, %a : tensor<8xf32>
  %narrow = nn.cast %again : tensor<8xf32> -> tensor<8xf16>
  %ga = nn.cast %narrow : tensor<8xf16> -> tensor<8xf32>
  %ua, %ub, %finite = train.unscale %ga, %gb by %scale : (tensor<8xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<4xf32>, tensor<i1>)
  %next = nn.select %finite, %scale, %loss : tensor<i1>, tensor<f32>
  %a1 = train.sgd %a gradient %ua lr %lr step %step {lr_scale = 1.0, weight_decay = 0.0} : tensor<8xf32>, tensor<f32>, tensor<i64>
  %b1 = train.sgd %b gradient %ub lr %lr step %step {lr_scale = 1.0, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>, tensor<i64>
  %a2 = train.commit %a1 or %a if %finite : (tensor<i1>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %b2 = train.commit %b1 or %b if %finite : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %loss, %a2, %b2, %next : tensor<f32>, tensor<8xf32>, tensor<4xf32>, tensor<f32>
}

//--- own.mlir
func.func @train(%w: tensor<8xf32> {train.binding = #train.param<"w">}) -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<8xf32> {train.binding = #train.param<"w">}) {
  %loss = nn.reduce_sum %w dims = [0] : tensor<8xf32> -> tensor<f32>
  %new = nn.mul %w, %w : tensor<8xf32>
  return %loss, %new : tensor<f32>, tensor<8xf32>
}

//--- reads.mlir
func.func @train(%w: tensor<8xf32> {train.binding = #train.param<"w">}, %x: tensor<8xf32> {train.binding = #train.batch<"x", dim = -1>}, %lr: tensor<f32> {train.binding = #train.scalar<"lr">},
                 %step: tensor<i64> {train.binding = #train.scalar<"step">}) -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<8xf32> {train.binding = #train.param<"w">}) {
  %loss = nn.reduce_sum %w dims = [0] : tensor<8xf32> -> tensor<f32>
  %new = train.sgd %w gradient %w lr %lr step %step {lr_scale = 1.0, weight_decay = 0.0} : tensor<8xf32>, tensor<f32>, tensor<i64>
  %moved = nn.add %new, %x : tensor<8xf32>
  return %loss, %moved : tensor<f32>, tensor<8xf32>
}

//--- output.mlir
func.func @train(%w: tensor<8xf32> {train.binding = #train.param<"w">}, %lr: tensor<f32> {train.binding = #train.scalar<"lr">}, %step: tensor<i64> {train.binding = #train.scalar<"step">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<8xf32> {train.binding = #train.output<"y">}, tensor<8xf32> {train.binding = #train.param<"w">}) {
  %loss = nn.reduce_sum %w dims = [0] : tensor<8xf32> -> tensor<f32>
  %y = nn.mul %w, %w : tensor<8xf32>
  %new = train.sgd %w gradient %y lr %lr step %step {lr_scale = 1.0, weight_decay = 0.0} : tensor<8xf32>, tensor<f32>, tensor<i64>
  return %loss, %y, %new : tensor<f32>, tensor<8xf32>, tensor<8xf32>
}
