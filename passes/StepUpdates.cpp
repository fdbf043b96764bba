//===- StepUpdates.cpp - the updates that a step came with ----------------===//
//
// 1. Parameters and state that a gradient leads to are updated; walking back
//    from them to the gradients finds the ops that do it.
// 2. With new gradients these ops are cloned after everything else; the old
//    ones, and the backward pass that only they read, die.
//
//===----------------------------------------------------------------------===//
#include "StepUpdates.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Dialect/Train/Differentiate.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace lowtide;

/// The argument that result `number` updates; null if it updates none.
static Value findUpdated(func::FuncOp step, const train::BindingIndex &index, unsigned number) {
  Attribute binding = train::getResultBinding(step, number);
  if (!isa_and_nonnull<train::ParamAttr, train::StateAttr>(binding))
    return {};
  const StringRef name = train::getBindingName(binding);
  for (std::optional<unsigned> argument :
       {index.findArg<train::ParamAttr>(name), index.findArg<train::StateAttr>(name)})
    if (argument)
      return step.getArgument(*argument);
  return {};
}

FailureOr<StepUpdates> StepUpdates::find(ModuleOp module, func::FuncOp step) {
  if (!step)
    return module.emitError("there is no function @gradient or @train whose gradients could be scaled or clipped");
  if (train::findArg<train::StateAttr>(step, train::skippedName)) {
    InFlightDiagnostic error = step.emitError("the step scales its loss already: it keeps '")
                               << train::skippedName << "'";
    error.attachNote() << "leave out --loss-scale, --clip-norm and --clip-value, or write the step without them";
    return error;
  }
  StepUpdates found(step);
  Operation *terminator = found.getTerminator();
  for (unsigned i = 0; i < step.getNumResults(); ++i) {
    Value value = terminator->getOperand(i);
    // A constant is no gradient that anything could be done to.
    if (auto gradient = dyn_cast_or_null<train::GradientAttr>(train::getResultBinding(step, i));
        gradient && value.getDefiningOp() && !value.getDefiningOp()->hasTrait<OpTrait::ConstantLike>())
      found.gradients[gradient.getParameter()] = value;
  }
  train::eraseResults(step, [&](Attribute binding) {
    auto gradient = dyn_cast_or_null<train::GradientAttr>(binding);
    return gradient && !found.gradients.contains(gradient.getParameter());
  });
  if (found.gradients.empty()) {
    InFlightDiagnostic error = step.emitError("unsupported: the step brings its own updates and does not say which "
                                              "values are gradients: they cannot be scaled or clipped");
    error.attachNote()
        << "known are the gradients of models that lowtide wrote with --onnx-stage=train, and of updates "
           "that are operators of ai.onnx.preview.training";
    error.attachNote() << "leave out --loss-scale, --clip-norm and --clip-value, or compile the model without its "
                          "backward pass";
    return error;
  }
  llvm::DenseSet<Value> ends;
  for (auto &[name, value] : found.gradients)
    ends.insert(value);
  const train::BindingIndex index(step);
  for (unsigned i = 0; i < step.getNumResults(); ++i)
    if (findUpdated(step, index, i) && failed(found.collect(i, ends)))
      return failure();
  return found;
}

/// Walks back from a result to the gradients, `ends`; what it passes belongs to the update, if it gets to one.
LogicalResult StepUpdates::collect(unsigned result, const llvm::DenseSet<Value> &ends) {
  llvm::SetVector<Operation *> passed;
  llvm::DenseSet<Value> seen;
  Value batch;
  bool isUpdate = false;
  SmallVector<Value> worklist{getTerminator()->getOperand(result)};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (ends.contains(value)) {
      isUpdate = true;
    } else if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (isa_and_nonnull<train::BatchAttr>(train::getArgBinding(step, argument.getArgNumber())))
        batch = value;
    } else {
      Operation *op = value.getDefiningOp();
      passed.insert(op);
      op->walk([&](Operation *inner) { llvm::append_range(worklist, inner->getOperands()); });
    }
  }
  if (!isUpdate)
    return success();
  if (batch) {
    StringAttr name = train::getBindingName(train::getResultBinding(step, result));
    InFlightDiagnostic error = step.emitError("unsupported: the update of ")
                               << name << " reads the batch besides its gradient: the gradient cannot be replaced";
    error.attachNote() << "leave out --loss-scale, --clip-norm and --clip-value";
    return error;
  }
  updates.insert(result);
  ops.insert(passed.begin(), passed.end());
  return success();
}

