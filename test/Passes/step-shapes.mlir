// Functions that are no step are refused by every pass and by the driver: legal IR, and none of them may crash.
// RUN: split-file %s %t
// RUN: not lowtide-opt %t/declared.mlir --onnx-legalize 2>&1 | FileCheck %s --check-prefix=DECLARED
// RUN: not lowtide compile %t/declared.mlir --from=onnx --emit=plan 2>&1 | FileCheck %s --check-prefix=DECLARED
// DECLARED: error: @model has no body
// RUN: not lowtide-opt %t/blocks.mlir --train-scale-loss=loss-scale=dynamic 2>&1 | FileCheck %s --check-prefix=BLOCKS
// RUN: not lowtide-opt %t/blocks.mlir --train-order 2>&1 | FileCheck %s --check-prefix=BLOCKS
// RUN: not lowtide-opt %t/blocks.mlir --plan-lower 2>&1 | FileCheck %s --check-prefix=BLOCKS
// BLOCKS: error: @train is not one block
// BLOCKS: note: a step is one block of operations that ends in a return

// What a pass is told is checked as the driver's flags are.
// RUN: not lowtide-opt %t/step.mlir --train-set-target=target=tpu 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: error: unknown target 'tpu'; did you mean 'cpu'?
// RUN: not lowtide-opt %t/step.mlir --train-set-target=threads-max=0 2>&1 | FileCheck %s --check-prefix=THREADS
// THREADS: error: threads-max: must be a whole number from 1 to 1024, not '0'
// RUN: not lowtide-opt %t/step.mlir --train-chunk-loss-head=chunks=-7 2>&1 | FileCheck %s --check-prefix=CHUNKS
// CHUNKS: error: chunks: must be a whole number from -1 to 1073741824, not '-7'

// The same words as the driver's flags take.
// RUN: not lowtide-opt %t/step.mlir --nn-conv-layout=conv-layout=nhcw 2>&1 | FileCheck %s --check-prefix=LAYOUT
// LAYOUT: error: conv-layout: 'nhcw' is none of auto, nchw, nhwc
// RUN: not lowtide compile %t/step.mlir --from=train --conv-layout=nhcw --emit=plan 2>&1 | FileCheck %s --check-prefix=FLAG
// FLAG: error: --conv-layout: 'nhcw' is none of auto, nchw, nhwc
// RUN: not lowtide-opt %t/step.mlir --train-rematerialize=remat-strategy=best 2>&1 | FileCheck %s --check-prefix=STRATEGY
// STRATEGY: error: remat-strategy: 'best' is none of fit, none, sqrt, greedy-xla, min-cut, lp-rounding
// RUN: not lowtide-opt %t/step.mlir --train-differentiate=precision=f8 2>&1 | FileCheck %s --check-prefix=PRECISION
// RUN: not lowtide-opt %t/step.mlir --train-autocast=precision=f8 2>&1 | FileCheck %s --check-prefix=PRECISION
// PRECISION: error: precision: 'f8' is none of f32, mixed-bf16, mixed-f16, bf16, f16, f64
// RUN: not lowtide-opt %t/step.mlir --nn-split-sums=min-bytes=-5 2>&1 | FileCheck %s --check-prefix=BYTES
// BYTES: '-5' value invalid
// RUN: not lowtide-opt %t/step.mlir --train-sparse-updates=sparse-updates=eager 2>&1 | FileCheck %s --check-prefix=RULES
// RULES: error: sparse-updates: 'eager' is none of exact, lazy, off
// RUN: not lowtide-opt %t/step.mlir --train-scale-loss=clip-norm=-1 2>&1 | FileCheck %s --check-prefix=LIMIT
// LIMIT: error: clip-norm: must be a number of at least 0, not '-1'

// A step without instructions: its result is a copy, 64 bytes next to the argument's 64.
// RUN: not lowtide-opt %t/step.mlir --train-rematerialize=device-budget=100 2>&1 | FileCheck %s --check-prefix=SMALL
// SMALL: the smallest plan found needs 128 bytes
// RUN: lowtide-opt %t/step.mlir --train-rematerialize=device-budget=128 --verify-budget -o /dev/null 2>&1
// RUN: lowtide-opt %t/step.mlir --train-rematerialize=device-budget=100% --verify-budget 2>&1 | FileCheck %s --check-prefix=WHOLE
// WHOLE: train.device_budget = 128

//--- declared.mlir
func.func private @model(tensor<4x3xf32>) -> tensor<4x3xf32>

//--- blocks.mlir
func.func @train(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  "cf.br"()[^bb1] : () -> ()
^bb1:
  return %x : tensor<4x3xf32>
}

//--- step.mlir
func.func @train(%x: tensor<4xf32> {train.binding = #train.batch<"x">}) -> (tensor<4xf32> {train.binding = #train.output<"y">}) {
  return %x : tensor<4xf32>
}
