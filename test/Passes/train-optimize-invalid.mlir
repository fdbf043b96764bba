// RUN: not lowtide-opt %s --train-optimize="optimizer=lion" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd options=beta1=0.9" 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not lowtide-opt %s --train-optimize="optimizer=momentum options=momentum=1.5" 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd lr=fast" 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd schedule=step" 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd schedule=linear" 2>&1 | FileCheck %s --check-prefix=STEPS
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd group=bias" 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd group=bias:rate=1" 2>&1 | FileCheck %s --check-prefix=GROUPOPTION
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd group=[bias:lr=1" 2>&1 | FileCheck %s --check-prefix=GLOB
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd group=gamma:weight_decay=0" 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not lowtide-opt %s --train-optimize --train-optimize 2>&1 | FileCheck %s --check-prefix=TWICE

// TWICE: error: there is a @train already: updates are added once
// UNKNOWN: error: optimizer: 'lion' is none of {{.*}}momentum, sgd
// OPTION: error: --betas is of adam, adamw; it has no effect on --optimizer=sgd, which takes --weight-decay, and with --momentum --momentum, --dampening, --nesterov, --weight-decay
// RANGE: error: --momentum: momentum must lie in [0, 1), found 1.50
// NUMBER: error: lr: 'fast' is not a finite number
// SCHEDULE: error: schedule: 'step' is none of constant, linear, cosine
// STEPS: error: schedule linear decays until total_steps, which must exceed warmup_steps = 0, found 0
// GROUP: error: group: 'bias' is not of the form pattern,pattern:option=value,option=value
// GROUPOPTION: error: group: sgd has no option 'rate'; it has lr, lr_scale, weight_decay
// GLOB: error: group: pattern '[bias'
// EMPTY: error: group: pattern 'gamma' matches nothing among the parameters that are trained

func.func @gradient(%w: tensor<4xf32> {train.binding = #train.param<"l.bias">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<4xf32> {train.binding = #train.output<"grad/l.bias">}) {
  %loss = nn.reduce_sum %w dims = [0] : tensor<4xf32> -> tensor<f32>
  return %loss, %w : tensor<f32>, tensor<4xf32>
}
