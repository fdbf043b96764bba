//===- CutOutputs.cpp - outputs that no step needs ------------------------===//
//
// An output has no meaning if a node on the way to it was refused.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/CutOutputs.h"
#include "lowtide/Recover/NodeNotes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lowtide;

static bool isFloatScalar(Type type) {
  auto tensor = dyn_cast_or_null<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() && isa<FloatType>(tensor.getElementType()) && tensor.getNumElements() == 1;
}

/// Whether `name` stands in `text` as a word.
static bool mentions(StringRef text, StringRef name) {
  auto continues = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '/'; };
  for (size_t at = text.find(name); at != StringRef::npos; at = text.find(name, at + 1)) {
    size_t end = at + name.size();
    if ((at == 0 || !continues(text[at - 1])) && (end == text.size() || !continues(text[end])))
      return true;
  }
  return false;
}

bool lowtide::canCutOutputs(func::FuncOp model, const LegalizeContext &context) {
  if (!context.isOnlyUnsupported())
    return false;
  StringRef loss = context.options.loss;
  bool isAnyLeft = false, isLossLeft = !loss.empty() || !context.options.requireLoss;
  auto terminator = cast<func::ReturnOp>(model.getBody().front().getTerminator());
  for (auto [i, value] : llvm::enumerate(terminator.getOperands())) {
    auto attr = model.getResultAttrOfType<StringAttr>(i, "onnx.output");
    if (model.getResultAttr(i, assignsAttrName))
      continue;
    StringRef name = attr ? attr.getValue() : "";
    if (Value tensor = context.lookup(value).tensor; tensor && !context.selected.has(tensor)) {
      isAnyLeft = true;
      isLossLeft |= isFloatScalar(tensor.getType());
      continue;
    }
    // The loss itself, or what may be it.
    if (loss.empty() ? name == "loss" || isFloatScalar(value.getType()) : name.empty() || mentions(loss, name))
      return false;
  }
  return isAnyLeft && isLossLeft;
}

void lowtide::warnAboutCutOutput(Value output, StringRef name, const LegalizeContext &context) {
  if (context.selected.has(context.lookup(output).tensor)) {
    emitWarning(output.getLoc()) << "output '" << name
                                 << "' is left out: it has as many rows as data select, and outputs have known sizes";
    return;
  }
  llvm::SetVector<Operation *> way;
  SmallVector<Value> worklist{output};
  while (!worklist.empty())
    if (Operation *op = worklist.pop_back_val().getDefiningOp(); op && way.insert(op))
      llvm::append_range(worklist, op->getOperands());
  llvm::SetVector<StringRef> reasons;
  for (const LegalizeContext::FailedNode &failure : context.getFailures())
    if (onnx::NodeOp node = failure.node; way.contains(node.getOperation()))
      reasons.insert(node.getOpType());
  InFlightDiagnostic warning = emitWarning(output.getLoc()) << "output '" << name << "' is left out: ";
  if (reasons.empty())
    warning << "it is no tensor";
  else
    warning << "it needs " << (reasons.size() == 1 ? "operator " : "operators ") << "'"
            << llvm::join(reasons.getArrayRef(), "', '") << "', which cannot be compiled";
  warning.attachNote() << "the loss is made of other outputs";
}
