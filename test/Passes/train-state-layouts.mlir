// Optimizer state in fewer bits: arguments are what is stored, updates read and write f32 between two codecs.
// RUN: lowtide-opt %s --train-state-layouts=moments=bf16 2>/dev/null | FileCheck %s --check-prefix=BF16
// RUN: lowtide-opt %s --train-state-layouts=moments=int8 2>/dev/null | FileCheck %s --check-prefix=INT8
// RUN: lowtide-opt %s --train-state-layouts=moments=int8 -o /dev/null 2>&1 | FileCheck %s --check-prefix=SAID
// RUN: lowtide-opt %s --train-state-layouts='moments=fp8 group=w*:moments=f32;*:moments=bf16' 2>/dev/null | FileCheck %s --check-prefix=GROUPS
// RUN: lowtide-opt %s --train-state-layouts | FileCheck %s --check-prefix=NONE
// RUN: lowtide-opt %s --train-state-layouts='master=sr group=w,b:master=f32' 2>/dev/null | FileCheck %s --check-prefix=CHANCE
// RUN: lowtide-opt %S/Inputs/masters.mlir --train-state-layouts=master=split 2>/dev/null | FileCheck %s --check-prefix=SPLIT
// RUN: lowtide-opt %S/Inputs/masters.mlir --train-state-layouts=master=split -o /dev/null 2>&1 | FileCheck %s --check-prefix=SPLIT-SAID
// RUN: lowtide-opt %S/Inputs/masters.mlir --train-state-layouts=master=whole 2>/dev/null | FileCheck %s --check-prefix=WHOLE
// RUN: lowtide-opt %S/Inputs/masters.mlir --train-state-layouts='group=w:master=split' 2>/dev/null | FileCheck %s --check-prefix=ONE
// RUN: not lowtide-opt %S/Inputs/masters.mlir --train-state-layouts='group=norm:master=split' 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not lowtide-opt %s --train-state-layouts=moments=int4 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: not lowtide-opt %s --train-state-layouts='group=w*:moments=sr' 2>&1 | FileCheck %s --check-prefix=GROUP-WORD
// RUN: not lowtide-opt %s --train-state-layouts='master=sr group=half:master=f32;*:lr_scale=1' 2>&1 | FileCheck %s --check-prefix=WIDE

// Rounding to bf16 stands alone; what a skipped step keeps is what was stored.
// BF16-LABEL: func.func @train(
// BF16-SAME: %[[M:arg7]]: tensor<64x80xbf16> {train.binding = #train.state<"w.exp_avg">}
// BF16: %[[READ:.*]] = train.decode_bf16 %[[M]] : (tensor<64x80xbf16>) -> tensor<64x80xf32>
// BF16: %{{.*}}, %[[NEW:.*]]:2 = train.adamw {{.*}} state %[[READ]], {{.*}} : tensor<64x80xf32>
// BF16: %[[STORED:.*]] = train.encode_bf16 %[[NEW]]#0 : (tensor<64x80xf32>) -> tensor<64x80xbf16>
// BF16: %[[KEPT:.*]] = train.commit %[[STORED]] or %[[M]] if
// BF16: return {{.*}}%[[KEPT]]

// Blocks: the update is made in their shape, a scale per block is a tensor of its own; `b` has too few elements.
// INT8-LABEL: func.func @train(
// INT8-SAME: tensor<64x80xui8> {train.binding = #train.state<"w.exp_avg", initial = 1.270000e+02>}
// INT8-SAME: tensor<64x80xui8> {train.binding = #train.state<"w.exp_avg_sq">}
// INT8-SAME: tensor<80xf32> {train.binding = #train.state<"b.exp_avg">}
// INT8-SAME: tensor<20xf32> {train.binding = #train.state<"w.exp_avg.scale", initial = 9.9999999999999998E-13>}
// INT8: train.decode_int8 %{{.*}}, %{{.*}} : (tensor<20x256xui8>, tensor<20xf32>) -> tensor<20x256xf32>
// INT8: train.decode_int8 %{{.*}}, %{{.*}} {non_negative}
// INT8: %{{.*}}, %[[NEW:.*]]:2 = train.adamw {{.*}} : tensor<20x256xf32>
// INT8: train.encode_int8 %[[NEW]]#0 : (tensor<20x256xf32>) -> (tensor<20x256xui8>, tensor<20xf32>)
// INT8: train.encode_int8 %[[NEW]]#1 {non_negative}
// INT8-COUNT-4: train.commit
// INT8: train.adamw {{.*}} : tensor<80xf32>

// SAID: remark: @train: 2 tensors of state in 8-bit codes of a dynamic map and an f32 scale per 256 elements (lossy): 40.00 KiB → 10.16 KiB; 2 stay f32: only tensors of at least 4096 elements in whole blocks of 256 are

// GROUPS-LABEL: func.func @train(
// GROUPS-SAME: tensor<64x80xf32> {train.binding = #train.state<"w.exp_avg">}
// GROUPS-SAME: tensor<80xbf16> {train.binding = #train.state<"b.exp_avg">}

// NONE-NOT: train.decode
// NONE-NOT: train.encode

