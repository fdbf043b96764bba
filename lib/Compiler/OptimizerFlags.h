//===- OptimizerFlags.h - flags that optimizers and schedules have --------===//
//
// One row a flag; train-optimize knows which optimizer or schedule takes it,
// and its default.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace lowtide {

struct ValueFlag {
  const char *flag; ///< without dashes
  const char *text;
  bool isSwitch = false; ///< takes no value
};

inline constexpr ValueFlag optimizerFlags[] = {
    {"betas", "Two decay rates: adam, adamw, nadam, radam, adamax, lamb (0.9,0.999), lion (0.9,0.99)"},
    {"eps", "Added to the denominator (1e-8; adagrad: 1e-10, adadelta and lamb: 1e-6, muon: 1e-7)"},
    {"weight-decay", "adamw (0.01), muon (0.1), lion, lamb, adafactor (0): decoupled; others: L2 in the gradient (0)"},
    {"momentum", "sgd, rmsprop: momentum factor (0); muon: decay of the buffer (0.95)"},
    {"dampening", "sgd: part of the gradient kept out of the momentum buffer (0)"},
    {"lr-decay", "adagrad: learning rate / (1 + step * lr_decay) (0)"},
    {"initial-accumulator-value", "adagrad: first sum of squares (0)"},
    {"nesterov", "sgd: Nesterov momentum", true},
    {"amsgrad", "adam, adamw: divide by the largest second moment so far", true},
    {"maximize", "Step along the gradient, not against it", true},
    {"alpha", "rmsprop: decay of the average of squares (0.99); asgd: power of the rate's decay (0.75)"},
    {"centered", "rmsprop: divide by the root of the variance", true},
    {"momentum-decay", "nadam: how fast the momentum's warm-up ends (0.004)"},
    {"decoupled-weight-decay", "nadam, radam, lamb: weight decay as in AdamW", true},
    {"rho", "adadelta: decay of both averages (0.9)"},
    {"lambd", "asgd: decay (1e-4)"},
    {"t0", "asgd: step from which parameters are averaged (1e6)"},
    {"etas", "rprop: factors on a step size (0.5,1.2)"},
    {"step-sizes", "rprop: smallest and largest step size (1e-6,50)"},
    {"beta2-decay", "adafactor: power of the step that the averages' weight falls with (-0.8)"},
    {"eps1", "adafactor: root of the smallest variance (-1: epsilon of the type)"},
    {"eps2", "adafactor: smallest root mean square of a parameter (1e-3)"},
    {"clip-threshold", "adafactor: root mean square from which a step is scaled down (1)"},
    {"ns-steps", "muon: Newton-Schulz iterations (5)"},
    {"ns-coefficients", "muon: of the iteration (3.4445,-4.775,2.0315)"},
    {"adjust-lr-fn", "muon: original, match_rms_adamw or spectral_unclamped (original)"},
};

inline constexpr ValueFlag scheduleFlags[] = {
    {"power", "polynomial: of the part that is left (1)"},
    {"gamma", "step, multistep, exponential: factor on the rate (0.1)"},
    {"step-size", "step: steps between two factors"},
    {"milestones", "multistep: steps at which the rate falls, with commas"},
    {"timescale", "inverse-sqrt: steps (--warmup-steps, or 10000)"},
    {"pct-start", "one-cycle: part of the steps until --lr is reached (0.3)"},
    {"div-factor", "one-cycle: --lr over the first rate (25)"},
    {"final-div-factor", "one-cycle: first rate over the last (1e4)"},
    {"curve", "one-cycle: cosine or linear; wsd: cosine, linear or 1-sqrt (cosine)"},
    {"restart-steps", "cosine-restarts: steps of the first half cosine"},
    {"restart-mult", "cosine-restarts: length of each over that of the one before (1)"},
    {"decay-steps", "wsd: steps of the decay, which ends at --total-steps"},
};

} // namespace lowtide