LogicalResult StepUpdates::derive(const train::LossScale &scale) {
  if (step->hasAttr(givenGradientsAttrName)) {
    InFlightDiagnostic error =
        step.emitError("unsupported: the file writes its backward pass out in a form of its own; "
                       "what scaled gradients are would be a guess");
    error.attachNote() << "the loss can be scaled where gradients come from the operator Gradient of "
                          "ai.onnx.preview.training, or from a model that lowtide wrote; clipping works here";
    return error;
  }
  std::optional<unsigned> metric = train::findResult<train::MetricAttr>(step, "loss");
  if (!metric)
    return step.emitError("the step has no loss that could be scaled");
  Value loss = getTerminator()->getOperand(*metric);
  SmallVector<Value> leaves;
  const train::BindingIndex index(step);
  for (auto &[name, value] : gradients) {
    std::optional<unsigned> parameter = index.findArg<train::ParamAttr>(name);
    if (!parameter)
      return step.emitError("'") << gradientName(name.getValue()) << "' is the gradient of no parameter";
    leaves.push_back(step.getArgument(*parameter));
  }
  train::ReverseSweep sweep(step.getBody().front(), OpBuilder(getTerminator()), leaves);
  if (failed(sweep.run(loss, [&](OpBuilder &builder) { return train::buildLossSeed(builder, step, loss, scale); })))
    return failure();
  for (auto [entry, leaf] : llvm::zip_equal(gradients, leaves))
    if (Value gradient = sweep.getCotangent(leaf))
      getTerminator()->setOperand(*index.findGradient(entry.first), gradient);
  return success();
}

LogicalResult StepUpdates::rebuild() {
  Operation *terminator = getTerminator();
  OpBuilder builder(terminator);
  IRMapping mapping;
  const train::BindingIndex index(step);
  for (auto &[name, value] : gradients)
    mapping.map(value, terminator->getOperand(*index.findGradient(name)));
  Value finite;
  if (std::optional<unsigned> result = train::findResult<train::OutputAttr>(step, train::finiteName))
    finite = terminator->getOperand(*result);
  std::optional<unsigned> skipped = train::findArg<train::StateAttr>(step, train::skippedName);
  std::optional<unsigned> number = train::findArg<train::ScalarAttr>(step, stepScalar);
  if (skipped && number) {
    nn::Expr count(builder, step.getLoc(), step.getArgument(*number));
    nn::Expr missing = nn::cast(count.with(step.getArgument(*skipped)), count.type().getElementType());
    mapping.map(step.getArgument(*number), Value(count - missing));
  }
  // State that updates only count with does not count a skipped step either.
  llvm::DenseSet<Value> counted;
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (auto argument = dyn_cast<BlockArgument>(operand);
          argument && isa_and_nonnull<train::StateAttr>(train::getArgBinding(step, argument.getArgNumber())))
        counted.insert(argument);
  SmallVector<Operation *> inOrder(ops.begin(), ops.end());
  llvm::sort(inOrder, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *op : inOrder) {
    bool changes = op->walk([&](Operation *inner) {
                       bool found = llvm::any_of(inner->getOperands(), [&](Value v) { return mapping.contains(v); });
                       return found ? WalkResult::interrupt() : WalkResult::advance();
                     }).wasInterrupted();
    if (changes)
      builder.clone(*op, mapping);
  }
  for (unsigned i = 0; i < step.getNumResults(); ++i) {
    Value updated = findUpdated(step, index, i);
    if (!updated || (!updates.contains(i) && !counted.contains(updated)))
      continue;
    Value value = mapping.lookupOrDefault(terminator->getOperand(i));
    if (finite)
      value = train::CommitOp::create(builder, step.getLoc(), updated.getType(), finite, value, updated);
    terminator->setOperand(i, value);
  }
  train::eraseResults(step, [](Attribute binding) {
    auto output = dyn_cast_or_null<train::OutputAttr>(binding);
    return isa_and_nonnull<train::GradientAttr>(binding) || (output && output.getName() == train::finiteName);
  });
  return success();
}
