// The optimizers: one record each, with state, options, arithmetic and ONNX name.
#ifndef LOWTIDE_TRAIN_OPTIMIZERS
#define LOWTIDE_TRAIN_OPTIMIZERS

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "lowtide/Interfaces/OpInterfaces.td"
include "lowtide/Dialect/Train/TrainAttrs.td"
include "lowtide/Dialect/Train/OptimizerInterface.td"

// State kept per parameter. `initialValue` and `exists` are C++ expressions over the options and `shape`; `shapeOf` is a
// SlotShape (Train.h). A slot of another shape than the parameter's needs a rowRule of RowRule::Whole.
class Slot<string slotName, string initialValue = "0.0", string exists = "true", string shapeOf = "Param"> {
  string name = slotName;
  string initial = initialValue;
  string condition = exists;
  string shape = shapeOf;
  bit nonNegative = 0;
  // A C++ expression over the options: the update subtracts from this slot what it makes of another, so that numbers
  // that were rounded may leave less than nothing.
  string isDifferenced = "false";
}
// State that is never below zero, such as a mean of squares: codes of 8 bits need no sign.
class NonNegativeSlot<string slotName, string initialValue = "0.0", string exists = "true", string shapeOf = "Param">
    : Slot<slotName, initialValue, exists, shapeOf> {
  let nonNegative = 1;
}

// What an option may be: a C++ expression over `value`, and how an error says it.
class OptionRange<string condition, string text> {
  string isValid = condition;
  string rule = text;
}
def NonNegative : OptionRange<"value >= 0.0", "must not be negative">;
def NonPositive : OptionRange<"value <= 0.0", "must not be positive">;
def BelowOne : OptionRange<"value >= 0.0 && value < 1.0", "must lie in [0, 1)">;
def UpToOne : OptionRange<"value >= 0.0 && value <= 1.0", "must lie in [0, 1]">;
def AboveZero : OptionRange<"value > 0.0", "must be above 0">;
def AboveOne : OptionRange<"value > 1.0", "must be above 1">;
def AtLeastOne : OptionRange<"value >= 1.0", "must be at least 1">;
def InsideZeroOne : OptionRange<"value > 0.0 && value < 1.0", "must lie between 0 and 1">;
def AnyNumber : OptionRange<"true", "may be any number">;
def ZeroOrOne : OptionRange<"value == 0.0 || value == 1.0", "must be 0 or 1">;

// A number that the user may set; defaults as PyTorch's, and as ONNX's where they differ.
class Option<string optionName, string text, string torchDefault, string onnxDefault = torchDefault,
             OptionRange valid = NonNegative> {
  string name = optionName;
  string meaning = text;
  string torch = torchDefault;
  string onnx = onnxDefault;
  OptionRange range = valid;
  Attr attr = F64Attr;
  bit isSwitch = 0;
}

// Something of PyTorch's alone that is off (0) or on (1); absent in the text of an update where it is off.
class Switch<string optionName, string text> : Option<optionName, text, "0.0", "0.0", ZeroOrOne> {
  let attr = OptionalAttr<F64Attr>;
  let isSwitch = 1;
}

