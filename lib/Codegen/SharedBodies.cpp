//===- SharedBodies.cpp - one body for kernels that differ in counts --*- C++ -*-===//
//
// Constants are found in the order of the text, so that those of equal forms correspond.
//
//===----------------------------------------------------------------------===//

#include "SharedBodies.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

namespace {
/// Finds the constants of an index in a body that any value could stand for.
class CountFinder {
public:
  SmallVector<arith::ConstantOp> find(func::FuncOp body);

private:
  bool isInnermost(scf::ForOp loop);
  bool changesWithin(Value value, scf::ForOp loop);
  bool isPlacing(OpOperand &use);

  DenseMap<Operation *, bool> innermost;
  /// Of values within innermost loops.
  DenseMap<Value, bool> changing;
};
} // namespace

bool CountFinder::isInnermost(scf::ForOp loop) {
  auto [known, isNew] = innermost.try_emplace(loop, true);
  if (isNew)
    known->second = !loop.getBody()->walk([](scf::ForOp) { return WalkResult::interrupt(); }).wasInterrupted();
  return known->second;
}

/// Whether a value differs from round to round of an innermost loop.
bool CountFinder::changesWithin(Value value, scf::ForOp loop) {
  if (!loop.getRegion().isAncestor(value.getParentRegion()))
    return false;
  if (auto known = changing.find(value); known != changing.end())
    return known->second;
  Operation *op = value.getDefiningOp();
  // What is loaded, or comes of a branch, may be anything.
  bool changes = !op || op->getNumRegions() || !isa<arith::ArithDialect>(op->getDialect()) ||
                 llvm::any_of(op->getOperands(), [&](Value operand) { return changesWithin(operand, loop); });
  return changing[value] = changes;
}

bool CountFinder::isPlacing(OpOperand &use) {
  Operation *user = use.getOwner();
  if (isa<arith::AddIOp, arith::SubIOp>(user))
    return true;
  if (!isa<arith::MulIOp, arith::CmpIOp>(user))
    return false;
  auto loop = user->getParentOfType<scf::ForOp>();
  return !loop || !isInnermost(loop) || !changesWithin(user->getOperand(1 - use.getOperandNumber()), loop);
}

SmallVector<arith::ConstantOp> CountFinder::find(func::FuncOp body) {
  SmallVector<arith::ConstantOp> found;
  body.walk([&](arith::ConstantOp constant) {
    if (constant.getType().isIndex() && !constant->use_empty() &&
        llvm::all_of(constant->getUses(), [&](OpOperand &use) { return isPlacing(use); }))
      found.push_back(constant);
  });
  return found;
}

KernelForm::KernelForm(ModuleOp module, func::FuncOp body) {
  SmallVector<arith::ConstantOp> constants = CountFinder().find(body);
  const StringAttr mark = StringAttr::get(module.getContext(), "lowtide.count");
  const Attribute zero = Builder(module.getContext()).getIndexAttr(0);
  SmallVector<TypedAttr> values;
  for (arith::ConstantOp constant : constants) {
    values.push_back(constant.getValue());
    counts.push_back(cast<IntegerAttr>(constant.getValue()).getInt());
    constant.setValueAttr(cast<TypedAttr>(zero));
    constant->setDiscardableAttr(mark, UnitAttr::get(module.getContext()));
  }
  llvm::raw_string_ostream stream(text);
  for (Operation &op : *module.getBody())
    if (auto function = dyn_cast<func::FuncOp>(op); !function || !function.isPublic())
      stream << op << "\n";
  for (auto [constant, value] : llvm::zip_equal(constants, values)) {
    constant.setValueAttr(value);
    constant->removeDiscardableAttr(mark);
  }
}

SmallVector<SmallVector<int64_t>> codegen::shareBody(func::FuncOp body, ArrayRef<const KernelForm *> forms) {
  SmallVector<arith::ConstantOp> constants = CountFinder().find(body);
  SmallVector<SmallVector<int64_t>> given(forms.size());
  // Counts that are equal in each kernel are one argument.
  std::map<std::vector<int64_t>, Value> arguments;
  for (auto [i, constant] : llvm::enumerate(constants)) {
    std::vector<int64_t> values;
    for (const KernelForm *form : forms)
      values.push_back(form->counts[i]);
    if (llvm::all_equal(values))
      continue;
    Value &argument = arguments[values];
    if (!argument) {
      (void)body.insertArgument(body.getNumArguments(), constant.getType(), DictionaryAttr(), body.getLoc());
      argument = body.getArguments().back();
      for (auto [own, value] : llvm::zip_equal(given, values))
        own.push_back(value);
    }
    constant.getResult().replaceAllUsesWith(argument);
    constant.erase();
  }
  return given;
}
