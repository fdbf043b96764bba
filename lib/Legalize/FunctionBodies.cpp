//===- FunctionBodies.cpp - operators that ONNX defines by others ---------===//
//
// Expansion of an operator through the function body in its ONNX schema.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/FunctionBodies.h"
#include "lowtide/Import/FunctionBody.h"
#include "lowtide/Legalize/LegalizeContext.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace lowtide;

LogicalResult lowtide::expandFunctionBody(NodeView &node) {
  SmallVector<Type> types;
  SmallVector<Value> operands;
  for (unsigned i = 0; i < node.size(); ++i) {
    Value operand = node.has(i) ? node.meaning(i).tensor : Value();
    if (node.has(i) && !operand) // a sequence
      return failure();
    types.push_back(operand ? operand.getType() : Type());
    if (operand)
      operands.push_back(operand);
  }
  SmallVector<unsigned> wanted;
  for (unsigned i = 0; i < node.numResults(); ++i)
    if (node.wants(i))
      wanted.push_back(i);
  OwningOpRef<ModuleOp> module = buildFunctionBody(node.op, types, wanted);
  if (!module)
    return failure();
  FailureOr<SmallVector<Meaning>> results = node.context.legalizeBody(node.op, std::move(module), operands);
  if (failed(results))
    return failure();
  for (auto [i, meaning] : llvm::zip(wanted, *results))
    node.results[i] = meaning;
  return success();
}
