//===- Differentiate.cpp - reverse-mode differentiation -------------------===//
//
// The sweep; the derivatives themselves are in the ops' records.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/Train/Differentiate.h"
#include "lowtide/Dialect/NN/GradientBuilder.h"
#include "lowtide/Interfaces/OpInterfaces.h"

#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::train;

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }

/// Whether what is inside `op` reads one of `values` without its operands.
static bool capturesAny(Operation &op, const llvm::DenseSet<Value> &values) {
  // Also because the block of a loop's derivative is not part of anything yet.
  if (op.hasTrait<OpTrait::IsIsolatedFromAbove>())
    return false;
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op.getRegions(), captured);
  return llvm::any_of(captured, [&](Value value) { return values.contains(value) && isFloat(value); });
}

ReverseSweep::ReverseSweep(Block &block, OpBuilder builder, ArrayRef<Value> leaves)
    : block(block), builder(builder), active(leaves.begin(), leaves.end()) {
  for (Operation &op : block)
    if (llvm::any_of(op.getOperands(), [&](Value operand) { return active.contains(operand); }) ||
        capturesAny(op, active))
      for (Value result : op.getResults())
        if (isFloat(result))
          active.insert(result);
}

LogicalResult ReverseSweep::run(Value target, llvm::function_ref<Value(OpBuilder &)> seed) {
  SmallVector<Operation *> forward = listForward();
  cotangents[target] = seed(builder);
  return sweep(forward);
}

LogicalResult ReverseSweep::run(ArrayRef<std::pair<Value, Value>> seeds) {
  SmallVector<Operation *> forward = listForward();
  for (auto [value, seed] : seeds) {
    Value &sum = cotangents[value];
    sum = sum ? Value(nn::Expr(builder, seed.getLoc(), sum) + nn::Expr(builder, seed.getLoc(), seed)) : seed;
  }
  return sweep(forward);
}

SmallVector<Operation *> ReverseSweep::listForward() {
  SmallVector<Operation *> forward;
  for (Operation &op : block)
    if (!op.hasTrait<OpTrait::IsTerminator>())
      forward.push_back(&op);
  return forward;
}

LogicalResult ReverseSweep::sweep(ArrayRef<Operation *> forward) {
  for (Operation *op : llvm::reverse(forward))
    if (failed(visit(op)))
      return failure();
  return success();
}

/// The same within an op's block.
FailureOr<llvm::DenseMap<Value, Value>> ReverseSweep::sweepBlock(Block &inner, ArrayRef<Value> leaves,
                                                                 ArrayRef<std::pair<Value, Value>> seeds) const {
  OpBuilder end(builder.getContext()); // the block need not be part of anything yet
  end.setInsertionPointToEnd(&inner);
  ReverseSweep sweep(inner, end, leaves);
  sweep.setSpecialForm(specialForm);
  if (failed(sweep.run(seeds)))
    return failure();
  llvm::DenseMap<Value, Value> found;
  for (Value leaf : leaves)
    if (Value cotangent = sweep.getCotangent(leaf))
      found[leaf] = cotangent;
  return found;
}

LogicalResult ReverseSweep::visit(Operation *op) {
  SmallVector<Value> arriving;
  for (Value result : op->getResults())
    arriving.push_back(getCotangent(result));
  SmallVector<bool> needed;
  for (Value operand : op->getOperands())
    needed.push_back(isActive(operand) && isFloat(operand));
  if (!llvm::any_of(arriving, [](Value value) { return static_cast<bool>(value); }))
    return success();
  if (capturesAny(*op, active))
    return refuse(op);
  if (!llvm::is_contained(needed, true))
    return success();

  auto differentiable = dyn_cast<DifferentiableInterface>(op);
  if (!differentiable)
    return refuse(op);
  GradientBuilder gradient(builder, op, arriving, needed);
  gradient.sweepBlock = [this](Block &inner, ArrayRef<Value> leaves, ArrayRef<std::pair<Value, Value>> seeds) {
    return sweepBlock(inner, leaves, seeds);
  };
  bool isSpecial = specialForm && specialForm(gradient);
  if (!isSpecial && failed(differentiable.differentiate(gradient)))
    return refuse(op);
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    if (Value contribution = needed[i] ? gradient.get(i) : Value())
      if (failed(accumulate(op, i, contribution)))
        return failure();
  return success();
}

LogicalResult ReverseSweep::accumulate(Operation *op, unsigned operandNumber, Value contribution) {
  Value operand = op->getOperand(operandNumber);
  // Computed in the type of a wider result, and rounded once.
  if (Type element = getElementTypeOrSelf(operand.getType()); isFloat(contribution))
    contribution = nn::cast(nn::Expr(builder, op->getLoc(), contribution), element).get();
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
LogicalResult ReverseSweep::refuse(Operation *op) {
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
