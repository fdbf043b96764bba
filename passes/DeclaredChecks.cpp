//===- DeclaredChecks.cpp - checks of declared options ----------*- C++ -*-===//
//
// The functions that records name as their check.
//
//===----------------------------------------------------------------------===//

#include "DeclaredChecks.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Dialect/Train/Adapters.h"
#include "lowtide/Dialect/Train/Layouts.h"
#include "lowtide/Dialect/Train/LossScaling.h"
#include "lowtide/Dialect/Train/Optimizers.h"
#include "lowtide/Dialect/Train/TrainOptions.h"
#include "lowtide/Interfaces/TargetInfo.h"
#include "lowtide/Legalize/LossText.h"
#include "lowtide/Solve/Portfolio/Methods.h"
#include "lowtide/Support/DeclaredOptions.h"
#include "lowtide/Support/Failure.h"
#include "lowtide/Support/OptionChoices.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

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

static std::string findCountFault(const std::string &text) {
  const bool isNumber = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  if (text == "auto" || text == "off" || (isNumber && text.size() < 10 && std::stol(text) > 0))
    return std::string();
  return "must be auto, off or a positive number, not '" + text + "'";
}

static std::string findByteSizeFault(const std::string &text) {
  llvm::Expected<ByteSize> size = parseByteSize(text);
  return size ? std::string() : llvm::toString(size.takeError());
}

