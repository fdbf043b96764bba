//===- LossOption.cpp - which value is the loss ---------------------------===//
//
// Reads `--loss`, finds or adds the loss.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/LossOption.h"
#include "LossTerms.h"
#include "lowtide/Dialect/Train/Train.h"
#include "runtime/ShellQuote.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

static bool isFloatScalar(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return isa<FloatType>(type.getElementType()) && type.getNumElements() == 1;
}

LogicalResult lowtide::findLoss(LegalizeContext &context, SmallVectorImpl<NamedOutput> &outputs) {
  StringRef wanted = StringRef(context.options.loss).trim();
  auto names = [&] {
    std::string list;
    for (NamedOutput &output : outputs)
      list += (list.empty() ? "'" : ", '") + output.name + "'";
    return list;
  };
  // A flag has no place in the model.
  const Location flag = UnknownLoc::get(context.builder.getContext());
  auto found = outputs.end();
  if (!wanted.empty()) {
    std::vector<LossTerm> terms;
    found = llvm::find_if(outputs, [&](NamedOutput &output) { return output.name == wanted; });
    if (found == outputs.end()) {
      if (std::optional<LossFault> fault = parseLoss(wanted, terms))
        return reportLossFault(context.builder.getContext(), wanted, *fault);
      if (terms.size() == 1 && !terms.front().kind && terms.front().factor == 1)
        found = llvm::find_if(outputs, [&](NamedOutput &o) { return o.name == terms.front().output.text; });
    }
    if (found == outputs.end()) {
      FailureOr<Value> loss = LossTerms(context, outputs, wanted).build(terms);
      if (failed(loss))
        return failure();
      outputs.push_back({"loss", *loss, true});
      return success();
    }
    if (!isFloatScalar(found->value))
      return emitError(flag) << "--loss: output '" << found->name
                             << "' is no scalar float; a loss is one, or of the form cross_entropy(logits, labels)";
  } else {
    auto isScalar = [&](NamedOutput &o) {
      return isFloatScalar(o.value) && !llvm::is_contained(context.options.watched, o.name);
    };
    found = llvm::find_if(outputs, [&](NamedOutput &o) { return o.name == "loss" && isScalar(o); });
    // A file taken as it is and not trained keeps its outputs under their names.
    bool guesses = context.options.requireLoss || context.options.mode != TrainingMode::AsIs;
    if (found == outputs.end() && guesses && llvm::count_if(outputs, isScalar) == 1)
      found = llvm::find_if(outputs, isScalar);
  }
  if (found == outputs.end()) {
    if (!context.options.requireLoss)
      return success();
    InFlightDiagnostic diag = emitError(flag) << "the model has no loss: none of its outputs (" << names()
                                              << ") is the only scalar float one";
    if (auto scalar = llvm::find_if(outputs, [](NamedOutput &o) { return isFloatScalar(o.value); });
        scalar != outputs.end()) {
      diag.attachNote() << "say which of them is the loss, for example --loss="
                        << rt::quoteForShell(writeLossName(scalar->name));
      return diag;
    }
    const LossKind kind = outputs.empty() ? LossKind::CrossEntropy : suggestLossKind(outputs.front().value);
    const std::string output = outputs.empty() ? "logits" : writeLossName(outputs.front().name);
    diag.attachNote() << "say which loss to add, for example --loss="
                      << rt::quoteForShell((findLossKind(kind).name + "(" + output + ", labels)").str());
    return diag;
  }
  found->isLoss = true;
  if (cast<RankedTensorType>(found->value.getType()).getRank())
    found->value = nn::reshape(Expr(context.builder, context.function.getLoc(), found->value), {});
  return success();
}

std::vector<std::string> lowtide::suggestLosses(func::FuncOp forward) {
  std::vector<std::string> losses;
  auto values = forward.getBody().front().getTerminator()->getOperands();
  auto getOutput = [&](size_t i) {
    return forward.getResultAttrOfType<train::OutputAttr>(unsigned(i), train::bindingAttrName);
  };
  for (auto [i, value] : llvm::enumerate(values))
    if (train::OutputAttr output = getOutput(i); output && isFloatScalar(value))
      losses.push_back(writeLossName(output.getName().getValue()));
  for (auto [i, value] : llvm::enumerate(values)) {
    train::OutputAttr output = getOutput(i);
    auto type = cast<RankedTensorType>(value.getType());
    if (!output || !isa<FloatType>(type.getElementType()))
      continue;
    const std::string name = writeLossName(output.getName().getValue());
    const LossKind kind = suggestLossKind(value);
    // One number a sample is compared with one.
    const bool hasClasses = type.getRank() > 1 && type.getShape().back() > 1;
    for (StringRef labels : {"labels", "targets"})
      if (hasClasses || kind != LossKind::CrossEntropy)
        losses.push_back((findLossKind(kind).name + "(" + name + ", " + labels + ")").str());
    losses.push_back("mse(" + name + ", target)");
  }
  return losses;
}