// CHANCE-LABEL: func.func @half(
// CHANCE-SAME: %[[SEED:arg[0-9]+]]: tensor<i64> {train.binding = #train.scalar<"seed">}
// CHANCE: %[[READ:.*]] = train.decode_sr %arg0 : (tensor<8xbf16>) -> tensor<8xf32>
// CHANCE: %[[NEW:.*]], %[[M:.*]] = train.momentum %[[READ]] {{.*}} : tensor<8xf32>
// CHANCE: %[[P:.*]] = train.encode_sr %[[NEW]], %[[SEED]], %arg3 {stream = 2147483648 : i64} : (tensor<8xf32>, tensor<i64>, tensor<i64>) -> tensor<8xbf16>
// CHANCE: return %[[P]], %[[M]]

// Products read the half, also through a transpose; what reads f32 gets both halves, rows of a table their own. The update
// comes after the last reader of the half.
// SPLIT-LABEL: func.func @train(
// SPLIT-SAME: %[[W:arg0]]: tensor<4x8xbf16> {train.binding = #train.param<"w">}
// SPLIT-SAME: %[[NORM:arg1]]: tensor<8xf32> {train.binding = #train.param<"norm">}
// SPLIT-SAME: %[[LOW:arg[0-9]+]]: tensor<4x8xi16> {train.binding = #train.state<"w.low_half", from_file>}
// SPLIT: %[[T:.*]] = nn.transpose %[[W]] {{.*}} tensor<8x4xbf16>
// SPLIT: %[[HIGH_ROWS:.*]] = nn.gather %[[W]]
// SPLIT: %[[LOW_ROWS:.*]] = nn.gather %[[LOW]]
// SPLIT: nn.join_halves %[[HIGH_ROWS]], %[[LOW_ROWS]]
// SPLIT: nn.dot {{.*}}%[[T]]
// SPLIT: %[[READ:.*]] = train.decode_split %[[W]], %[[LOW]] : (tensor<4x8xbf16>, tensor<4x8xi16>) -> tensor<4x8xf32>
// SPLIT: %[[NEW:.*]], %[[M:.*]] = train.momentum %[[READ]]
// SPLIT: %[[PARTS:.*]]:2 = train.encode_split %[[NEW]]
// SPLIT: %[[P:.*]] = train.commit %[[PARTS]]#0 or %[[W]] if
// SPLIT: %[[L:.*]] = train.commit %[[PARTS]]#1 or %[[LOW]] if
// SPLIT: return %[[P]], %{{.*}}, %{{.*}}, %{{.*}}, %[[L]]
// An entry point that reads f32 alone takes both halves, one that reads bf16 alone takes one.
// SPLIT-LABEL: func.func @gradient(
// SPLIT-SAME: %[[W:.*]]: tensor<4x8xbf16> {train.binding = #train.param<"w">}, %[[LOW:.*]]: tensor<4x8xi16> {train.binding = #train.state<"w.low_half", from_file>}
// SPLIT: %[[BOTH:.*]] = train.decode_split %[[W]], %[[LOW]]
// SPLIT: nn.reduce_sum %[[BOTH]]
// SPLIT-LABEL: func.func @eval(
// SPLIT-SAME: %[[W:.*]]: tensor<4x8xbf16> {train.binding = #train.param<"w">}) ->
// SPLIT: return %[[W]]

// SPLIT-SAID: remark: @train: 1 parameters are f32 masters in a bf16 half, which products read, and the 16 bits that it lacks of f32 (exact); 1 stay f32: nothing reads them in bf16

// WHOLE-LABEL: func.func @train(%arg0: tensor<4x8xf32> {train.binding = #train.param<"w">}
// WHOLE-NOT: low_half
// WHOLE: %[[HIGH:.*]] = nn.high_half %arg0 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
// WHOLE: nn.transpose %[[HIGH]]
// WHOLE: nn.gather %arg0
// WHOLE: train.decode_whole %arg0
// WHOLE: train.encode_whole

// ONE: train.decode_split
// ONE-LABEL: func.func @gradient(

// NOTHING: error: master: no step reads in bf16 what is to be stored in halves; with --precision=bf16 all parameters are, with --precision=mixed-bf16 those of products

// WORD: error: moments: 'int4' is none of f32, bf16, fp8, int8
// GROUP-WORD: error: group: moments: 'sr' is none of f32, bf16, fp8, int8
// WIDE: error: master: sr rounds parameters of bf16, and w is f32; with --precision=bf16 all are, and --group='w:master=f32' leaves one out

