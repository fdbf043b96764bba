//===- OptionChecks.cpp - options that do not go together -------*- C++ -*-===//
//
// One rule a function: each prints what was found and what to type instead.
//
//===----------------------------------------------------------------------===//

#include "OptionChecks.h"
#include "Choices.h"
#include "Diagnostics.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Compiler/OptionTable.h"
#include "lowtide/Interfaces/TargetInfo.h"
#include "llvm/Support/FileSystem.h"

using namespace lowtide;
using namespace lowtide::driver;
using llvm::StringRef;

static bool fail(const llvm::Twine &message, const llvm::Twine &note) {
  printError(message);
  printNote(note);
  return false;
}

/// "--eps", "--eps (LOWTIDE_EPS)".
static std::string nameFlag(const std::string &flag, const std::string &origin) {
  return "--" + flag + (origin == "command line" ? "" : " (" + origin + ")");
}

/// Nothing is written over what is read: a model is not to be had again.
static bool checkFiles(const Options &options) {
  const std::string module = StringRef(options.against).rsplit(':').first.str();
  for (const std::string &output : {options.output, options.figures, options.record})
    for (const std::string &input : {options.input, options.weightsFrom, options.config, options.targetFile,
                                     options.run, options.data, options.against, module})
      if (!output.empty() && !input.empty() && llvm::sys::fs::equivalent(output, input))
        return fail("'" + output + "' would be written over, and it is what the command reads",
                    "give what is written another name");
  return true;
}

static bool checkStages(const Options &options, const config::Config &config) {
  for (const char *stage : {"onnx", "nn", "train", "fitted", "plan"})
    for (const OptionRow &row : listOptions()) {
      const std::string origin = row.stage == stage ? config.findOrigin(row.name) : "";
      // A model is written of one entry, whatever stage it comes from; f64 is made of a finished step.
      const bool isLater = (row.name == "entries" && options.emit == "onnx-model") ||
                           (row.name == "precision" && options.precision == "f64" && options.from != "fitted");
      if (origin.empty() || isLater || getStageNumber(options.from) < getStageNumber(stage))
        continue;
      return fail(nameFlag(row.name, origin) + " applies before --from=" + options.from + ": it shapes the stage " +
                      stage,
                  "leave it out, or compile the .onnx file, which goes through all stages");
    }
  return true;
}

static bool checkText(const Options &options, const config::Config &config) {
  if (!options.weightsFrom.empty() && options.from.empty())
    return fail("--weights-from goes with --from: a model brings its own weights", "leave it out");
  if (!options.weightsFrom.empty() && options.emit != "artifact")
    return fail("--weights-from has no effect on --emit=" + options.emit, "leave it out");
  if (!options.weightsFrom.empty() && !options.weights)
    return fail("--weights-from and --no-weights contradict each other", "leave out one of them");
  if (options.dumpPassPipeline && options.lastBatch)
    return fail("--dump-pass-pipeline is of one run of the passes; --last-batch compiles the model twice",
                "leave out --last-batch");
  return true;
}

static bool checkTarget(const Options &options, const config::Config &config) {
  return options.targetFile.empty() || config.findOrigin("target").empty() ||
         fail("--target and --target-file both say what the step is compiled for", "leave out one of them");
}

static bool checkBudget(const Options &options, const config::Config &config) {
  for (const auto &[flag, text] : {std::pair("host-budget", &options.hostBudget), {"disk-budget", &options.diskBudget}})
    if (options.command != Command::Fit && !text->empty())
      if (llvm::Expected<uint64_t> bytes = parseByteCount(*text); !bytes)
        return fail(nameFlag(flag, config.findOrigin(flag)) + ": " + llvm::toString(bytes.takeError()),
                    "'lowtide fit' with this list prints what each of its budgets costs");
  if (!config.findOrigin("device-budget").empty()) {
    if (llvm::Expected<ByteSize> size = parseByteSize(options.deviceBudget); !size)
      return fail("--device-budget: " + llvm::toString(size.takeError()),
                  "'lowtide fit' prints which budgets a step can have");
    for (const char *flag : {"host-budget", "disk-budget"})
      if (!config.findOrigin(flag).empty() && options.command == Command::Compile && options.rematStrategy != "fit")
        return fail(std::string("--") + flag + " has no effect with --remat-strategy=" + options.rematStrategy +
                        ", which recomputes and stores nothing",
                    "leave out one of them; 'lowtide fit --baselines' prints strategies that store");
    return true;
  }
  for (const char *flag : {"host-budget", "disk-budget"})
    if (!config.findOrigin(flag).empty() && options.command == Command::Compile)
      return fail(std::string("--") + flag + " needs --device-budget: without one, every value stays on the device",
                  "for example --device-budget=50%");
  // The table of `lowtide fit` has budgets of its own.
  const bool isOtherStrategy = options.rematStrategy != "fit";
  if (options.command != Command::Compile || (!options.bound && !isOtherStrategy))
    return true;
  return fail((options.bound ? "--bound" : "--remat-strategy=" + options.rematStrategy) +
                  " needs --device-budget: without one, nothing is recomputed",
              "for example --device-budget=50%");
}

