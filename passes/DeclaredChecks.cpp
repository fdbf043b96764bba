//===- DeclaredChecks.cpp - checks of declared options ----------*- C++ -*-===//
//
// The functions that records name as their check.
//
//===----------------------------------------------------------------------===//

#include "DeclaredChecks.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Dialect/Train/Layouts.h"
#include "lowtide/Dialect/Train/TrainOptions.h"
#include "lowtide/Interfaces/TargetInfo.h"
#include "lowtide/Support/DeclaredOptions.h"
#include "lowtide/Support/Failure.h"
#include "lowtide/Support/OptionChoices.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace lowtide;

using Kind = OptionCheck::Kind;
/// The one check of an option, or none.
using Checks = std::vector<OptionCheck>;

static std::string findDecayFault(const std::string &text) {
  double decay = 0;
  const bool isDecay = !StringRef(text).getAsDouble(decay) && decay > 0 && decay < 1;
  return isDecay ? std::string() : "must lie between 0 and 1, as 0.999 does, not '" + text + "'";
}

static std::string findByteSizeFault(const std::string &text) {
  llvm::Expected<ByteSize> size = parseByteSize(text);
  return size ? std::string() : llvm::toString(size.takeError());
}

static std::string findByteCountFault(const std::string &text) {
  llvm::Expected<ByteSize> size = parseByteSize(text);
  if (!size)
    return llvm::toString(size.takeError());
  return size->fraction < 0 ? std::string() : "'" + text + "' is a part of nothing that is known; bytes, as in 32GiB";
}

static OptionCheck ofWords(ArrayRef<StringRef> words) {
  return {Kind::Words, std::vector<std::string>(words.begin(), words.end())};
}

namespace {
struct CheckedOption {
  std::string_view name;
  Checks (*make)(MLIRContext &context);
};
} // namespace

static Checks parsed(MLIRContext &) { return {}; }
static Checks nonNegative(MLIRContext &) { return {{Kind::NonNegative}}; }
static Checks rate(MLIRContext &) { return {{Kind::Rate}}; }
static Checks decay(MLIRContext &) { return {{Kind::Custom, {}, 0, 0, findDecayFault}}; }
static Checks byteSize(MLIRContext &) { return {{Kind::Custom, {}, 0, 0, findByteSizeFault}}; }
static Checks byteCount(MLIRContext &) { return {{Kind::Custom, {}, 0, 0, findByteCountFault}}; }
static Checks schedules(MLIRContext &) { return {ofWords(train::listSchedules())}; }
template <const auto &list> static Checks words(MLIRContext &) {
  return {ofWords(llvm::to_vector_of<StringRef>(list))};
}
template <int64_t low, int64_t high> static Checks range(MLIRContext &) { return {{Kind::Range, {}, low, high}}; }
/// "f32" and the codecs with a record (Layouts.td).
template <train::CodecUse use> static Checks codecs(MLIRContext &context) {
  SmallVector<StringRef> names = {"f32"};
  llvm::append_range(names, train::listCodecs(&context, use));
  return {ofWords(names)};
}

#define GET_OptionChecks_IMPL
#include "lowtide/Support/DeclaredOptions.inc"

static StringRef findDefault(StringRef option) {
  const auto *row =
      llvm::find_if(DeclaredOptions, [&](const DeclaredOption &row) { return StringRef(row.name) == option; });
  assert(row != std::end(DeclaredOptions) && "an option without a record");
  return row->initial;
}

std::vector<OptionCheck> lowtide::listChecks(StringRef option, MLIRContext &context) {
  const auto *row =
      llvm::find_if(OptionChecks, [&](const CheckedOption &row) { return StringRef(row.name) == option; });
  assert(row != std::end(OptionChecks) && "an option without a record");
  Checks checks = row->make(context);
  for (OptionCheck &check : checks)
    check.accepted = findDefault(option).str();
  return checks;
}

LogicalResult lowtide::checkOption(Operation *op, StringRef option, StringRef text, const OptionCheck &check) {
  const std::string fault = check.findFault(text.str());
  if (fault.empty())
    return success();
  if (isa<ModuleOp>(op))
    setFailure(op, FailureKind::Usage);
  return op->emitError() << option << ": " << fault;
}

LogicalResult lowtide::checkOption(Operation *op, StringRef option, StringRef text) {
  // Not given, where no text is the default: a flag without text is a mistake.
  if (text.empty() && findDefault(option).empty())
    return success();
  for (const OptionCheck &check : listChecks(option, *op->getContext()))
    if (failed(checkOption(op, option, text, check)))
      return failure();
  return success();
}
