//===- Options.cpp - command line, environment, configuration file -*- C++ -*-===//
//
// Every flag has a configuration key of the same name. Precedence: command line, LOWTIDE_* environment, file, default.
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "Choices.h"
#include "CommandLine.h"
#include "Config.h"
#include "Flags.h"
#include "OptionChecks.h"
#include "lowtide/Interfaces/TargetInfo.h"
#include "lowtide/Report/Report.h"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

using namespace lowtide;
using namespace lowtide::driver;

namespace {

/// The programs that --entries lists.
bool readEntries(Options &options, std::string &error) {
  const std::vector<std::string> known = {"train", "eval", "gradient"};
  std::vector<std::string> entries;
  for (const std::string &text : options.entries) {
    std::string item;
    for (size_t i = 0; i <= text.size(); ++i) {
      if (i < text.size() && text[i] != ',') {
        item += text[i];
        continue;
      }
      if (std::find(known.begin(), known.end(), item) == known.end()) {
        error = "--entries: '" + item + "' is none of train, eval, gradient" + config::suggest(item, known);
        return false;
      }
      entries.push_back(std::move(item));
      item.clear();
    }
  }
  options.entries = std::move(entries);
  return true;
}

/// What --params and --frozen say, in the order of the command line. What a file or a variable says comes before it: a
/// later rule wins.
void orderSelections(const CLI::App &command, Options &options) {
  std::map<bool, size_t> taken;
  std::vector<Options::Selection> given;
  for (const CLI::Option *option : command.parse_order()) {
    const bool trains = option->get_single_name() == "params";
    if (trains || option->get_single_name() == "frozen")
      given.push_back({trains, (trains ? options.params : options.frozen)[taken[trains]++]});
  }
  if (taken[false] == 0)
    for (const std::string &text : options.frozen)
      options.selections.push_back({false, text});
  if (taken[true] == 0)
    for (const std::string &text : options.params)
      options.selections.push_back({true, text});
  options.selections.insert(options.selections.end(), given.begin(), given.end());
}

} // namespace

