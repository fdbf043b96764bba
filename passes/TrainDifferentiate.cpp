//===- TrainDifferentiate.cpp - reverse-mode differentiation ---*- C++ -*-===//
//
// Turns the forward function into one that also returns the gradient of every
// parameter.
//
//   1. Active values: those that a parameter leads to through floating-point
//   results.
//   2. Reverse sweep from the loss, whose cotangent is 1: each op that has the
//   cotangent of a result and an active
//      operand writes the cotangents of its active operands
//      (DifferentiableInterface).
//   3. A value that several ops use gets the sum, added up as the contributions
//   arrive: reverse program order, which is
//      the order of the sweep, so that at most one partial sum is alive.
//   4. The cotangent of a parameter, complete when its first use has been
//   visited, is its gradient.
//
//===----------------------------------------------------------------------===//

#include "Passes.h"
#include "lowtide/Dialect/NN/GradientBuilder.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"

namespace lowtide {
#define GEN_PASS_DEF_TRAINDIFFERENTIATE
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using namespace lowtide;

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }

namespace {
/// The parameters of a step: argument numbers, in order.
SmallVector<unsigned> findParameters(func::FuncOp step) {
  SmallVector<unsigned> parameters;
  for (BlockArgument argument : step.getArguments())
    if (isa_and_nonnull<train::ParamAttr>(train::getArgBinding(step, argument.getArgNumber())) && isFloat(argument))
      parameters.push_back(argument.getArgNumber());
  return parameters;
}

class ReverseSweep {
public:
  ReverseSweep(func::FuncOp step, ArrayRef<unsigned> parameters)
      : block(step.getBody().front()), builder(block.getTerminator()) {
    for (unsigned parameter : parameters)
      active.insert(step.getArgument(parameter));
    for (Operation &op : block)
      if (llvm::any_of(op.getOperands(), [&](Value operand) { return active.contains(operand); }))
        for (Value result : op.getResults())
          if (isFloat(result))
            active.insert(result);
  }

  bool isActive(Value value) const { return active.contains(value); }
  /// Null if none has arrived.
  Value getCotangent(Value value) const { return cotangents.lookup(value); }

  LogicalResult run(Value loss) {
    SmallVector<Operation *> forward;
    for (Operation &op : block.without_terminator())
      forward.push_back(&op);
    auto type = cast<RankedTensorType>(loss.getType());
    cotangents[loss] = nn::splat(builder, loss.getLoc(), type, 1.0);
    for (Operation *op : llvm::reverse(forward))
      if (failed(visit(op)))
        return failure();
    return success();
  }

private:
  LogicalResult visit(Operation *op) {
    SmallVector<Value> arriving;
    for (Value result : op->getResults())
      arriving.push_back(getCotangent(result));
    SmallVector<bool> needed;
    for (Value operand : op->getOperands())
      needed.push_back(isActive(operand) && isFloat(operand));
    if (!llvm::any_of(arriving, [](Value value) { return static_cast<bool>(value); }) ||
        !llvm::is_contained(needed, true))
      return success();

    auto differentiable = dyn_cast<DifferentiableInterface>(op);
    if (!differentiable)
      return refuse(op);
    GradientBuilder gradient(builder, op, arriving, needed);
    if (failed(differentiable.differentiate(gradient)))
      return refuse(op);
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (Value contribution = needed[i] ? gradient.get(i) : Value())
        if (failed(accumulate(op, i, contribution)))
          return failure();
    return success();
  }

  LogicalResult accumulate(Operation *op, unsigned operandNumber, Value contribution) {
    Value operand = op->getOperand(operandNumber);
    if (contribution.getType() != operand.getType())
      return op->emitOpError("derivative with respect to operand ")
             << operandNumber << " has type " << contribution.getType() << ", the operand " << operand.getType();
    auto [entry, first] = cotangents.try_emplace(operand, contribution);
    if (first)
      consumers[operand] = op;
    else
      entry->second = nn::Expr(builder, op->getLoc(), entry->second) + nn::Expr(builder, op->getLoc(), contribution);
    return success();
  }

