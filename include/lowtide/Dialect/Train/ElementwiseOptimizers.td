// Further optimizers whose update is elementwise. PyTorch has none of them for sparse gradients, so that no row is updated
// alone.
#ifndef LOWTIDE_TRAIN_ELEMENTWISEOPTIMIZERS
#define LOWTIDE_TRAIN_ELEMENTWISEOPTIMIZERS

include "lowtide/Dialect/Train/Optimizers.td"

class Train_WholeOptimizer<string opName, list<Slot> slots, list<Option> ownOptions>
    : Train_Optimizer<opName, slots, ownOptions, ""> {
  let rowRule = "RowRule::Whole";
}

def EpsOption : Option<"eps", "added to the denominator", "1e-8">;
def Beta1Option : Option<"beta1", "decay of the first moment", "0.9", "0.9", BelowOne>;
def Beta2Option : Option<"beta2", "decay of the second moment", "0.999", "0.999", BelowOne>;
def DecoupledSwitch : Switch<"decoupled_weight_decay", "1: the parameter decays by lr · weight_decay, as in AdamW">;

defvar decayEitherWay = [{
    if (weight_decay != 0.0 && decoupled_weight_decay != 0.0)
      param = param * spread(1.0 - lr * weight_decay);
    else if (weight_decay != 0.0)
      grad = grad + param * weight_decay;
}];

// The variance of the gradients is what is left of their mean square without the square of their mean.
def SquareAvgSlot : NonNegativeSlot<"square_avg"> { let isDifferenced = "centered != 0.0"; }
def GradAvgSlot : Slot<"grad_avg", "0.0", "centered != 0.0"> { let isDifferenced = "true"; }

def Train_RMSpropOp : Train_WholeOptimizer<"rmsprop",
    [SquareAvgSlot, Slot<"momentum_buffer", "0.0", "momentum > 0.0">, GradAvgSlot],
    [Option<"alpha", "decay of the average of squares", "0.99", "0.99", UpToOne>, EpsOption,
     Option<"momentum", "decay of the buffer; 0: there is none", "0.0">, L2Option,
     Switch<"centered", "1: divides by the root of the variance, not of the mean square">]> {
  let summary = "RMSprop: steps divided by a running root mean square of the gradients, also centered and with momentum";
  let flopsPerElement = 12;
  let body = !strconcat(decayIntoGradient, [{
    square_avg = square_avg * alpha + grad * (1.0 - alpha) * grad;
    Expr square = square_avg;
    if (grad_avg) {
      grad_avg = ::lowtide::train::lerp(grad_avg, grad, 1.0 - alpha);
      square = square_avg - grad_avg * grad_avg;
    }
    Expr root = nn::sqrt(square) + eps;
    if (momentum_buffer) {
      momentum_buffer = momentum_buffer * momentum + grad / root;
      param = param - momentum_buffer * spread(lr);
    } else {
      param = param - grad * spread(lr) / root;
    }
  }]);
}

// PyTorch's mu_product is a scalar per parameter, of the default float type: here of the state's.
def Train_NAdamOp : Train_WholeOptimizer<"nadam",
    [Slot<"mu_product", "1.0", "true", "Scalar">, Slot<"exp_avg">, NonNegativeSlot<"exp_avg_sq">],
    [Beta1Option, Beta2Option, EpsOption, L2Option,
     Option<"momentum_decay", "how fast the momentum's warm-up ends", "4e-3">, DecoupledSwitch]> {
  let summary = "Adam with Nesterov momentum, which warms up";
  let flopsPerElement = 18;
  let body = !strconcat([{
    Expr n = t + 1.0;
  }], decayEitherWay, [{
    auto warmedUp = [&](Expr step) {
      return (1.0 - nn::pow(t.like(0.96), step * momentum_decay) * 0.5) * beta1;
    };
    Expr mu = warmedUp(n), muNext = warmedUp(n + 1.0);
    mu_product = mu_product * nn::cast(mu, wide);
    exp_avg = ::lowtide::train::lerp(exp_avg, grad, 1.0 - beta1);
    exp_avg_sq = exp_avg_sq * beta2 + grad * (1.0 - beta2) * grad;
    Expr denominator = nn::sqrt(exp_avg_sq / spread(1.0 - nn::pow(t.like(beta2), n))) + eps;
    Expr product = nn::cast(mu_product, builder.getF64Type());
    param = param - grad * spread(lr * (1.0 - mu) / (1.0 - product)) / denominator;
    param = param - exp_avg * spread(lr * muNext / (1.0 - product * muNext)) / denominator;
  }]);
}

def Train_RAdamOp : Train_WholeOptimizer<"radam", [Slot<"exp_avg">, NonNegativeSlot<"exp_avg_sq">],
    [Beta1Option, Beta2Option, EpsOption, L2Option, DecoupledSwitch]> {
  let summary = "rectified Adam: steps along the momentum until the second moment has a variance";
  let flopsPerElement = 20;
  let body = !strconcat(decayEitherWay, [{
    exp_avg = ::lowtide::train::lerp(exp_avg, grad, 1.0 - beta1);
    exp_avg_sq = exp_avg_sq * beta2 + grad * (1.0 - beta2) * grad;
    Expr n = t + 1.0, power = nn::pow(t.like(beta2), n), correction2 = 1.0 - power;
    const double rhoMost = 2.0 / (1.0 - beta2) - 1.0;
    Expr rho = rhoMost - n * 2.0 * power / correction2;
    Expr rectified = nn::sqrt((rho - 4.0) * (rho - 2.0) * rhoMost / (rho * ((rhoMost - 4.0) * (rhoMost - 2.0))));
    Expr plain = exp_avg / spread(1.0 - nn::pow(t.like(beta1), n)) * spread(lr);
    Expr adaptive = plain * (spread(nn::sqrt(correction2)) / (nn::sqrt(exp_avg_sq) + eps)) * spread(rectified);
    Expr isAdaptive = nn::broadcast(greater(rho, 5.0), param.shape(), {});
    param = param - select(isAdaptive, adaptive, plain);
  }]);
}

