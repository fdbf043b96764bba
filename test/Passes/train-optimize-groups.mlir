// PyTorch's SGD is one optimizer, and two updates here: a group's momentum chooses, as --momentum does for all.

// RUN: lowtide-opt %s --train-optimize="optimizer=adamw group=l.bias:optimizer=sgd,momentum=0.5,nesterov=1" --verify-step 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: remark: @train: 1 updates by adamw, 1 by momentum
// OTHER: train.momentum {{.*}}momentum = 5.000000e-01 : f64, nesterov = 1.000000e+00 : f64
// RUN: lowtide-opt %s --train-optimize="optimizer=sgd group=l.bias:momentum=0.5" --verify-step 2>&1 | FileCheck %s --check-prefix=MORE
// MORE: remark: @train: 1 updates by sgd, 1 by momentum
// RUN: lowtide-opt %s --train-optimize="optimizer=sgd options=momentum=0.9;dampening=0.5 group=l.bias:momentum=0" --verify-step 2>&1 | FileCheck %s --check-prefix=LESS
// LESS: remark: @train: 1 updates by momentum, 1 by sgd
// RUN: lowtide-opt %s --train-optimize="optimizer=sgd options=momentum=0.9 group=l.bias:optimizer=sgd,weight_decay=0" --verify-step 2>&1 | FileCheck %s --check-prefix=ALL
// ALL: remark: @train: 2 updates by momentum
// RUN: lowtide-opt %s --train-optimize="optimizer=muon fallback=sgd:momentum=0.5" --verify-step 2>&1 | FileCheck %s --check-prefix=FALLBACK
// FALLBACK: remark: @train: 2 updates by momentum
// RUN: not lowtide-opt %s --train-optimize="group=l.bias:optimizer=sgd,nesterov=1" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: group: sgd has no option 'nesterov'; it has lr, lr_scale, maximize, weight_decay, and with momentum=0.9 lr, lr_scale, maximize, momentum, dampening, nesterov, weight_decay
// RUN: not lowtide-opt %s --train-optimize="group=l.bias:optimizer=sgd,momentum=0,nesterov=1" 2>&1 | FileCheck %s --check-prefix=ZERO
// ZERO: error: --nesterov needs a momentum above 0

// An optimizer of hidden matrices that finds none says so, and what takes their place.
// RUN: lowtide-opt %s --train-optimize="optimizer=muon" 2>&1 | FileCheck %s --check-prefix=HIDDEN
// HIDDEN: warning: --optimizer=muon updates hidden matrices, and none of the 2 parameters that are trained is one: all are updated by adamw; --group='PATTERN:optimizer=muon' gives it the matrices of a pattern
// RUN: lowtide-opt %s --train-optimize="optimizer=muon group=l.weight:optimizer=muon" 2>&1 | FileCheck %s --check-prefix=GIVEN
// GIVEN-NOT: warning

// Of PyTorch's schedules some fall to one rate in every group; a group's own rate is a part of all others.
// RUN: lowtide-opt %s --train-optimize="optimizer=sgd lr=0.1 min-lr=0.02 schedule=cosine total-steps=9 warmup-steps=3 group=l.bias:lr=0.06" --verify-step | FileCheck %s --check-prefix=ONE
// ONE-DAG: %[[LR:.*]]: tensor<f32> {train.binding = #train.scalar<"lr">}
// ONE: %[[OWN:.*]] = nn.select
// ONE: train.sgd {{.*}} lr %[[OWN]] step {{.*}}lr_scale = 1.000000e+00
// RUN: lowtide-opt %s --train-optimize="optimizer=sgd lr=0.1 min-lr=0.02 schedule=cosine total-steps=9 group=l.bias:lr_scale=0.5" --verify-step | FileCheck %s --check-prefix=PART
// RUN: lowtide-opt %s --train-optimize="optimizer=sgd lr=0.1 min-lr=0.02 schedule=linear total-steps=9 group=l.bias:lr=0.05" --verify-step | FileCheck %s --check-prefix=PART
// PART: train.sgd {{.*}}lr_scale = 5.000000e-01
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd lr=1e-3 min-lr=1e-3 schedule=cosine total-steps=9 group=l.bias:lr=2e-3" 2>&1 | FileCheck %s --check-prefix=FLAT
// FLAT: error: group: the fall of lr=0.002 to --min-lr=0.001 cannot be told from that of --lr=0.001, which is none: give --lr a rate above it

func.func @gradient(%x: tensor<8x4xf32> {train.binding = #train.batch<"x">},
                    %w: tensor<4x3xf32> {train.binding = #train.param<"l.weight">},
                    %b: tensor<3xf32> {train.binding = #train.param<"l.bias">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">},
        tensor<4x3xf32> {train.binding = #train.gradient<"l.weight">},
        tensor<3xf32> {train.binding = #train.gradient<"l.bias">}) {
  %h = nn.dot %x, %w : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
  %loss = nn.reduce_sum %h dims = [0, 1] : tensor<8x3xf32> -> tensor<f32>
  return %loss, %w, %b : tensor<f32>, tensor<4x3xf32>, tensor<3xf32>
}