// An update of one parameter. `body` is C++ that assigns the parameter's and the slots' new values:
//   param, grad, <slot>   nn::Expr of the parameter's shape, or of the slot's; the body overwrites `param` and the slots
//   lr, t                 nn::Expr, f64 scalars: learning rate of this parameter, number of this update (from 0)
//   <option>              double
//   onnx                  bool: ONNX's convention instead of PyTorch's
//   rows                  bool: the tensors are rows of a larger parameter, those alone that have a gradient
//   shape                 ParamShape (Train.h): the parameter's, and its order of the exporting framework's dimensions
//   spread(e)             an f64 scalar rounded to the parameter's element type and repeated over its shape
// A slot that does not exist under these options is a null Expr. Scalars are f64, as they are in PyTorch, where Python
// computes them; tensors are in the parameter's element type, but for a parameter of 16 bits gradient, state and
// arithmetic are f32, and the new parameter is rounded once. The order of operations follows PyTorch's single-tensor
// implementation on the CPU. `maximize` negates the gradient before the body sees it.
class Train_Optimizer<string opName, list<Slot> slots, list<Option> ownOptions, string onnxName>
    : Op<Train_Dialect, opName, [Pure, DeclareOpInterfaceMethods<FactsInterface>,
        DeclareOpInterfaceMethods<DecomposableInterface>,
        DeclareOpInterfaceMethods<OptimizerInterface, ["listSlots", "getOptions", "getTraits", "getRowRule"]>]> {
  list<Option> options = !listconcat(
      [Option<"lr_scale", "factor on the learning rate, set by a parameter group", "1.0">,
       Switch<"maximize", "1: steps along the gradient, not against it">], ownOptions);
  code body = "";
  // Floating-point operations per element of the parameter.
  int flopsPerElement = 4;
  // All floating-point operations, an expression over `elements`, `shape` and the options.
  string flops = flopsPerElement # " * elements";
  // RowRule (Train.h), an expression over the options: what becomes of rows whose gradient is zero. `ownRowRule` is that
  // of the update alone: decay changes every row, and `maximize` the sign of a zero.
  string ownRowRule = "RowRule::Lazy";
  string rowRule = "weight_decay != 0.0 ? RowRule::Whole : maximize != 0.0 ? RowRule::Lazy : " # ownRowRule;
  // Whether ONNX's convention has a formula for it; plain SGD is the same in both.
  bit isInOnnx = !ne(onnxName, "");
  // The optimizer of parameters that are no hidden matrices; "": this one takes all of them.
  string fallback = "";
  // Whether the body asks for the order of the exporting framework's dimensions.
  bit readsPermutation = 0;

  let arguments = !con((ins AnyTensor:$param, AnyTensor:$grad, AnyTensor:$lr, AnyTensor:$step,
                        Variadic<AnyTensor>:$state),
                       !dag(ins, !foreach(o, options, o.attr), !foreach(o, options, o.name)),
                       (ins UnitAttr:$onnx_convention, UnitAttr:$rows, OptionalAttr<DenseI64ArrayAttr>:$permutation));
  let results = (outs AnyTensor:$new_param, Variadic<AnyTensor>:$new_state);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;

  string readOptions = !interleave(!foreach(o, options,
      "[[maybe_unused]] const double " # o.name # " = getOption(\"" # o.name # "\");"), "\n") # "\n";
  string readValues = !interleave(!foreach(o, options, "[[maybe_unused]] const double " # o.name #
      " = ::lowtide::train::readOption(values, \"" # o.name # "\", " # o.torch # ");"), "\n") # "\n";
  let extraClassDefinition = [{
    const ::lowtide::OpFacts &$cppClass::getFacts() {
      static const ::lowtide::OpFacts facts{::lowtide::OpFamily::Optimizer, ::lowtide::PrecisionPolicy::High,
          ::lowtide::Aliasing::InPlace, ::lowtide::BatchRule::Unknown, }] # flopsPerElement # ", \"" # onnxName # [{"};
      return facts;
    }
    uint64_t $cppClass::getFlops() {
      [[maybe_unused]] const auto shape = ::lowtide::train::getParamShape(getOperation());
      [[maybe_unused]] const auto elements = static_cast<uint64_t>(getParam().getType().getNumElements());
  }] # readOptions # "return " # flops # [{;
    }
    ::lowtide::train::OptimizerTraits $cppClass::getTraits() {
      return {}] # !if(isInOnnx, "true", "false") # ", " # !if(readsPermutation, "true", "false") # ", \"" # fallback # [{"};
    }
    ::llvm::SmallVector<::lowtide::train::StateSlot> $cppClass::listSlots(
        const ::std::map<::std::string, double> &values, const ::lowtide::train::ParamShape &shape) {
  }] # readValues # [{
      ::llvm::SmallVector<::lowtide::train::StateSlot> found;
  }] # !interleave(!foreach(s, slots, "if (" # s.condition # ") found.push_back({\"" # s.name # "\", " # s.initial #
      ", ::lowtide::train::SlotShape::" # s.shape # ", " # !if(s.nonNegative, "true", "false") #
      ", " # s.isDifferenced # "});"), "\n") # [{
      return found;
    }
    ::llvm::ArrayRef<::lowtide::train::OptimizerOption> $cppClass::getOptions() {
      static const ::std::vector<::lowtide::train::OptimizerOption> options{}] # !interleave(!foreach(o, options,
          "{\"" # o.name # "\", " # o.torch # ", " # o.onnx # ", \"" # o.meaning # "\", "
          # "[]([[maybe_unused]] double value) { return " # o.range.isValid # "; }, \"" # o.range.rule # "\", "
          # !if(o.isSwitch, "true", "false") # "}"), ", ") # [{};
      return options;
    }
    ::lowtide::train::RowRule $cppClass::getRowRule() {
  }] # readOptions # "return " # rowRule # [{;
    }
    ::mlir::ParseResult $cppClass::parse(::mlir::OpAsmParser &parser, ::mlir::OperationState &result) {
      return ::lowtide::train::parseOptimizer(parser, result, listSlots);
    }
    void $cppClass::print(::mlir::OpAsmPrinter &printer) { ::lowtide::train::printOptimizer(printer, getOperation()); }
    ::llvm::LogicalResult $cppClass::verify() { return ::lowtide::train::verifyOptimizer(*this); }
    ::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>> $cppClass::decompose(::mlir::OpBuilder &builder) {
      using namespace ::lowtide::nn;
      const auto stored = getParam().getType().getElementType();
      const auto wide = ::lowtide::train::getStateType(getParam().getType()).getElementType();
      Expr param = nn::cast(Expr(builder, getLoc(), getParam()), wide), grad(builder, getLoc(), getGrad());
      [[maybe_unused]] Expr lr = ::lowtide::train::effectiveLearningRate(builder, getOperation());
      [[maybe_unused]] Expr t = ::lowtide::train::updateNumber(builder, getOperation());
      [[maybe_unused]] const bool onnx = getOnnxConvention(), rows = getRows();
      [[maybe_unused]] const auto shape = ::lowtide::train::getParamShape(getOperation());
      [[maybe_unused]] auto spread = [&](Expr scalar) { return ::lowtide::train::spreadScalar(scalar, param.type()); };
      [[maybe_unused]] unsigned nextSlot = 0;
      [[maybe_unused]] auto takeSlot = [&](bool exists) {
        return exists ? Expr(builder, getLoc(), getState()[nextSlot++]) : Expr();
      };
  }] # readOptions # "if (maximize != 0.0) grad = -grad;\n" # !interleave(!foreach(s, slots,
        "Expr " # s.name # " = takeSlot(" # s.condition # ");"), "\n") # "{\n" # body # [{
      }
      ::llvm::SmallVector<::mlir::Value> updated{nn::cast(param, stored)};
  }] # !interleave(!foreach(s, slots, "if (" # s.name # ") updated.push_back(" # s.name # ");"), "\n") # [{
      return updated;
    }
  }];
}

