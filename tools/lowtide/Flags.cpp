//===- Flags.cpp - the flags of compile, check, fit and verify --*- C++ -*-===//
//
// The rows of the compiler's options, and what only a command line has; the configuration file has keys of the same
// names.
//
//===----------------------------------------------------------------------===//

#include "Flags.h"
#include "Choices.h"
#include "NumberChecks.h"
#include "lowtide/Compiler/OptionTable.h"
#include "llvm/ADT/StringExtras.h"
#include <CLI/CLI.hpp>

using namespace lowtide;
using namespace lowtide::driver;
using config::addList;
using config::positive;

/// What `--help-all` says of a check; an empty text: nothing.
static std::string describe(const OptionCheck &check) {
  switch (check.kind) {
  case OptionCheck::Kind::Positive:
    return "POSITIVE";
  case OptionCheck::Kind::NonNegative:
    return "NONNEGATIVE";
  case OptionCheck::Kind::Rate:
    return "FLOAT in [0 - 1]";
  case OptionCheck::Kind::Range:
    return "INT in [" + std::to_string(check.low) + " - " + std::to_string(check.high) + "]";
  case OptionCheck::Kind::Words:
    return "{" + llvm::join(check.words, ",") + "}";
  case OptionCheck::Kind::Custom:
    return "";
  }
  return "";
}

/// CLI11's form of a check.
static CLI::Validator validatorOf(const OptionCheck &check) {
  return CLI::Validator([check](std::string &text) { return check.findFault(text); }, describe(check));
}

namespace {

/// Makes the flag of a row, whose value goes into the options.
struct FlagMaker {
  CLI::App &app;
  Options &o;
  const OptionRow &row;
  const std::string flag;

  CLI::Option *operator()(std::monostate) const {
    if (row.name == "last-batch")
      return app.add_option(flag, o.lastBatch, row.text);
    return addList(app, flag, row.name == "params" ? o.params : o.frozen, row.text);
  }
  CLI::Option *operator()(std::string Request::*field) const {
    if (row.implicitValue.empty())
      return app.add_option(flag, o.*field, row.text);
    return app.add_flag(flag + "{" + row.implicitValue + "}", o.*field, row.text);
  }
  CLI::Option *operator()(int64_t Request::*field) const { return app.add_option(flag, o.*field, row.text); }
  CLI::Option *operator()(double Request::*field) const { return app.add_option(flag, o.*field, row.text); }
  CLI::Option *operator()(bool Request::*field) const {
    if (o.*field)
      return app.add_flag(flag + ",!--no-" + row.name, o.*field, row.text);
    // Whoever asks for figures wants to read them: they are remarks.
    return app.add_flag(
        flag,
        [&o = o, field](int64_t count) {
          o.*field = count > 0;
          if (o.*field)
            o.verbosity = std::max(o.verbosity, 1);
        },
        row.text);
  }
  CLI::Option *operator()(std::vector<std::string> Request::*field) const {
    return row.isSplit ? app.add_option(flag, o.*field, row.text)->delimiter(',')
                       : addList(app, flag, o.*field, row.text);
  }
  CLI::Option *operator()(std::map<std::string, std::string> Request::*field) const {
    std::string key = row.name;
    std::replace(key.begin(), key.end(), '-', '_');
    auto &values = o.*field;
    if (!row.switchValue.empty())
      return app.add_flag_function(
          flag, [&values, key, on = row.switchValue](int64_t count) { values[key] = count > 0 ? on : "0"; }, row.text);
    return app.add_option_function<std::string>(
        flag, [&values, key](const std::string &value) { values[key] = value; }, row.text);
  }
};

} // namespace

static void addOption(CLI::App &app, Options &o, const OptionRow &row) {
  CLI::Option *option = std::visit(FlagMaker{app, o, row, "--" + row.name}, row.field);
  for (const OptionCheck &check : row.checks)
    option->check(validatorOf(check));
  option->group(row.group);
}

