// Optimizers whose update of an element depends on the whole tensor: by norms, means of rows and columns, and products.
#ifndef LOWTIDE_TRAIN_TENSOROPTIMIZERS
#define LOWTIDE_TRAIN_TENSOROPTIMIZERS

include "lowtide/Dialect/Train/ElementwiseOptimizers.td"

// As pytorch-optimizer 4.1 computes it: the first moment's bias correction is part of the rate, the second moment has none,
// and the norm of the parameter counts as 10 at most. A norm is 0 for a tensor of zeros alone: the trust ratio is 1 then.
def Train_LambOp : Train_WholeOptimizer<"lamb", [Slot<"exp_avg">, NonNegativeSlot<"exp_avg_sq">],
    [Beta1Option, Beta2Option, Option<"eps", "added to both denominators", "1e-6">,
     Option<"weight_decay", "coefficient of the parameter added to its step", "0.0">,
     Switch<"decoupled_weight_decay", "1: the parameter decays by lr · weight_decay before its norm is taken">]> {
  let summary = "LAMB: Adam's direction, scaled by the ratio of the norms of parameter and direction";
  let flopsPerElement = 20;
  let body = [{
    exp_avg = exp_avg * beta1 + grad * (1.0 - beta1);
    exp_avg_sq = exp_avg_sq * beta2 + grad * (1.0 - beta2) * grad;
    if (weight_decay != 0.0 && decoupled_weight_decay != 0.0)
      param = param * spread(1.0 - lr * weight_decay);
    Expr update = exp_avg / (nn::sqrt(exp_avg_sq) + eps);
    if (weight_decay != 0.0 && decoupled_weight_decay == 0.0)
      update = update + param * weight_decay;
    Expr size = nn::min(::lowtide::train::norm(param), 10.0), updateSize = ::lowtide::train::norm(update);
    Expr hasNone = logicalOr(equal(size, 0.0), equal(updateSize, 0.0));
    Expr trust = select(hasNone, size.like(1.0), size / (updateSize + eps));
    Expr rate = lr / (1.0 - nn::pow(t.like(beta1), t + 1.0));
    param = param - update * spread(rate * nn::cast(trust, builder.getF64Type()));
  }];
}

// Row and column are the last and the last but one dimension of the tensor in the exporting framework; a slot lies as its
// parameter does. PyTorch's eps[0] is None by default: the epsilon of the element type, which is the state's here.
def Train_AdafactorOp : Train_WholeOptimizer<"adafactor",
    [NonNegativeSlot<"row_var", "0.0", "shape.getRank() > 1", "Rows">, NonNegativeSlot<"col_var", "0.0", "shape.getRank() > 1", "Columns">,
     NonNegativeSlot<"variance", "0.0", "shape.getRank() <= 1">],
    [Option<"beta2_decay", "power of the step that the averages' weight falls with", "-0.8", "-0.8", NonPositive>,
     Option<"eps1", "smallest variance's root; -1: the epsilon of the element type", "-1.0", "-1.0", AnyNumber>,
     Option<"eps2", "smallest root mean square of the parameter", "1e-3">,
     Option<"clip_threshold", "root mean square of the step from which it is scaled down (PyTorch's d)", "1.0", "1.0", AtLeastOne>,
     Option<"weight_decay", "decay of the parameter, lr · weight_decay, before the update", "0.0">]> {
  let summary = "Adafactor: the second moment as a product of means of rows and columns";
  let flopsPerElement = 16;
  let readsPermutation = 1;
  let body = [{
    const double smallest = eps1 >= 0.0 ? eps1 : ::lowtide::train::getEpsilon(wide);
    const double elements = static_cast<double>(param.type().getNumElements());
    const auto f64 = builder.getF64Type();
    Expr n = t + 1.0, weight = nn::pow(n, t.like(beta2_decay));
    Expr rate = nn::min(lr, 1.0 / nn::sqrt(n));
    Expr size = nn::max(nn::cast(::lowtide::train::norm(param), f64) / std::sqrt(elements), eps2) * rate;
    if (weight_decay != 0.0)
      param = param * spread(1.0 - lr * weight_decay);
    Expr estimate;
    if (variance) {
      variance = ::lowtide::train::lerp(variance, grad * grad, weight);
      estimate = variance;
    } else {
      auto meanSquare = [&](int64_t dim) {
        Expr root = nn::sqrt(nn::sum(grad * grad, {dim}));
        Expr mean = root * root / double(shape.dims[dim]);
        SmallVector<int64_t> kept(shape.dims);
        kept[dim] = 1;
        return nn::reshape(mean, kept);
      };
      const int64_t row = shape.findDim(1), column = shape.findDim(2);
      row_var = ::lowtide::train::lerp(row_var, meanSquare(row), weight);
      col_var = ::lowtide::train::lerp(col_var, meanSquare(column), weight);
      SmallVector<int64_t> kept(row_var.shape());
      kept[column] = 1;
      Expr mean = nn::max(nn::reshape(nn::mean(row_var, {column}), kept), smallest);
      estimate = ::lowtide::train::stretch(row_var, param.shape()) * ::lowtide::train::stretch(col_var, param.shape()) /
                 ::lowtide::train::stretch(mean, param.shape());
    }
    Expr update = nn::rsqrt(nn::max(estimate, smallest * smallest)) * grad;
    Expr clip = nn::max(nn::cast(::lowtide::train::norm(update), f64) / (std::sqrt(elements) * clip_threshold), 1.0);
    param = param - update * spread(size / clip);
  }];
}