def Train_AdamaxOp : Train_WholeOptimizer<"adamax", [Slot<"exp_avg">, NonNegativeSlot<"exp_inf">],
    [Beta1Option, Option<"beta2", "decay of the largest gradient", "0.999", "0.999", BelowOne>, EpsOption, L2Option]> {
  let summary = "Adam by the infinity norm: steps divided by a decaying largest gradient";
  let flopsPerElement = 11;
  let body = !strconcat(decayIntoGradient, [{
    exp_avg = ::lowtide::train::lerp(exp_avg, grad, 1.0 - beta1);
    exp_inf = nn::max(exp_inf * beta2, nn::abs(grad) + eps);
    Expr rate = lr / (1.0 - nn::pow(t.like(beta1), t + 1.0));
    param = param - exp_avg * spread(rate) / exp_inf;
  }]);
}

def Train_AdadeltaOp : Train_WholeOptimizer<"adadelta", [NonNegativeSlot<"square_avg">, NonNegativeSlot<"acc_delta">],
    [Option<"rho", "decay of both averages", "0.9", "0.9", UpToOne>,
     Option<"eps", "added to both averages", "1e-6">, L2Option]> {
  let summary = "Adadelta: steps of the size of the steps so far (PyTorch's lr is 1)";
  let flopsPerElement = 16;
  let body = !strconcat(decayIntoGradient, [{
    square_avg = square_avg * rho + grad * (1.0 - rho) * grad;
    Expr delta = nn::sqrt(acc_delta + eps) / nn::sqrt(square_avg + eps) * grad;
    acc_delta = acc_delta * rho + delta * (1.0 - rho) * delta;
    param = param - delta * spread(lr);
  }]);
}

// eta is the learning rate of the next step; it and mu are scalars of the default float type in PyTorch, here of the
// state's. PyTorch sets the first eta where it makes the state, with the rate of that step.
def Train_ASGDOp : Train_WholeOptimizer<"asgd",
    [Slot<"eta", "0.0", "true", "Scalar">, Slot<"mu", "1.0", "true", "Scalar">, Slot<"ax">],
    [Option<"lambd", "decay", "1e-4">, Option<"alpha", "power of the rate's decay", "0.75">,
     Option<"t0", "step from which parameters are averaged", "1e6">, L2Option]> {
  let summary = "averaged SGD: the slot `ax` holds the average of the parameters";
  let flopsPerElement = 6;
  let body = !strconcat(decayIntoGradient, [{
    Expr n = t + 1.0;
    Expr first = nn::cast(lr, wide), rate = select(equal(t, 0.0), first, eta);
    Expr rate64 = nn::cast(rate, builder.getF64Type());
    param = param * spread(1.0 - rate64 * lambd) - grad * spread(rate64);
    Expr averaged = ax + (param - ax) * nn::broadcast(mu, param.shape(), {});
    ax = select(nn::broadcast(notEqual(mu, 1.0), param.shape(), {}), averaged, param);
    eta = nn::cast(lr / nn::pow(lr * lambd * n + 1.0, t.like(alpha)), wide);
    mu = nn::cast(1.0 / nn::max(n - t0, 1.0), wide);
  }]);
}

// PyTorch starts every step size as the learning rate of the first step; the learning rate has no other part in it.
def Train_RpropOp : Train_WholeOptimizer<"rprop", [Slot<"prev">, Slot<"step_size">],
    [Option<"etaminus", "factor on the step size where the gradient's sign changes", "0.5", "0.5", InsideZeroOne>,
     Option<"etaplus", "factor where it stays", "1.2", "1.2", AboveOne>,
     Option<"step_size_min", "smallest step size", "1e-6">, Option<"step_size_max", "largest step size", "50">]> {
  let summary = "resilient propagation: a step size per element that only the gradient's sign changes";
  let flopsPerElement = 8;
  let body = [{
    Expr turn = grad * prev;
    Expr size = select(nn::broadcast(equal(t, 0.0), param.shape(), {}), spread(lr), step_size);
    Expr isTurned = less(turn, 0.0);
    Expr factor = select(greater(turn, 0.0), turn.like(etaplus), select(isTurned, turn.like(etaminus), turn.like(1.0)));
    step_size = nn::min(nn::max(size * factor, step_size_min), step_size_max);
    prev = select(isTurned, grad.like(0.0), grad);
    param = param - nn::sign(prev) * step_size;
  }];
}

// As lion-pytorch 0.2.5 computes it.
def Train_LionOp : Train_WholeOptimizer<"lion", [Slot<"exp_avg">],
    [Option<"beta1", "weight of the average in the direction", "0.9", "0.9", UpToOne>,
     Option<"beta2", "decay of the average", "0.99", "0.99", UpToOne>,
     Option<"weight_decay", "decay of the parameter, lr · weight_decay, before the update", "0.0">]> {
  let summary = "Lion: steps along the sign of an interpolated momentum";
  let flopsPerElement = 9;
  let body = [{
    if (weight_decay != 0.0)
      param = param * spread(1.0 - lr * weight_decay);
    param = param - nn::sign(exp_avg * beta1 + grad * (1.0 - beta1)) * spread(lr);
    exp_avg = exp_avg * beta2 + grad * (1.0 - beta2);
  }];
}

#endif
