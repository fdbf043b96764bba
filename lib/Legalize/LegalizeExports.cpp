//===- LegalizeExports.cpp - what goes back into the model file -----------===//
//
// The functions that compute the file's images of parameters become entries, on the parameters that other entries hold.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Legalize/Exports.h"
#include "lowtide/Legalize/Legalize.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lowtide;

SmallVector<func::FuncOp> lowtide::findExports(ModuleOp module) {
  return llvm::filter_to_vector(module.getOps<func::FuncOp>(),
                                [](func::FuncOp function) { return isExportEntry(function.getSymName()); });
}

void lowtide::eraseExports(ModuleOp module) {
  for (func::FuncOp function : findExports(module))
    function.erase();
}

/// The arguments that result `number` is computed from.
static llvm::SmallSetVector<BlockArgument, 4> findArguments(func::FuncOp function, unsigned number) {
  llvm::SmallSetVector<BlockArgument, 4> arguments;
  llvm::SmallSetVector<Value, 16> values;
  values.insert(function.getBody().front().getTerminator()->getOperand(number));
  for (size_t i = 0; i < values.size(); ++i) {
    if (auto argument = dyn_cast<BlockArgument>(values[i]))
      arguments.insert(argument);
    else
      values[i].getDefiningOp()->walk([&](Operation *op) { values.insert_range(op->getOperands()); });
  }
  return arguments;
}

/// Takes out what is computed of tensors that no entry holds, for which it would have to be stored.
static void keepHeld(func::FuncOp function, const llvm::DenseSet<Attribute> &held) {
  SmallVector<Attribute> dropped;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (!llvm::all_of(findArguments(function, i), [&](BlockArgument argument) {
          return argument.getOwner() != &function.getBody().front() ||
                 held.contains(train::getArgBinding(function, argument.getArgNumber()));
        }))
      dropped.push_back(train::getResultBinding(function, i));
  if (dropped.empty())
    return;
  train::eraseResults(function, [&](Attribute binding) { return llvm::is_contained(dropped, binding); });
  Block &block = function.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
  for (unsigned i = function.getNumArguments(); i-- > 0;)
    if (block.getArgument(i).use_empty())
      (void)function.eraseArgument(i);
}

LogicalResult lowtide::legalizeExports(ModuleOp module, FailureKind *failure) {
  llvm::DenseSet<Attribute> held;
  const SmallVector<func::FuncOp> exports = findExports(module);
  for (auto entry : module.getOps<func::FuncOp>())
    if (!llvm::is_contained(exports, entry))
      for (unsigned i = 0; i < entry.getNumArguments(); ++i)
        if (Attribute binding = train::getArgBinding(entry, i))
          held.insert(binding);
  for (func::FuncOp function : exports) {
    const std::string name = function.getSymName().str();
    function.setSymName(name + ".onnx");
    LegalizeOptions options;
    options.mode = TrainingMode::AsIs;
    options.entry = name;
    FailureOr<func::FuncOp> entry = legalizeModel(function, options, failure);
    if (mlir::failed(entry))
      return mlir::failure();
    function.erase();
    keepHeld(*entry, held);
    if (entry->getNumResults() == 0)
      entry->erase();
    else // in the order in which they are found
      (*entry)->moveBefore(module.getBody(), module.getBody()->end());
  }
  return success();
}