std::optional<int> lowtide::driver::parseOptions(int argc, char **argv, Options &options) {
  CLI::App app("Compiles one training step of an ONNX model into a .tide artifact", "lowtide");
  app.option_defaults()->always_capture_default();
  app.set_help_flag();
  app.set_help_all_flag("--help-all", "Everything");
  app.require_subcommand(0, 1);
  bool help = false;
  std::string logLevels;
  app.add_flag("-h,--help", help, "Short help");
  app.set_version_flag("--version", "lowtide " + describeVersion());

  auto command = [&](const char *name, const char *text, Command value) {
    CLI::App *sub = app.add_subcommand(name, text);
    sub->set_help_flag("-h,--help", "Short help");
    sub->set_help_all_flag("--help-all", "Every flag of this command");
    sub->callback([&options, value] { options.command = value; });
    return sub;
  };
  CLI::App *compile = command("compile", "Compiles a model, or stops at a stage", Command::Compile);
  CLI::App *check =
      command("check", "Says what is in a model and what stands in the way; compiles nothing", Command::Check);
  CLI::App *report = command("report", "Draws an artifact's memory into one offline HTML file", Command::Report);
  CLI::App *explain = command("explain", "Says why tensors are kept, recomputed, and where they lie", Command::Explain);
  CLI::App *diff = command("diff", "Says what changed between two artifacts, or two texts of a stage", Command::Diff);
  CLI::App *verify = command(
      "verify", "Compares a model's training step with PyTorch's, or proves an artifact's plan again", Command::Verify);
  command("doctor", "Describes this machine, for a bug report", Command::Doctor);
  CLI::App *fit =
      command("fit", "Says what the step costs at which budget; needs no weights and no device", Command::Fit);
  for (CLI::App *sub : {compile, check, fit, verify})
    addModelCommandFlags(*sub, options, logLevels);
  addCompileFlags(*compile, options);
  addFitFlags(*fit, options);
  addVerifyFlags(*verify, options);
  check->add_flag("--json", options.json, "The same facts as JSON on standard output");
  check->add_flag("--strict", options.strict,
                  "Refuses (exit 3) a file that leaves something open: a role that is assumed, or any warning");
  for (CLI::App *sub : {report, explain})
    sub->add_option("artifact", options.input, ".tide file")->required();
  report->add_option("-o,--output", options.output, "Output file; - is standard output (the artifact's name, .html)");
  report
      ->add_option("--format", options.format,
                   "html, svg, json, chrome-trace (for Perfetto) or torch-snapshot (for PyTorch's memory viewer); by "
                   "the output's extension, else html")
      ->check(config::choice({std::begin(lowtide::report::reportFormats), std::end(lowtide::report::reportFormats)}));
  report->add_option(
      "--run", options.run,
      "What a run wrote: with --log-jsonl=FILE losses and times, drawn below the plan (html, json); with "
      "--profile=FILE when each instruction ran, as lanes below the planned ones (chrome-trace)");
  explain->add_option("tensor", options.tensor,
                      "A layer, a parameter, or a tensor's number (#12); patterns work. Without it: all decisions");
  diff->add_option("before", options.input, ".tide file, or text with --ir")->required();
  diff->add_option("after", options.other, "The same of what it became")->required();
  diff->add_flag("--ir", options.diffIr, "Compares texts of a stage; the names of values do not count");

  auto fail = [](const std::string &message) {
    std::cerr << "error: " << message << "\nnote: lowtide --help lists commands and flags\n";
    return static_cast<int>(exitUsage);
  };
  try {
    config::parse(app, argc, argv);
  } catch (const CLI::CallForHelp &) {
    const std::string name = app.get_subcommands().empty() ? "" : app.get_subcommands()[0]->get_name();
    const char *page = findHelpPage(name);
    std::cout << (page ? std::string(page) : app.get_subcommands()[0]->help("lowtide"));
    return exitOk;
  } catch (const CLI::CallForAllHelp &) {
    std::cout << (app.get_subcommands().empty() ? app.help("", CLI::AppFormatMode::All)
                                                : app.get_subcommands()[0]->help("lowtide"));
    return exitOk;
  } catch (const CLI::CallForVersion &e) {
    std::cout << e.what() << "\n";
    return exitOk;
  } catch (const CLI::ParseError &e) {
    fail(e.what());
    if (e.get_exit_code() == int(CLI::ExitCodes::ExtrasError))
      std::cerr << "note: data, steps, checkpoints and logs are flags of lowtide-run\n";
    return exitUsage;
  }
  if (help || app.get_subcommands().empty()) {
    (help ? std::cout : std::cerr) << findHelpPage("");
    return help ? exitOk : exitUsage;
  }
  config::Sections sections;
  sections.own = {"model", "loss", "optimizer", "schedule", "memory", "batch", "target"};
  sections.others = {"run", "checkpoint", "log"};
  sections.flags = {
      {"model.dims", "dim"}, {"model.shapes", "shape"}, {"model.path", "model"}, {"batch.global", "batch"}};
  config::Config config(*app.get_subcommands()[0], sections);
  if (options.printSchema) {
    config.printSchema(std::cout, "lowtide " + app.get_subcommands()[0]->get_name() + ": configuration, version 1");
    return exitOk;
  }
  std::string error;
  if (!config.applyEnvironment(error) || (!options.config.empty() && !config.applyFile(options.config, error)))
    return fail(error);
  if (!options.log.configure(logLevels, error))
    return fail("--log (LOWTIDE_LOG): " + error);
  if (!readEntries(options, error))
    return fail(error);
  orderSelections(*app.get_subcommands()[0], options);
  if (options.card == "list") {
    for (const Card &card : listCards())
      std::cout << card.name.str() << std::string(12 - card.name.size(), ' ') << card.title.str() << ": "
                << (card.getBytes() >> 20) << " MiB for a step\n";
    return exitOk;
  }
  if (options.input.empty() && (compile->parsed() || check->parsed() || fit->parsed() || verify->parsed()))
    return fail("which model? for example: lowtide " + app.get_subcommands()[0]->get_name() + " model.onnx");
  if (options.printConfig) {
    config.print(std::cout);
    return exitOk;
  }
  noteFitQuestion(options, config);
  options.givesTarget = !config.findOrigin("target").empty() || !options.targetFile.empty();
  options.givesThreads = !config.findOrigin("threads-max").empty();
  if (!checkTogether(options, config))
    return exitUsage;
  noteModelFlags(options, config);
  return std::nullopt;
}