/// Flags that say where things go; `before` is the option of the table that they precede.
static void addPathFlags(CLI::App &app, Options &o, const std::string &before) {
  if (before == "emit")
    app.add_option("-o,--output", o.output, "Output file; - is standard output")->group("stages");
  if (before != "onnx-stage")
    return;
  app.add_option("--weights-from", o.weightsFrom,
                 "With --from: the ONNX file that the text was made of, whose weights go into the artifact")
      ->group("stages");
  app.add_flag("--dump-pass-pipeline", o.dumpPassPipeline,
               "Prints on standard error which passes have made what was asked for, as lowtide-opt "
               "--pass-pipeline=… takes them")
      ->group("stages");
}

static void addOtherFlags(CLI::App &app, Options &o, std::string &levels) {
  app.add_option("--config", o.config, "JSON file with the same keys as flags")->group("other");
  app.add_flag("--print-config", o.printConfig, "Prints the merged configuration with its origins, and exits")
      ->group("other");
  app.add_flag("--print-schema", o.printSchema, "Prints the JSON schema of the configuration file, and exits")
      ->group("other");
  app.add_flag(
         "-v,--verbose", [&o](int64_t count) { o.verbosity = count > 0 ? 1 : o.verbosity; }, "More remarks")
      ->group("other");
  app.add_flag(
         "-q,--quiet", [&o](int64_t count) { o.verbosity = count > 0 ? -1 : o.verbosity; }, "Errors only")
      ->group("other");
  app.add_option("--log", levels,
                 "Log lines `time level area message` (plan=debug,fitted=info; or one level for all areas): off, info, "
                 "debug; areas: import, nn, train, fitted, plan, artifact, and lowtide-run's")
      ->group("other");
}

void lowtide::driver::addModelCommandFlags(CLI::App &command, Options &options, std::string &logLevels) {
  command.add_option("model", options.input, "ONNX file (or a stage's text with --from); or in the configuration file");
  for (const OptionRow &row : listOptions()) {
    addPathFlags(command, options, row.name);
    addOption(command, options, row);
  }
  addOtherFlags(command, options, logLevels);
}

void lowtide::driver::addCompileFlags(CLI::App &compile, Options &options) {
  compile
      .add_option(
          "--figures", options.figures,
          "Writes bytes, recomputation and estimated time of every entry to this file as JSON; of a budget that "
          "is refused, the smallest that is not")
      ->group("stages");
}

void lowtide::driver::addFitFlags(CLI::App &fit, Options &options) {
  fit.add_flag("--json", options.json, "The same figures as JSON on standard output");
  fit.add_option("--rows", options.fitRows, "Lines of the table")->check(config::wholeNumber(2, 1000));
  fit.add_option("--card", options.card,
                 "Whether the step fits a card: its memory, less what the driver's context and the libraries take; "
                 "instead of --device-budget (--card=list: all that are known)");
  fit.add_flag("--baselines", options.baselines, "Also what the other strategies cost at the same peak");
  fit.add_option("--bound-rows", options.boundRows, "Lines with a bound: each takes up to four minutes; 0: none")
      ->check(config::wholeNumber(0, 1000));
  fit.add_option(
         "--rounding-rows", options.roundingRows,
         "Lines for which lp-rounding solves two linear programs, each of up to a minute; lines above them take "
         "the cheapest of its plans that fits; 0: none")
      ->check(config::wholeNumber(0, 1000));
}

void lowtide::driver::addVerifyFlags(CLI::App &verify, Options &options) {
  verify
      .add_option(
          "--against", options.against,
          "What the training step of a model is compared with: a record.npz (docs/verify.md), or "
          "module.py:make, a function that returns module, loss and batch; onnxruntime: forward values, node by node")
      ->group("proof");
  verify.add_option("--data", options.data, "What ONNX Runtime computes: the first batch of an .npz file")
      ->group("proof");
  verify
      .add_option(
          "--python", options.python,
          "The Python that runs module.py; it needs torch and numpy (for onnxruntime: onnx, onnxruntime, numpy)")
      ->group("proof");
  verify.add_option("--record", options.record, "Keeps the record that is made of module.py in this file")
      ->group("proof");
  verify.add_option("--proof-steps", options.proofSteps, "Losses in that record")
      ->check(config::wholeNumber(1, 1000))
      ->group("proof");
  verify
      .add_option("--tolerance", options.tolerance,
                  "Largest difference of an entry, in units of the largest entry of its array")
      ->check(positive())
      ->group("proof");
  verify.add_flag("--json", options.json, "The same facts as JSON on standard output")->group("proof");
}
