// RUN: not lowtide-opt %s --train-optimize="optimizer=tiger" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd options=beta1=0.9" 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not lowtide-opt %s --train-optimize="optimizer=momentum options=momentum=1.5" 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd lr=fast" 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd schedule=steps" 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd schedule=linear" 2>&1 | FileCheck %s --check-prefix=STEPS
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd group=bias" 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd group=bias:beta1=0.5" 2>&1 | FileCheck %s --check-prefix=GROUPOPTION
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd group=bias:beta=1" 2>&1 | FileCheck %s --check-prefix=GROUPWORD
// RUN: not lowtide-opt %s --train-optimize="optimizer=adam group=bias:betas=0.9,0.95" 2>&1 | FileCheck %s --check-prefix=GROUPLIST
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd group=[bias:lr=1" 2>&1 | FileCheck %s --check-prefix=GLOB
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd group=gamma:weight_decay=0" 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not lowtide-opt %s --train-optimize="optimizer=rmsprop convention=onnx" 2>&1 | FileCheck %s --check-prefix=ONNX
// RUN: not lowtide-opt %s --train-optimize="optimizer=adam convention=onnx options=amsgrad" 2>&1 | FileCheck %s --check-prefix=AMSGRAD
// RUN: not lowtide-opt %s --train-optimize="optimizer=adam options=amsgrad=2" 2>&1 | FileCheck %s --check-prefix=SWITCH
// RUN: not lowtide-opt %s --train-optimize="optimizer=adafactor options=beta2_decay=0.8" 2>&1 | FileCheck %s --check-prefix=POSITIVE
// RUN: not lowtide-opt %s --train-optimize="optimizer=rprop options=etas=0.5,0.9" 2>&1 | FileCheck %s --check-prefix=ETAS
// RUN: not lowtide-opt %s --train-optimize="optimizer=muon options=adjust_lr_fn=adam" 2>&1 | FileCheck %s --check-prefix=ADJUST
// RUN: not lowtide-opt %s --train-optimize="optimizer=muon options=ns_coefficients=1,2" 2>&1 | FileCheck %s --check-prefix=THREE
// RUN: not lowtide-opt %s --train-optimize="optimizer=adamw fallback=sgd" 2>&1 | FileCheck %s --check-prefix=FALLBACK
// RUN: not lowtide-opt %s --train-optimize="optimizer=muon fallback=muon" 2>&1 | FileCheck %s --check-prefix=ITSELF
// RUN: not lowtide-opt %s --train-optimize="optimizer=muon fallback=adamw:momentum=0.5" 2>&1 | FileCheck %s --check-prefix=FALLBACKOPTION
// RUN: not lowtide-opt %s --train-optimize="optimizer=muon group=bias:optimizer=muon" 2>&1 | FileCheck %s --check-prefix=MATRIX
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd group=bias:optimizer=adamv" 2>&1 | FileCheck %s --check-prefix=GROUPNAME
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd schedule=step" 2>&1 | FileCheck %s --check-prefix=STEPSIZE
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd schedule=cosine total-steps=9 schedule-options=gamma=0.5" 2>&1 | FileCheck %s --check-prefix=GAMMA
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd schedule=multistep schedule-options=milestones=9,5" 2>&1 | FileCheck %s --check-prefix=ASCENDING
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd schedule=multistep" 2>&1 | FileCheck %s --check-prefix=MILESTONES
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd schedule=one-cycle total-steps=9 warmup-steps=2" 2>&1 | FileCheck %s --check-prefix=CYCLE
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd schedule=one-cycle total-steps=3" 2>&1 | FileCheck %s --check-prefix=RISE
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd schedule=one-cycle total-steps=9 schedule-options=curve=1-sqrt" 2>&1 | FileCheck %s --check-prefix=CURVE
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd schedule=wsd total-steps=9 schedule-options=decay_steps=10" 2>&1 | FileCheck %s --check-prefix=DECAY
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd schedule=exponential min-lr=1e-5" 2>&1 | FileCheck %s --check-prefix=LEAST
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd min-lr=1e-5" 2>&1 | FileCheck %s --check-prefix=CONSTANT
// RUN: not lowtide-opt %s --train-optimize="optimizer=sgd lr=1e-3 schedule=cosine total-steps=9 min-lr=2e-3" 2>&1 | FileCheck %s --check-prefix=LESS
// RUN: not lowtide-opt %s --train-optimize --train-optimize 2>&1 | FileCheck %s --check-prefix=TWICE

// TWICE: error: there is a @train already: updates are added once
// UNKNOWN: error: optimizer: 'tiger' is none of adadelta, {{.*}}, rprop, sgd
// OPTION: error: --betas is of adam, adamax, adamw, lamb, lion, nadam, radam; it has no effect on --optimizer=sgd, which takes --maximize, --weight-decay, and with --momentum --maximize, --momentum, --dampening, --nesterov, --weight-decay
// RANGE: error: --momentum: momentum must lie in [0, 1), found 1.5{{$}}
// NUMBER: error: lr: must be a number of at least 0, not 'fast'
// SCHEDULE: error: schedule: 'steps' is none of constant, linear, cosine, polynomial, step, {{.*}}, wsd; did you mean 'step'?
// STEPS: error: schedule linear decays until --total-steps, which must exceed --warmup-steps=0, found 0
// GROUP: error: group: 'bias' is not of the form pattern,pattern:option=value,option=value
// GROUPOPTION: error: group: sgd has no option 'beta1'; it has lr, lr_scale, maximize, weight_decay
// GROUPWORD: error: group: 'beta' is none of lr, optimizer, moments, master, adjust_lr_fn, alpha, amsgrad, beta1, {{.*}}; did you mean 'beta1'?
// GROUPLIST: error: group: 'betas' in 'bias:betas=0.9,0.95' are two options here, as in beta1=…,beta2=…
// GLOB: error: group: pattern '[bias'
// ONNX: error: --convention=onnx: ONNX has no optimizer rmsprop; with PyTorch's convention it is there, and ONNX's has adagrad, adam, adamw, momentum, sgd
// AMSGRAD: error: --amsgrad is PyTorch's: ONNX's formula of adam has none; leave out --convention=onnx
// SWITCH: error: --amsgrad: amsgrad must be 0 or 1, found 2{{$}}
// POSITIVE: error: --beta2-decay: beta2_decay must not be positive, found 0.8{{$}}
// ETAS: error: --etas: etaplus must be above 1, found 0.9{{$}}
// ADJUST: error: --adjust-lr-fn: 'adam' is none of original, match_rms_adamw, spectral_unclamped
// THREE: error: --ns-coefficients takes three numbers, as in --ns-coefficients=3.4445,-4.775,2.0315; '1,2' has 2
// FALLBACK: error: --fallback has no effect on --optimizer=adamw, which updates every parameter itself
// ITSELF: error: fallback: muon does not update every parameter, either; as in --fallback=adamw
// FALLBACKOPTION: error: fallback: adamw has no option 'momentum'; it has lr, lr_scale, maximize, beta1, beta2, eps, weight_decay, amsgrad
// MATRIX: error: group: muon updates matrices, and 'l.bias' is 'tensor<4xf32>'; give its group optimizer=adamw
// GROUPNAME: error: group: optimizer: 'adamv' is none of {{.*}}; did you mean 'adam'?
// STEPSIZE: error: schedule step needs --step-size: step_size must be a number of steps above 0
// GAMMA: error: --gamma is of --schedule=step, multistep, exponential; it has no effect on --schedule=cosine
// ASCENDING: error: --milestones are steps in ascending order
// MILESTONES: error: schedule multistep needs the steps at which the rate falls, as in --milestones=1000,3000
// CYCLE: error: --warmup-steps has no effect on --schedule=one-cycle, which warms up over --pct-start of its steps
// RISE: error: schedule one-cycle: --pct-start=0.3 of --total-steps=3 is no more than one step
// CURVE: error: --curve=1-sqrt is none of schedule one-cycle: it has cosine, linear
// DECAY: error: schedule wsd: --decay-steps=10 exceeds the 9 steps between warm-up and --total-steps
// LESS: error: min_lr must lie between 0 and lr = 0.001, found 0.002
// LEAST: error: --min-lr has no effect on --schedule=exponential
// CONSTANT: error: --min-lr has no effect on --schedule=constant
// EMPTY: error: group: pattern 'gamma' matches nothing among the parameters that are trained

func.func @gradient(%w: tensor<4xf32> {train.binding = #train.param<"l.bias">})
    -> (tensor<f32> {train.binding = #train.metric<"loss">}, tensor<4xf32> {train.binding = #train.gradient<"l.bias">}) {
  %loss = nn.reduce_sum %w dims = [0] : tensor<4xf32> -> tensor<f32>
  return %loss, %w : tensor<f32>, tensor<4xf32>
}
