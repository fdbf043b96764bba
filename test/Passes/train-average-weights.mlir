// Averages of weights: state of their own, moved after the update, kept where the step is not committed.
// RUN: lowtide-opt %s --train-average-weights=ema=0.9 2>/dev/null | FileCheck %s
// RUN: lowtide-opt %s --train-average-weights=ema=0.9 -o /dev/null 2>&1 | FileCheck %s --check-prefix=SAID
// RUN: lowtide-opt %S/Inputs/masters.mlir --train-state-layouts=master=split --train-average-weights=ema=0.999 2>/dev/null | FileCheck %s --check-prefix=HALVES
// RUN: not lowtide-opt %s --train-average-weights=ema=1.0 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not lowtide-opt %s --train-average-weights=ema=0.999 --train-average-weights=ema=0.999 2>&1 | FileCheck %s --check-prefix=TWICE

// CHECK-LABEL: func.func @train(
// CHECK-SAME: %[[OLD:arg[0-9]+]]: tensor<8xf32> {train.binding = #train.state<"w.ema">}
// CHECK-SAME: %[[COUNT:arg[0-9]+]]: tensor<i64> {train.binding = #train.state<"ema_updates">}
// CHECK: %[[NEW:.*]] = train.commit
// CHECK: %[[WIDE:.*]] = nn.cast %[[NEW]] : tensor<8xbf16> -> tensor<8xf32>
// CHECK: %[[CHOSEN:.*]] = train.moving_average %[[OLD]] to %[[WIDE]] updates %[[COUNT]] {decay = 9.000000e-01 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<i64>) -> tensor<8xf32>
// CHECK: %[[KEPT:.*]] = train.commit %[[CHOSEN]] or %[[OLD]] if %[[FINITE:.*]] :
// CHECK: %[[MORE:.*]] = nn.add %[[COUNT]]
// CHECK: %[[COUNTED:.*]] = train.commit %[[MORE]] or %[[COUNT]] if %[[FINITE]] :
// CHECK: return %[[NEW]], %[[KEPT]], %[[COUNTED]]

// SAID: remark: @train: averages of 1 parameters take 32 bytes
// HALVES: train.decode_split
// HALVES: %[[NEW:.*]] = train.decode_split %{{.*}}, %{{.*}} : (tensor<4x8xbf16>, tensor<4x8xi16>) -> tensor<4x8xf32>
// HALVES: train.moving_average %{{.*}} to %[[NEW]] updates
// RANGE: error: ema: must lie between 0 and 1, as 0.999 does, not '1.0'
// TWICE: error: ema: @train has a state 'w.ema' already

func.func @train(%w: tensor<8xbf16> {train.binding = #train.param<"w">}, %g: tensor<8xf32> {train.binding = #train.batch<"g", dim = -1>},
    %finite: tensor<i1> {train.binding = #train.batch<"finite", dim = -1>}, %lr: tensor<f32> {train.binding = #train.scalar<"lr">},
    %step: tensor<i64> {train.binding = #train.scalar<"step">}) -> (tensor<8xbf16> {train.binding = #train.param<"w">}) {
  %w1 = train.sgd %w gradient %g lr %lr step %step {lr_scale = 1.0, weight_decay = 0.0} : tensor<8xbf16>, tensor<f32>, tensor<i64>
  %w2 = train.commit %w1 or %w if %finite : (tensor<i1>, tensor<8xbf16>, tensor<8xbf16>) -> tensor<8xbf16>
  return %w2 : tensor<8xbf16>
}