def IterationCount : OptionRange<"value >= 1.0 && value < 100.0 && value == static_cast<int>(value)",
                                 "must be a whole number from 1 to 99">;
def AdjustKind : OptionRange<"value == 0.0 || value == 1.0 || value == 2.0",
                             "is original (0), match_rms_adamw (1) or spectral_unclamped (2)">;

// Of a matrix m × n with m ≤ n, an iteration is two products of m × m × n and one of m × m × m. PyTorch iterates in bf16,
// whatever the type of the parameter; a step that is computed in f64 iterates in f64. A matrix that PyTorch transposes
// is iterated from the other side here, which is the same product.
def Train_MuonOp : Train_WholeOptimizer<"muon", [Slot<"momentum_buffer">],
    [Option<"weight_decay", "decay of the parameter, lr · weight_decay, before the update", "0.1">,
     Option<"momentum", "decay of the buffer", "0.95", "0.95", UpToOne>,
     Option<"nesterov", "1: along the gradient and the buffer, 0: along the buffer", "1.0", "1.0", ZeroOrOne>,
     Option<"ns_a", "Newton–Schulz: coefficient of X", "3.4445", "3.4445", AnyNumber>,
     Option<"ns_b", "coefficient of (X Xᵀ) X", "-4.7750", "-4.7750", AnyNumber>,
     Option<"ns_c", "coefficient of (X Xᵀ)² X", "2.0315", "2.0315", AnyNumber>,
     Option<"eps", "smallest norm that the step is divided by", "1e-7">,
     Option<"ns_steps", "iterations", "5", "5", IterationCount>,
     Option<"adjust_lr_fn", "factor on lr for r × c: original √max(1, r/c), match_rms_adamw 0.2·√max(r, c), spectral_unclamped √(r/c)", "0.0", "0.0", AdjustKind>]> {
  let summary = "Muon: steps along the momentum, made orthogonal by Newton–Schulz iterations; hidden matrices only";
  let flops = "::lowtide::train::countOrthogonalizationFlops(shape.dims, ns_steps) + 10 * elements";
  let flopsPerElement = 10;
  let readsPermutation = 1;
  let fallback = "adamw";
  let body = [{
    momentum_buffer = ::lowtide::train::lerp(momentum_buffer, grad, 1.0 - momentum);
    Expr update = nesterov != 0.0 ? ::lowtide::train::lerp(grad, momentum_buffer, momentum) : momentum_buffer;
    Expr direction = ::lowtide::train::orthogonalize(update, {ns_a, ns_b, ns_c}, ns_steps, eps);
    const double height = double(shape.dims[shape.findDim(2)]), width = double(shape.dims[shape.findDim(1)]);
    const double factor = adjust_lr_fn == 0.0   ? std::sqrt(std::max(1.0, height / width))
                          : adjust_lr_fn == 1.0 ? 0.2 * std::sqrt(std::max(height, width))
                                                : std::sqrt(height / width);
    param = param * spread(1.0 - lr * weight_decay);
    param = param - nn::cast(direction, wide) * spread(lr * factor);
  }];
}

#endif
