//===- KeptOutputs.cpp - which outputs of the file a step computes --------===//
//
// A training step needs its loss. What else the file returns, such as the logits, is kept to the end of the step where
// it is an output: it leaves the steps that train, unless --outputs names it.
//
//===----------------------------------------------------------------------===//

#include "Compilation.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Dialect/Train/LossScaling.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/ShellQuote.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lowtide;

/// The name that the file has for it: an output that goes by an argument's name has an addition.
static StringRef nameInFile(train::OutputAttr output) {
  StringRef name = output.getName().getValue();
  name.consume_back("@output");
  return name;
}

/// What passes of a step tell one another.
static bool isOwnOutput(StringRef name) { return name == train::finiteName; }

Failure Compilation::keepOutputs(StringRef entry) {
  auto step = module->lookupSymbol<func::FuncOp>(entry);
  const bool isAll = llvm::is_contained(options.outputs, "all"), isNone = llvm::is_contained(options.outputs, "none");
  if (options.outputs.size() > 1 && (isAll || isNone))
    return refuse(FailureKind::Usage, "--outputs=" + llvm::join(options.outputs, ",") + ": all and none stand alone",
                  {"leave the names out, or the word"});
  SmallVector<StringRef> names;
  for (unsigned i = 0; i < step.getNumResults(); ++i)
    if (auto output = dyn_cast_or_null<train::OutputAttr>(train::getResultBinding(step, i));
        output && !isOwnOutput(output.getName()))
      names.push_back(nameInFile(output));
  for (const std::string &asked : options.outputs)
    if (!isAll && !isNone && !llvm::is_contained(names, asked))
      return refuse(FailureKind::Usage,
                    "--outputs=" + llvm::Twine(asked) + ": the model has no output '" + asked + "' besides its loss",
                    {names.empty() ? "it has no other; leave the flag out"
                                   : "outputs: " + llvm::join(names, ", ") + "; or all, or none"});
  const bool isTrained = entry != "eval";
  SmallVector<std::string> dropped;
  for (unsigned i = 0; i < step.getNumResults(); ++i)
    if (auto output = dyn_cast_or_null<train::OutputAttr>(train::getResultBinding(step, i));
        output && !isOwnOutput(output.getName()) && !isAll &&
        (isNone || (isTrained && !llvm::is_contained(options.outputs, nameInFile(output)))))
      dropped.push_back(output.getName().str());
  if (dropped.empty())
    return {};
  uint64_t bytes = 0;
  for (unsigned i = 0; i < step.getNumResults(); ++i)
    if (auto output = dyn_cast_or_null<train::OutputAttr>(train::getResultBinding(step, i));
        output && llvm::is_contained(dropped, output.getName().getValue()))
      bytes += getTensorBytes(step.getResultTypes()[i]).value_or(0);
  train::eraseResults(step, [&](Attribute binding) {
    auto output = dyn_cast_or_null<train::OutputAttr>(binding);
    return output && llvm::is_contained(dropped, output.getName().getValue());
  });
  step.emitRemark(isTrained ? "a training step" : "the evaluation")
      << " does not compute " << (dropped.size() == 1 ? "the output " : "the outputs ") << llvm::join(dropped, ", ")
      << " (" << formatBytes(bytes)
      << "); --outputs=" << (isTrained ? rt::quoteForShell(llvm::join(dropped, ",")) : "all")
      << (dropped.size() == 1 ? " keeps it" : " keeps them");
  return {};
}