func.func @train(%w: tensor<64x80xf32> {train.binding = #train.param<"w">}, %b: tensor<80xf32> {train.binding = #train.param<"b">},
    %gw: tensor<64x80xf32> {train.binding = #train.batch<"gw", dim = -1>}, %gb: tensor<80xf32> {train.binding = #train.batch<"gb", dim = -1>},
    %finite: tensor<i1> {train.binding = #train.batch<"finite", dim = -1>}, %lr: tensor<f32> {train.binding = #train.scalar<"lr">},
    %step: tensor<i64> {train.binding = #train.scalar<"step">},
    %wm: tensor<64x80xf32> {train.binding = #train.state<"w.exp_avg">}, %wv: tensor<64x80xf32> {train.binding = #train.state<"w.exp_avg_sq">},
    %bm: tensor<80xf32> {train.binding = #train.state<"b.exp_avg">}, %bv: tensor<80xf32> {train.binding = #train.state<"b.exp_avg_sq">})
    -> (tensor<64x80xf32> {train.binding = #train.param<"w">}, tensor<64x80xf32> {train.binding = #train.state<"w.exp_avg">},
        tensor<64x80xf32> {train.binding = #train.state<"w.exp_avg_sq">}, tensor<80xf32> {train.binding = #train.param<"b">},
        tensor<80xf32> {train.binding = #train.state<"b.exp_avg">}, tensor<80xf32> {train.binding = #train.state<"b.exp_avg_sq">}) {
  %w1, %wm1, %wv1 = train.adamw %w gradient %gw lr %lr step %step state %wm, %wv {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, lr_scale = 1.0, weight_decay = 0.01} : tensor<64x80xf32>, tensor<f32>, tensor<i64>
  %w2 = train.commit %w1 or %w if %finite : (tensor<i1>, tensor<64x80xf32>, tensor<64x80xf32>) -> tensor<64x80xf32>
  %wm2 = train.commit %wm1 or %wm if %finite : (tensor<i1>, tensor<64x80xf32>, tensor<64x80xf32>) -> tensor<64x80xf32>
  %wv2 = train.commit %wv1 or %wv if %finite : (tensor<i1>, tensor<64x80xf32>, tensor<64x80xf32>) -> tensor<64x80xf32>
  %b1, %bm1, %bv1 = train.adamw %b gradient %gb lr %lr step %step state %bm, %bv {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, lr_scale = 1.0, weight_decay = 0.01} : tensor<80xf32>, tensor<f32>, tensor<i64>
  return %w2, %wm2, %wv2, %b1, %bm1, %bv1 : tensor<64x80xf32>, tensor<64x80xf32>, tensor<64x80xf32>, tensor<80xf32>, tensor<80xf32>, tensor<80xf32>
}

// A parameter of 16 bits: its state is f32.
func.func @half(%half: tensor<8xbf16> {train.binding = #train.param<"half">}, %g: tensor<8xf32> {train.binding = #train.batch<"g", dim = -1>},
    %lr: tensor<f32> {train.binding = #train.scalar<"lr">}, %step: tensor<i64> {train.binding = #train.scalar<"step">},
    %m: tensor<8xf32> {train.binding = #train.state<"half.momentum_buffer">})
    -> (tensor<8xbf16> {train.binding = #train.param<"half">}, tensor<8xf32> {train.binding = #train.state<"half.momentum_buffer">}) {
  %p, %m1 = train.momentum %half gradient %g lr %lr step %step state %m {dampening = 0.0, lr_scale = 1.0, momentum = 0.9, nesterov = 0.0, weight_decay = 0.0} : tensor<8xbf16>, tensor<f32>, tensor<i64>
  return %p, %m1 : tensor<8xbf16>, tensor<8xf32>
}

// Halves of a master are put together and taken apart in the shape of blocks, where the update is, so that all of it is one
// kernel; so is what is rounded by chance.
// RUN: lowtide-opt %S/Inputs/blocked-masters.mlir --train-state-layouts='moments=int8 master=split' 2>/dev/null | FileCheck %s --check-prefix=BLOCKS
// BLOCKS-LABEL: func.func @train(
// BLOCKS-NOT: train.decode_split {{.*}}tensor<64x80xf32>
// BLOCKS: train.decode_split %{{.*}}, %{{.*}} : (tensor<20x256xbf16>, tensor<20x256xi16>) -> tensor<20x256xf32>
// BLOCKS: %[[NEW:[^:,]*]], %{{.*}} = train.momentum {{.*}} : tensor<20x256xf32>
// BLOCKS: %[[PARTS:.*]]:2 = train.encode_split %[[NEW]] : (tensor<20x256xf32>) -> (tensor<20x256xbf16>, tensor<20x256xi16>)
// BLOCKS-DAG: train.commit %[[PARTS]]#0 {{.*}} tensor<20x256xbf16>
// BLOCKS-DAG: train.commit %[[PARTS]]#1 {{.*}} tensor<20x256xi16>

// What decides whether a step counts is found in the shape of blocks, also by averages.
// RUN: lowtide-opt %S/Inputs/blocked-masters.mlir --pass-pipeline='builtin.module(train-state-layouts{moments=int8 master=split},train-average-weights{ema=0.9})' 2>/dev/null | FileCheck %s --check-prefix=AVERAGED
// AVERAGED: %[[MOVED:.*]] = train.moving_average
// AVERAGED: %[[AVERAGE:.*]] = train.commit %[[MOVED]] or
// AVERAGED: %[[COUNT:.*]] = train.commit %{{.*}} or %{{.*}} if {{.*}} : (tensor<i1>, tensor<i64>, tensor<i64>)
// AVERAGED: return {{.*}}%[[AVERAGE]], %[[COUNT]]
