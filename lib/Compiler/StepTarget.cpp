//===- StepTarget.cpp - what a compile is for -------------------*- C++ -*-===//
//
// The target of the options, and what a stage's text says of its own.
//
//===----------------------------------------------------------------------===//

#include "Compilation.h"
#include "TargetFile.h"
#include "lowtide/Dialect/Train/Target.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lowtide;

Failure Compilation::findOptionsTarget() {
  if (!options.targetFile.empty()) {
    llvm::Expected<TargetInfo> row = readTargetFile(options.targetFile);
    if (!row)
      return refuse(FailureKind::Usage, llvm::toString(row.takeError()));
    target = std::move(*row);
  } else if (std::optional<TargetInfo> row = findTarget(options.target)) {
    target = std::move(*row);
  } else {
    const StringRef name = options.target;
    unsigned capability = 0;
    const bool isChip = name.starts_with("cuda:sm_") &&
                        !name.drop_front(strlen("cuda:sm_")).take_while(llvm::isDigit).getAsInteger(10, capability);
    std::vector<std::string> notes;
    if (isChip && capability < 80)
      notes.push_back("kernels need bf16 numbers, which GPUs have from sm_80 (A100, RTX 30) on");
    else if (isChip)
      notes.push_back("a GPU that is newer than a target takes its PTX: the nearest older target of the list");
    std::string chips, cards;
    for (const Chip &chip : listChips())
      chips += (", cuda:" + chip.name + " (" + chip.cards + ")").str();
    for (const Card &card : listCards())
      cards += (", cuda:" + card.name).str();
    notes.push_back("targets: cpu (this machine), cpu:x86-64-v3, cpu:x86-64-v4, reference, cuda (the same as "
                    "cuda:sm_90)" +
                    chips + ", cuda-emulated; cards" + cards.substr(1) + "; another machine: --target-file");
    return refuse(FailureKind::Usage, describeUnknownTarget(name), notes);
  }
  if (options.targetFile.empty() || options.givesThreads)
    target.threadsMax = static_cast<uint32_t>(options.threadsMax);
  return {};
}

Failure Compilation::agreeOnTarget() {
  if (options.from == "plan")
    return {};
  const bool isFitted = getStageNumber(options.from) >= getStageNumber("fitted");
  if (train::hasTarget(*module)) {
    TargetInfo written = train::getTarget(*module), given = target;
    const uint32_t threads = given.threadsMax;
    given.threadsMax = written.threadsMax;
    if (isFitted && options.givesTarget &&
        train::makeTargetAttr(&context, given) != train::makeTargetAttr(&context, written)) {
      return refuse(FailureKind::Usage,
                    "'" + sources.model + "' was fitted for " + written.name + ", and the options say " + given.name +
                        (given.name == written.name ? ", with other figures" : ""),
                    {"leave out --target and --target-file, or fit the step for it: --from=train"});
    }
    if (isFitted && options.givesThreads && threads != written.threadsMax) {
      return refuse(FailureKind::Usage,
                    "'" + sources.model + "' was fitted for " + llvm::Twine(written.threadsMax) +
                        " threads, and --threads-max says " + llvm::Twine(threads),
                    {"leave out --threads-max, or fit the step for it: --from=train"});
    }
    if (!options.givesTarget)
      target = written;
    if (options.givesThreads)
      target.threadsMax = threads;
    else if (options.targetFile.empty())
      target.threadsMax = written.threadsMax;
  }
  const Attribute before = (*module)->getAttr(train::targetAttrName);
  train::setTarget(*module, target);
  // What lowtide-opt has to be told so that its module is for the same; of a file it knows nothing.
  if (options.targetFile.empty() && (*module)->getAttr(train::targetAttrName) != before)
    pipeline.push_back("train-set-target{target=" + target.name + " threads-max=" + std::to_string(target.threadsMax) +
                       "}");
  return {};
}