/// The table of `lowtide fit` is of many budgets, its answer of one. A configuration file may name one: it serves
/// `lowtide compile`, too.
static bool checkTable(const Options &options, const config::Config &config) {
  if (options.command != Command::Fit)
    return true;
  auto refuse = [&](const std::string &flag, const std::string &where, StringRef note) {
    const std::string origin = config.findOrigin(flag);
    const bool isGiven = origin == "command line" || StringRef(origin).starts_with("LOWTIDE_");
    return !isGiven || fail(nameFlag(flag, origin) + " has no effect on " + where, note);
  };
  if (!refuse("remat-strategy", "'lowtide fit'", "--baselines puts all strategies next to its plans"))
    return false;
  if (!options.card.empty()) {
    std::vector<std::string> names;
    std::string list;
    for (const Card &card : listCards()) {
      names.push_back(card.name.str());
      list += (list.empty() ? "" : ", ") + card.name.str();
    }
    if (!findCard(options.card))
      return fail("--card: '" + options.card + "' is not known" + config::suggest(options.card, names),
                  "cards: " + list + "; of another, give its memory: --device-budget=24GiB");
    if (options.asksWhetherFits)
      return fail("--card and --device-budget both say how much memory there is", "leave out one of them");
  }
  if (options.card.empty() && !options.asksWhetherFits)
    return true;
  const std::string where = options.card.empty() ? "'lowtide fit --device-budget'" : "'lowtide fit --card'";
  for (const char *flag : {"rows", "baselines", "bound", "bound-rows", "rounding-rows"})
    if (!refuse(flag, where, "the table of budgets, to which it belongs, is printed without a budget"))
      return false;
  return true;
}

/// Of frozen weights: in the type that products read, in f32 and rounded by every step, or in codes of few bits.
static bool checkFrozenWeights(const Options &options) {
  llvm::StringRef frozen = options.frozenWeights, read = options.precision;
  read.consume_front("mixed-");
  if (options.codesFrozen() || frozen == "auto" || frozen == read || (frozen == "f32" && read != "f64"))
    return true;
  return fail("--frozen-weights=" + frozen + " has no effect: with --precision=" + options.precision +
                  " products read weights in " + read,
              frozen == "f32" ? "leave it out" : "take --precision=mixed-" + frozen + " or --precision=" + frozen);
}

static bool checkPrecision(const Options &options) {
  if (options.precisionOverrides.empty() || (options.precision != "f32" && options.precision != "f64"))
    return checkFrozenWeights(options);
  return fail("--precision-override needs --precision=mixed-bf16 or mixed-f16 (or bf16, f16)",
              "with --precision=" + options.precision + " all layers compute in " + options.precision);
}

static bool checkAdapters(const Options &options, const config::Config &config) {
  const std::string origin = config.findOrigin("lora");
  if (options.command == Command::Compile && options.emit == "onnx-model" && options.onnxWeights && !origin.empty())
    return fail(nameFlag("lora", origin) + " trains pairs whose first values are drawn when a run begins, and "
                                           "--emit=onnx-model writes all first values",
                "--no-onnx-weights writes the step without any");
  if (options.command != Command::Verify || origin.empty())
    return true;
  return fail(nameFlag("lora", origin) +
                  " has no effect on 'lowtide verify', which compares the model's own parameters",
              "leave it out");
}

/// Codecs store f32.
static bool checkMoments(const Options &options) {
  if (options.moments == "f32" || options.precision != "f64")
    return true;
  return fail("--moments=" + options.moments + " has no effect on --precision=f64, whose state is f64", "leave it out");
}

/// Masters are f32 where products read bf16.
static bool checkMaster(const Options &options) {
  const llvm::StringRef master = options.master;
  if ((master != "split" && master != "whole") || options.precision == "bf16" || options.precision == "mixed-bf16")
    return true;
  return fail("--master=" + master + " is for f32 parameters that products read in bf16, which --precision=" +
                  options.precision + " has none of",
              "--precision=mixed-bf16 or --precision=bf16 has them");
}

bool lowtide::driver::checkTogether(const Options &options, const config::Config &config) {
  const bool hasStages = options.command == Command::Compile || options.command == Command::Fit;
  return checkFiles(options) && (!hasStages || (checkStages(options, config) && checkText(options, config))) &&
         checkTarget(options, config) && checkTable(options, config) && checkBudget(options, config) &&
         checkPrecision(options) && checkMoments(options) && checkMaster(options) && checkAdapters(options, config);
}

void lowtide::driver::noteFitQuestion(Options &options, const config::Config &config) {
  const std::string origin = config.findOrigin("device-budget");
  options.asksWhetherFits =
      options.command == Command::Fit && (origin == "command line" || StringRef(origin).starts_with("LOWTIDE_"));
}

void lowtide::driver::noteModelFlags(Options &options, const config::Config &config) {
  // `lowtide check` says what a file holds, whatever it is compiled with.
  if (options.command == Command::Check)
    return;
  for (const OptionRow &row : listOptions()) {
    const std::string origin = row.role == OptionRole::None ? "" : config.findOrigin(row.name);
    if (origin.empty())
      continue;
    auto &given = row.role == OptionRole::Forward  ? options.forwardFlags
                  : row.role == OptionRole::Update ? options.updateFlags
                                                   : options.rateFlags;
    given[row.name] = nameFlag(row.name, origin);
  }
}