// --- stochastic gradient descent ---

def L2Option : Option<"weight_decay", "coefficient of the parameter added to its gradient", "0.0">;
defvar decayIntoGradient = "if (weight_decay != 0.0) grad = grad + param * weight_decay;\n";

def Train_SGDOp : Train_Optimizer<"sgd", [], [L2Option], ""> {
  let summary = "param −= lr · grad";
  let ownRowRule = "RowRule::Exact";
  let isInOnnx = 1;
  let flopsPerElement = 2;
  let body = !strconcat(decayIntoGradient, [{ param = param - grad * spread(lr); }]);
}

// PyTorch starts the buffer as the first gradient, ONNX with beta_adjusted = 1 at step 0: both are a buffer of zeros
// whose first gradient is not dampened. Rows alone: a row's buffer decays in the steps in which it has a gradient.
def Train_MomentumOp : Train_Optimizer<"momentum", [Slot<"momentum_buffer">],
    [Option<"momentum", "decay of the buffer", "0.9", "0.9", BelowOne>, Option<"dampening", "part of the gradient kept out of the buffer", "0.0">,
     Option<"nesterov", "1: step along grad + momentum · buffer", "0.0">, L2Option],
    "ai.onnx.preview.training.Momentum"> {
  let summary = "SGD with momentum, plain or Nesterov";
  let body = !strconcat(decayIntoGradient, [{
    Expr fresh = grad;
    if (dampening != 0.0)
      fresh = grad * spread(select(equal(t, t.like(0.0)), t.like(1.0), t.like(1.0 - dampening)));
    momentum_buffer = momentum_buffer * momentum + fresh;
    param = param - (nesterov != 0.0 ? grad + momentum_buffer * momentum : momentum_buffer) * spread(lr);
  }]);
}

// --- adaptive ---