static std::string findByteCountsFault(const std::string &text) {
  llvm::Expected<std::vector<ByteCount>> counts = parseByteCounts(text);
  return counts ? std::string() : llvm::toString(counts.takeError());
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

/// What a parser says of a text, without the option's name in front: whoever asks knows it.
static std::string describe(llvm::Error error, StringRef option) {
  const std::string message = error ? llvm::toString(std::move(error)) : std::string();
  StringRef words = message;
  if (words.consume_front(option))
    words.consume_front(": ");
  return words.str();
}

static std::string findAdapterFault(const std::string &text) {
  return describe(train::parseAdapterRules(text).takeError(), "lora");
}

static std::string findLossScaleFault(const std::string &text) {
  return describe(train::LossScale::parse(text).takeError(), "loss-scale");
}

static std::string findStepsFault(const std::string &text) {
  int64_t steps = 0;
  const bool isCount = !StringRef(text).getAsInteger(10, steps) && steps >= 0;
  return isCount ? std::string() : "must be a number of steps, not '" + text + "'";
}

static std::string findSwitchFault(const std::string &text) {
  return isOn(text) || isOff(text) ? std::string() : "must be true or false, not '" + text + "'";
}

static std::string findOverrideFault(const std::string &text) {
  for (StringRef rule : llvm::split(text, ';')) {
    if (rule.trim().empty())
      continue;
    auto [patterns, type] = rule.rsplit('=');
    if (patterns.empty() || !llvm::is_contained({"f32", "bf16", "f16"}, type))
      return ("'" + rule + "' is not of the form PATTERN,PATTERN=TYPE with TYPE f32, bf16 or f16").str();
    std::vector<NamePattern> parsed;
    if (llvm::Error error = train::parsePatterns(patterns, parsed))
      return llvm::toString(std::move(error));
  }
  return "";
}

/// "f32" and the codecs with a record (Layouts.td).
static SmallVector<StringRef> listLayouts(MLIRContext &context, train::CodecUse use) {
  SmallVector<StringRef> names = {"f32"};
  llvm::append_range(names, train::listCodecs(&context, use));
  return names;
}

namespace {
/// What records of optimizers and codecs say, without their context.
struct KnownOptimizers {
  explicit KnownOptimizers(MLIRContext &context) {
    for (StringRef optimizer : train::listOptimizers(&context)) {
      names.push_back(optimizer.str());
      const ArrayRef<train::OptimizerOption> known = train::findOptimizer(&context, optimizer)->options;
      for (const train::OptimizerOption &option : known)
        optionsOf[optimizer.str()].push_back(option.name.str());
    }
    for (const auto &[optimizer, all] : optionsOf)
      for (const std::string &option : all)
        if (!llvm::is_contained(options, option))
          options.push_back(option);
    std::sort(options.begin(), options.end());
    for (auto [option, use] : {std::pair("moments", train::CodecUse::Moments), {"master", train::CodecUse::Master}})
      for (StringRef codec : listLayouts(context, use))
        layouts[option].push_back(codec.str());
  }

  std::vector<std::string> names, options;
  std::map<std::string, std::vector<std::string>> optionsOf, layouts;
};
} // namespace

/// "'adamx' is none of …"
static std::string findWordFault(const std::string &text, const std::vector<std::string> &words) {
  return OptionCheck{Kind::Words, words}.findFault(text);
}

/// What no group of any optimizer has; what its own optimizer lacks is asked where that is known (TrainOptions).
static std::string findGroupFault(const std::string &text, const KnownOptimizers &known) {
  train::TrainOptions options;
  if (llvm::Error error = options.set("group", text))
    return describe(std::move(error), "group");
  for (const train::GroupRule &rule : options.groups) {
    if (!rule.optimizer.empty())
      if (std::string fault = findWordFault(rule.optimizer, known.names); !fault.empty())
        return "optimizer: " + fault;
    for (const auto &[name, layout] : rule.layouts)
      if (std::string fault = findWordFault(layout, known.layouts.at(name)); !fault.empty())
        return name + ": " + fault;
    for (const auto &[name, value] : rule.options) {
      if (name == "lr" && value < 0)
        return llvm::formatv("lr must not be negative, found {0}", value).str();
      if (name != "lr" && !llvm::is_contained(known.options, name)) {
        // What stands for a group itself comes first, then what its optimizer takes.
        std::vector<std::string> words = {"lr", "optimizer", "moments", "master"};
        const auto own = known.optionsOf.find(rule.optimizer);
        llvm::append_range(words, own == known.optionsOf.end() ? known.options : own->second);
        return findWordFault(name, words);
      }
    }
  }
  return "";
}

static std::string findFallbackFault(const std::string &text, const KnownOptimizers &known) {
  train::TrainOptions options;
  if (llvm::Error error = options.set("fallback", text))
    return describe(std::move(error), "fallback");
  return findWordFault(options.fallback, known.names);
}

static std::string findMethodFault(const std::string &text) {
  std::vector<std::string> known;
  for (const solve::MethodName &method : solve::listMethods())
    known.emplace_back(method.name);
  for (StringRef name : llvm::split(text, ','))
    if (std::string fault = findWordFault(name.str(), known); !fault.empty())
      return fault;
  return "";
}

static OptionCheck byFunction(std::function<std::string(const std::string &)> findFault) {
  return {Kind::Custom, {}, 0, 0, std::move(findFault)};
}

/// Words with commas between them.
template <size_t size> struct WordList {
  consteval WordList(const char (&text)[size]) { std::copy_n(text, size, characters); }
  char characters[size];
};

static Checks unchecked(MLIRContext &) { return {}; }
// `parser`, where the text is read, says what is wrong with it.
template <auto parser> static Checks readBy(MLIRContext &) { return {}; }
static Checks adapters(MLIRContext &) { return {byFunction(findAdapterFault)}; }
static Checks lossScale(MLIRContext &) { return {byFunction(findLossScaleFault)}; }
static Checks methods(MLIRContext &) { return {byFunction(findMethodFault)}; }
static Checks steps(MLIRContext &) { return {byFunction(findStepsFault)}; }
static Checks onOrOff(MLIRContext &) { return {byFunction(findSwitchFault)}; }
static Checks precisionOverrides(MLIRContext &) { return {byFunction(findOverrideFault)}; }
static Checks optimizers(MLIRContext &context) { return {{Kind::Words, KnownOptimizers(context).names}}; }
static Checks groups(MLIRContext &context) {
  return {
      byFunction([known = KnownOptimizers(context)](const std::string &text) { return findGroupFault(text, known); })};
}
static Checks fallbacks(MLIRContext &context) {
  return {byFunction(
      [known = KnownOptimizers(context)](const std::string &text) { return findFallbackFault(text, known); })};
}
static Checks positive(MLIRContext &) { return {{Kind::Positive}}; }
static Checks countOrAuto(MLIRContext &) { return {byFunction(findCountFault)}; }
static Checks nonNegative(MLIRContext &) { return {{Kind::NonNegative}}; }
static Checks rate(MLIRContext &) { return {{Kind::Rate}}; }
static Checks decay(MLIRContext &) { return {byFunction(findDecayFault)}; }
static Checks byteSize(MLIRContext &) { return {byFunction(findByteSizeFault)}; }
static Checks byteCounts(MLIRContext &) { return {byFunction(findByteCountsFault)}; }
static Checks schedules(MLIRContext &) { return {ofWords(train::listSchedules())}; }
template <const auto &list> static Checks words(MLIRContext &) {
  return {ofWords(llvm::to_vector_of<StringRef>(list))};
}
template <WordList list> static Checks anyOf(MLIRContext &) {
  return {ofWords(llvm::to_vector_of<StringRef>(llvm::split(list.characters, ',')))};
}
template <int64_t low, int64_t high> static Checks range(MLIRContext &) { return {{Kind::Range, {}, low, high}}; }
template <train::CodecUse use> static Checks codecs(MLIRContext &context) {
  return {ofWords(listLayouts(context, use))};
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

LogicalResult lowtide::checkOptions(Operation *op, ArrayRef<std::pair<StringRef, StringRef>> given) {
  return failure(
      llvm::any_of(given, [&](auto option) { return failed(checkOption(op, option.first, option.second)); }));
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
