//===- Outline.cpp - long forms as local functions ------------------------===//
//
// What one op of the step takes many operators to say stays one node of the graph, with those operators as its body: a
// reader sees the op, a runtime sees nothing but the standard.
//
//===----------------------------------------------------------------------===//

#include "Outline.h"
#include "lowtide/Dialect/ONNX/ONNX.h"
#include "lowtide/Export/Export.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lowtide;

/// Nodes that are still read at a glance.
static constexpr size_t shortest = 24;

void Outliner::outline(Block *block, Operation *last, StringRef name, MutableArrayRef<Value> results) {
  SmallVector<Operation *> parts;
  for (Operation *op = last ? last->getNextNode() : &block->front(); op; op = op->getNextNode())
    parts.push_back(op);
  llvm::SmallPtrSet<Operation *, 32> inside(parts.begin(), parts.end());
  bool isClosed = llvm::all_of(results, [&](Value value) {
    return value && value.getDefiningOp<onnx::NodeOp>() && inside.contains(value.getDefiningOp());
  });
  if (llvm::count_if(parts, llvm::IsaPred<onnx::NodeOp>) < static_cast<ptrdiff_t>(shortest) || !isClosed)
    return;
  llvm::SetVector<Value> inputs;
  for (Operation *op : parts)
    for (Value operand : op->getOperands())
      if (!operand.getDefiningOp() || !inside.contains(operand.getDefiningOp()))
        inputs.insert(operand);

  Location loc = parts.back()->getLoc();
  OpBuilder builder(model.getContext());
  builder.setInsertionPointAfter(model);
  auto inputTypes = llvm::map_to_vector(inputs, [](Value value) { return value.getType(); });
  auto resultTypes = llvm::map_to_vector(results, [](Value value) { return value.getType(); });
  std::string symbol = (name + "_" + Twine(numbers[name])).str();
  auto function =
      func::FuncOp::create(builder, builder.getUnknownLoc(), symbol, builder.getFunctionType(inputTypes, resultTypes));
  function.setPrivate();
  function->setAttr(onnxFunctionAttrName, builder.getUnitAttr());
  Block *body = function.addEntryBlock();
  for (Operation *op : parts) {
    op->moveBefore(body, body->end());
    for (OpOperand &operand : op->getOpOperands())
      if (auto found = llvm::find(inputs, operand.get()); found != inputs.end())
        operand.set(body->getArgument(found - inputs.begin()));
  }
  builder.setInsertionPointToEnd(body);
  func::ReturnOp::create(builder, loc, SmallVector<Value>(results.begin(), results.end()));

  // The symbol is no part of what is compared.
  std::string text;
  llvm::raw_string_ostream out(text);
  function.getBody().front().print(out);
  auto [entry, isNew] = known.try_emplace(text, symbol);
  if (isNew)
    ++numbers[name];
  else
    function.erase();
  builder.setInsertionPointToEnd(block);
  SmallVector<Attribute> names(resultTypes.size(), builder.getStringAttr(""));
  auto call =
      onnx::NodeOp::create(builder, loc, resultTypes, entry->second, "lowtide", 1, builder.getDictionaryAttr({}),
                           builder.getArrayAttr(names), ArrayAttr(), inputs.getArrayRef(), 0);
  for (auto [result, value] : llvm::zip(results, call.getResults()))
    result = value;
}