def Train_AdagradOp : Train_Optimizer<"adagrad", [NonNegativeSlot<"sum", "initial_accumulator_value">],
    [Option<"lr_decay", "lr / (1 + step · lr_decay)", "0.0">,
     Option<"initial_accumulator_value", "first value of the sum of squares", "0.0">,
     Option<"eps", "added to the root of the sum", "1e-10", "1e-6">, L2Option],
    "ai.onnx.preview.training.Adagrad"> {
  // Without eps, a row that never had a gradient becomes 0 / 0.
  let ownRowRule = "eps > 1e-37 ? RowRule::Exact : RowRule::Lazy";
  let summary = "Adagrad: steps shrink with the root of the sum of squared gradients";
  let flopsPerElement = 12;
  let body = !strconcat(decayIntoGradient, [{
    Expr rate = lr_decay != 0.0 ? lr / (1.0 + t * lr_decay) : lr;
    sum = sum + grad * grad;
    param = param - grad * spread(rate) / (nn::sqrt(sum) + eps);
  }]);
}

// PyTorch: ε is added after the second moment's bias correction. ONNX: before it (the ε-hat form), and no correction at
// all in update 0 (docs/rationale/differentiation.md, "Optimizers"). Rows alone: moments decay in the steps in which
// their row has a gradient, while the correction counts all steps; PyTorch's form is that of its SparseAdam, which adds
// ε before the correction.
defvar adamMoments = [{
    if (onnx) {
      exp_avg = exp_avg * beta1 + grad * (1.0 - beta1);
    } else if (rows) {
      exp_avg = exp_avg + (grad - exp_avg) * (1.0 - beta1);
    } else {
      exp_avg = ::lowtide::train::lerp(exp_avg, grad, 1.0 - beta1);
    }
    exp_avg_sq = rows && !onnx ? exp_avg_sq + (grad * grad - exp_avg_sq) * (1.0 - beta2)
                               : exp_avg_sq * beta2 + grad * (1.0 - beta2) * grad;
    Expr n = onnx ? t : t + 1.0;
    Expr correction1 = 1.0 - nn::pow(t.like(beta1), n), correction2 = 1.0 - nn::pow(t.like(beta2), n);
    if (onnx) {
      Expr rate = select(greater(t, 0.0), lr * nn::sqrt(correction2) / correction1, lr);
      param = param - exp_avg * spread(rate) / (nn::sqrt(exp_avg_sq) + eps);
    } else if (rows) {
      param = param - exp_avg / (nn::sqrt(exp_avg_sq) + eps) * spread(lr * nn::sqrt(correction2) / correction1);
    } else {
      if (max_exp_avg_sq)
        max_exp_avg_sq = nn::max(max_exp_avg_sq, exp_avg_sq);
      Expr denominator = nn::sqrt(max_exp_avg_sq ? max_exp_avg_sq : exp_avg_sq) / spread(nn::sqrt(correction2)) + eps;
      param = param - exp_avg * spread(lr / correction1) / denominator;
    }
}];

defvar adamSlots = [Slot<"exp_avg">, NonNegativeSlot<"exp_avg_sq">, NonNegativeSlot<"max_exp_avg_sq", "0.0", "amsgrad != 0.0">];
// PyTorch's SparseAdam has no amsgrad.
defvar adamRowRule = "amsgrad != 0.0 ? RowRule::Whole : RowRule::Lazy";

class AdamOptions<string decayMeaning, string decay> {
  list<Option> all = [Option<"beta1", "decay of the first moment", "0.9", "0.9", BelowOne>,
    Option<"beta2", "decay of the second moment", "0.999", "0.999", BelowOne>, Option<"eps", "added to the denominator", "1e-8", "1e-6">,
    Option<"weight_decay", decayMeaning, decay, "0.0">,
    Switch<"amsgrad", "1: divides by the largest second moment so far">];
}

def Train_AdamOp : Train_Optimizer<"adam", adamSlots,
    AdamOptions<"coefficient of the parameter added to its gradient", "0.0">.all, "ai.onnx.preview.training.Adam"> {
  let summary = "Adam, weight decay in the gradient";
  let ownRowRule = adamRowRule;
  let flopsPerElement = 20;
  let body = !strconcat(decayIntoGradient, adamMoments);
}

def Train_AdamWOp : Train_Optimizer<"adamw", adamSlots,
    AdamOptions<"decay of the parameter: lr · weight_decay before the update, or (ONNX) weight_decay after it", "0.01">.all,
    "ai.onnx.preview.training.Adam"> {
  let summary = "Adam with decoupled weight decay";
  let ownRowRule = adamRowRule;
  let flopsPerElement = 20;
  let body = !strconcat([{
    if (weight_decay != 0.0 && !onnx)
      param = param * spread(1.0 - lr * weight_decay);
  }], adamMoments, [{
    if (weight_decay != 0.0 && onnx)
      param = param * (1.0 - weight_decay);
  }]);
}

#endif
