//===- CheckAdvice.cpp - what is missing, and what to type ------*- C++ -*-===//
//
// The end of `lowtide check`: two command lines that work, and what the data are.
//
//===----------------------------------------------------------------------===//

#include "Compilation.h"
#include "lowtide/Dialect/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/ShellQuote.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lowtide;
using rt::quoteForShell;

static bool hasLoss(func::FuncOp forward) {
  return llvm::any_of(llvm::seq(forward.getNumResults()), [&](unsigned i) {
    return static_cast<bool>(forward.getResultAttrOfType<train::MetricAttr>(i, train::bindingAttrName));
  });
}

std::string Compilation::describeData(func::FuncOp forward) {
  std::string text;
  for (unsigned i = 0; i < forward.getNumArguments(); ++i) {
    auto batch = forward.getArgAttrOfType<train::BatchAttr>(i, train::bindingAttrName);
    if (!batch)
      continue;
    auto type = cast<RankedTensorType>(forward.getArgument(i).getType());
    SmallVector<std::string> sizes;
    // Data have their samples first, wherever the model has them.
    if (batch.getDim() >= 0)
      sizes.push_back("N");
    for (auto [dim, size] : llvm::enumerate(type.getShape()))
      if (int64_t(dim) != batch.getDim())
        sizes.push_back(std::to_string(size));
    text += text.empty() ? "" : ", ";
    llvm::raw_string_ostream(text) << batch.getName().getValue() << " [" << llvm::join(sizes, ",") << "] "
                                   << type.getElementType();
  }
  return text;
}

std::optional<std::string> Compilation::findMissingLoss(func::FuncOp model, func::FuncOp &forward) {
  if (hasLoss(forward))
    return std::nullopt;
  ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
  for (std::string &loss : suggestLosses(forward)) {
    LegalizeOptions legalizeOptions = this->legalizeOptions(options.mode);
    legalizeOptions.loss = loss;
    legalizeOptions.entry = "trial";
    FailureOr<func::FuncOp> trial = legalizeModel(model, legalizeOptions);
    if (failed(trial))
      continue;
    forward = *trial;
    return std::move(loss);
  }
  return std::string();
}

CheckAdvice Compilation::advise(ArrayRef<std::string> unbound, const std::optional<std::string> &loss,
                                StringRef data) const {
  const std::string stem = StringRef(sources.model).rsplit('/').second.empty()
                               ? sources.model
                               : StringRef(sources.model).rsplit('/').second.str();
  const std::string artifact = StringRef(stem).rsplit('.').first.str() + ".tide";
  std::string line = "lowtide compile " + quoteForShell(sources.model) + " -o " + quoteForShell(artifact);
  auto add = [&](StringRef flag, StringRef text) { line += (" " + flag + "=" + quoteForShell(text)).str(); };
  for (const std::string &text : options.dims)
    add("--dim", text);
  for (const std::string &text : options.shapes)
    add("--shape", text);
  if (options.batch)
    add("--batch", std::to_string(options.batch));
  for (const std::string &flag : unbound) {
    auto [name, value] = StringRef(flag).split(' ');
    add(name, value);
  }
  for (const std::string &text : options.rename)
    add("--rename", text);
  for (const std::string &text : options.set)
    add("--set", text);
  for (const Request::Selection &selection : options.selections)
    add(selection.trains ? "--params" : "--frozen", selection.text);
  if (!options.loss.empty() || loss)
    add("--loss", loss ? *loss : options.loss);
  return {unbound,
          loss.has_value(),
          loss.value_or(""),
          line,
          "lowtide-run " + quoteForShell(artifact) + " --data=data.npz --steps=100",
          data.str()};
}

Failure Compilation::refuseGuesses(ArrayRef<InitializerInfo> infos) {
  SmallVector<std::string> guessed;
  for (const InitializerInfo &info : infos)
    if (info.certainty == Certainty::Assumed)
      guessed.push_back("'" + info.name + "'");
  const unsigned numWarnings = diagnostics.countWarnings();
  const auto numGuesses = llvm::count_if(file->getReport().getFindings(), [](const Finding &finding) {
    return finding.getCertainty() == Certainty::Assumed;
  });
  if (guessed.empty() && !numWarnings)
    return {};
  constexpr size_t mostNamed = 8;
  if (!guessed.empty()) {
    std::string names = llvm::join(ArrayRef(guessed).take_front(mostNamed), ", ");
    if (guessed.size() > mostNamed)
      names += " and " + std::to_string(guessed.size() - mostNamed) + " more";
    refuse(FailureKind::Unsupported,
           "--strict: the file does not say what " + names + (guessed.size() == 1 ? " is" : " are") +
               "; their roles are assumed",
           {"say it with --params=GLOB and --frozen=GLOB, or export with names that tell (docs/import.md)"});
  }
  if (numWarnings)
    refuse(FailureKind::Unsupported, "--strict: the file differs from its program, or may, in what the " +
                                         llvm::Twine(numWarnings) +
                                         (numWarnings == 1 ? " warning says" : " warnings say") +
                                         "; guesses among them: " + llvm::Twine(numGuesses));
  return FailureKind::Unsupported;
}