  /// Says which op has no derivative, how the loss depends on it, and what to
  /// do.
  LogicalResult refuse(Operation *op) {
    InFlightDiagnostic error = op->emitError()
                               << "'" << op->getName() << "' has no derivative, but a parameter leads to it";
    constexpr unsigned longestPath = 8;
    Operation *at = op;
    for (unsigned length = 0; length < longestPath; ++length) {
      Operation *next = nullptr;
      for (Value result : at->getResults())
        if (!next && getCotangent(result))
          next = consumers.lookup(result);
      if (!next)
        break;
      error.attachNote(next->getLoc()) << "the loss depends on it through this '" << next->getName() << "'";
      at = next;
    }
    error.attachNote() << "freeze the parameters that lead to it (--frozen=PATTERN), or "
                          "express it by other operators";
    return error;
  }

  Block &block;
  OpBuilder builder;
  DenseSet<Value> active;
  DenseMap<Value, Value> cotangents;
  /// The op through which a value's first contribution came: the next one on
  /// the way to the loss.
  DenseMap<Value, Operation *> consumers;
};

struct TrainDifferentiate : lowtide::impl::TrainDifferentiateBase<TrainDifferentiate> {
  using TrainDifferentiateBase::TrainDifferentiateBase;

  FailureOr<Value> findLoss(func::FuncOp step) {
    std::optional<unsigned> number = train::findResult<train::MetricAttr>(step, "loss");
    if (!number) {
      InFlightDiagnostic error = step.emitError("@") << step.getSymName() << " has no loss to differentiate";
      error.attachNote() << "name the output that is the loss, or add one: "
                            "--loss='cross_entropy(logits, labels)'";
      return error;
    }
    Value loss = step.getBody().front().getTerminator()->getOperand(*number);
    auto type = dyn_cast<RankedTensorType>(loss.getType());
    if (!type || !type.hasStaticShape() || type.getNumElements() != 1 || !isFloat(loss))
      return step.emitError("the loss must be one floating-point number, found ") << loss.getType();
    return loss;
  }

  /// Appends the gradients as results; marks and reports the parameters that
  /// have none.
  void addGradients(func::FuncOp step, ArrayRef<unsigned> parameters, const ReverseSweep &sweep) {
    SmallVector<StringRef> unreached;
    OpBuilder builder(step.getBody().front().getTerminator());
    for (unsigned parameter : parameters) {
      StringAttr name = train::getBindingName(train::getArgBinding(step, parameter));
      BlockArgument argument = step.getArgument(parameter);
      Value gradient = sweep.getCotangent(argument);
      if (!gradient) {
        unreached.push_back(name);
        step.setArgAttr(parameter, train::unreachedAttrName, builder.getUnitAttr());
        gradient = nn::splat(builder, argument.getLoc(), cast<RankedTensorType>(argument.getType()), 0.0);
      }
      auto output = builder.getStringAttr("grad/" + name.getValue());
      train::appendResult(step, gradient, train::OutputAttr::get(builder.getContext(), output));
    }
    numGradients += parameters.size() - unreached.size();
    numUnreached += unreached.size();
    if (!unreached.empty())
      step.emitWarning("the loss does not depend on ")
          << unreached.size() << (unreached.size() == 1 ? " parameter: " : " parameters: ")
          << llvm::join(unreached, ", ") << "; zero gradient and no update";
  }

  LogicalResult differentiate(func::FuncOp step) {
    FailureOr<Value> loss = findLoss(step);
    if (failed(loss))
      return failure();
    SmallVector<unsigned> parameters = findParameters(step);
    ReverseSweep sweep(step, parameters);
    if (!sweep.isActive(*loss))
      return step.emitError("no parameter leads to the loss: nothing can be trained (")
             << parameters.size() << " parameters)";
    size_t forwardOps = step.getBody().front().getOperations().size() - 1;
    if (failed(sweep.run(*loss)))
      return failure();
    addGradients(step, parameters, sweep);
    numForwardOps += forwardOps;
    numBackwardOps += step.getBody().front().getOperations().size() - 1 - forwardOps;
    return success();
  }

  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<func::FuncOp>(function);
    if (!step || step.isExternal() || !step.getBody().hasOneBlock()) {
      getOperation().emitError("there is no function @") << function << " of one block to differentiate";
      return signalPassFailure();
    }
    if (failed(differentiate(step)) || failed(train::moveEntry(getOperation(), function, getOperation(), "gradient")))
      signalPassFailure();
  }
};
} // namespace
