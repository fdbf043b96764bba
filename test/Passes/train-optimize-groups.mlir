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
