//===- Options.cpp - command line, environment, configuration file -*- C++ -*-===//
//
// Every flag has a configuration key of the same name. Precedence: command line, LOWTIDE_* environment, file, default.
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "Config.h"
#include "NumberChecks.h"
#include "OptionChecks.h"
#include "lowtide/Target/Report.h"
#include <CLI/CLI.hpp>
#include <cstring>
#include <iostream>

using namespace lowtide;
using namespace lowtide::driver;
using config::nonNegative;
using config::positive;
using config::rate;

namespace {

constexpr const char *shortHelp = R"help(lowtide: compiles one training step of an ONNX model into a .tide artifact

  lowtide compile gpt.onnx -o gpt.tide --dim batch=8 --optimizer=adamw --lr=3e-4
  lowtide check gpt.onnx                      what is in the file, what is missing
  lowtide fit gpt.onnx --dim batch=8          what the step costs at which budget
  lowtide compile gpt.onnx --emit=nn -o -     stop at a stage and print it
  lowtide report gpt.tide -o gpt.html         waterline and address map
  lowtide explain gpt.tide 'h.0.*'            why a tensor is kept, recomputed, where it lies
  lowtide diff old.tide new.tide              what changed (--ir: two texts of a stage)
  lowtide verify gpt.tide                     prove the plan again
  lowtide doctor                              this machine, for a bug report

model      --dim NAME=V  --shape INPUT=8x64  --batch=N  --mode=train|eval|as-is
           --dropout=P  --loss="cross_entropy(logits, labels)"
parameters --params=GLOB  --frozen=GLOB  --rename=FILE_NAME=NAME
optimizer  --optimizer=sgd|momentum|adagrad|adam|adamw  --lr=  --betas=  --eps=
           --weight-decay=  --momentum=  --nesterov  --group=GLOB:weight_decay=0
gradients  --clip-norm=  --clip-value=  --loss-scale=none|65536|dynamic
schedule   --schedule=constant|linear|cosine  --warmup-steps=  --total-steps=
precision  --precision=f32|mixed-bf16|mixed-f16|bf16|f16|f64
           --precision-override='*.ln*=f32'
target     --target=cpu|cuda|cuda-emulated|reference  --entries=train,eval
memory     --device-budget=8MiB|1.5GiB|50%  --micro-batches=K
           --loss-head-chunks=auto|off|N
stages     --emit=onnx|nn|train|fitted|plan|kernels|ptx|artifact|onnx-model
           --from=onnx|nn|train|fitted  --onnx-stage=nn|train|fitted
other      -o FILE  --config=FILE.json  --print-config  -v  -q  --log=plan=debug
           --help-all: every flag of a command, explained (lowtide compile --help-all)

exit codes: 0 ok, 1 usage, 2 bad input file, 3 unsupported, 4 does not fit the
budget, 5 verification failed, 6 device, 7 non-finite loss, 8 I/O, 9 losses
leave the recorded run, 70 internal
)help";

/// "adamw" → {"adamw"}; CLI11 checks membership and prints the choices.
CLI::IsMember choice(std::vector<std::string> values) { return CLI::IsMember(std::move(values)); }

void addModelFlags(CLI::App &app, Options &o) {
  app.add_option("--dim", o.dims, "Binds a symbolic dimension: NAME=VALUE")->delimiter(',')->group("model");
  app.add_option("--shape", o.shapes, "Shape of an input: INPUT=8x64")->delimiter(',')->group("model");
  app.add_option("--batch", o.batch, "Samples per step: binds the symbol in dimension 0 of every input")
      ->check(positive())
      ->group("model");
  app.add_option("--last-batch", o.lastBatch,
                 "Further entries for a batch of so many samples: what no whole batch holds")
      ->check(positive())
      ->group("model");
  app.add_option("--mode", o.mode, "train: batch norm and dropout in training form; as-is: as the file says")
      ->check(choice({"train", "eval", "as-is"}))
      ->group("model");
  app.add_option("--dropout", o.dropout, "Overrides every dropout rate")->check(rate())->group("model");
  app.add_option(
         "--loss", o.loss,
         "Adds a loss: \"cross_entropy(LOGITS, LABELS)\", \"nll(PROBABILITIES, LABELS)\", \"mse(OUTPUT, TARGET)\", "
         "\"l1(…)\", \"bce_with_logits(…)\" or \"bce(PROBABILITIES, TARGET)\"")
      ->group("model");
  app.add_option("--params", o.params, "Initializers to train, as globs")->delimiter(',')->group("parameters");
  app.add_option("--frozen", o.frozen, "Initializers to keep as they are, as globs")
      ->delimiter(',')
      ->group("parameters");
  app.add_option("--rename", o.rename, "Parameter names: NAME_IN_FILE=NAME")->delimiter(',')->group("parameters");
}

void addTrainingFlags(CLI::App &app, Options &o) {
  auto optimizerOption = [&](const char *flag, const char *key, const char *text) {
    app.add_option_function<std::string>(
           flag, [&o, key](const std::string &value) { o.optimizerOptions[key] = value; }, text)
        ->group("optimizer");
  };
  app.add_option("--optimizer", o.optimizer, "Update rule: sgd, momentum, adagrad, adam, adamw")->group("optimizer");
  app.add_option("--convention", o.convention, "Whose formula: PyTorch's, or ONNX's ai.onnx.preview.training")
      ->check(choice({"torch", "onnx"}))
      ->group("optimizer");
  app.add_option("--lr", o.lr, "Learning rate")->group("optimizer");
  optimizerOption("--betas", "betas", "Adam's two decay rates (0.9,0.999)");
  optimizerOption("--eps", "eps", "Added to the denominator (adam, adamw: 1e-8; adagrad: 1e-10)");
  optimizerOption("--weight-decay", "weight_decay", "adamw: decoupled (0.01); others: L2 in the gradient (0)");
  optimizerOption("--momentum", "momentum", "sgd: momentum factor (0)");
  optimizerOption("--dampening", "dampening", "sgd: part of the gradient kept out of the momentum buffer (0)");
  optimizerOption("--lr-decay", "lr_decay", "adagrad: learning rate / (1 + step * lr_decay) (0)");
  optimizerOption("--initial-accumulator-value", "initial_accumulator_value", "adagrad: first sum of squares (0)");
  app.add_flag_callback(
         "--nesterov", [&o] { o.optimizerOptions["nesterov"] = "1"; }, "sgd: Nesterov momentum")
      ->group("optimizer");
  app.add_option("--group", o.groups, "Parameter group: PATTERN[,PATTERN]:lr=X,weight_decay=Y; may repeat")
      ->group("optimizer")
      ->expected(1)
      ->take_all();
  app.add_option("--schedule", o.schedule, "Learning-rate schedule")
      ->check(choice({"constant", "linear", "cosine"}))
      ->group("schedule");
  app.add_option("--warmup-steps", o.warmupSteps, "Steps of linear warm-up")->group("schedule");
  app.add_option("--total-steps", o.totalSteps, "Step from which the schedule stays at --min-lr")->group("schedule");
  app.add_option("--min-lr", o.minLr, "Where linear and cosine end")->group("schedule");
}

void addTargetFlags(CLI::App &app, Options &o) {
  app.add_option("--micro-batches", o.microBatches, "Computes a step in so many equal parts of the batch")
      ->check(positive())
      ->group("memory");
  app.add_option("--loss-head-chunks", o.lossHeadChunks,
                 "Pieces of the logits of a loss head: auto (where they are large), a number, off")
      ->check([](const std::string &text) {
        bool isNumber = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
        if (text == "auto" || text == "off" || (isNumber && text.size() < 10 && std::stol(text) > 0))
          return std::string();
        return "--loss-head-chunks is auto, off or a positive number, not '" + text + "'";
      })
      ->group("memory");
  app.add_option("--target", o.target,
                 "cpu[:x86-64-v3|:x86-64-v4], cuda[:sm_90|:sm_90a|:sm_80], cuda-emulated, reference")
      ->group("target");
  app.add_option("--precision", o.precision,
                 "f32; mixed-bf16, mixed-f16: 16-bit activations, f32 parameters; bf16, f16: parameters too; f64 with "
                 "--target=reference")
      ->check(choice({"f32", "mixed-bf16", "mixed-f16", "bf16", "f16", "f64"}))
      ->group("target");
  app.add_option("--precision-override", o.precisionOverrides,
                 "Layers by name that differ: PATTERN[,PATTERN]=f32, or =bf16 (f16); may repeat")
      ->group("target")
      ->expected(1)
      ->take_all();
  app.add_option("--loss-scale", o.lossScale,
                 "none, a number, or dynamic[,init=65536][,growth=2][,backoff=0.5][,interval=2000]")
      ->group("optimizer");
  app.add_option("--clip-norm", o.clipNorm, "Largest global norm of the gradients")
      ->check(nonNegative())
      ->group("optimizer");
  app.add_option("--clip-value", o.clipValue, "Largest size of a gradient's element")
      ->check(nonNegative())
      ->group("optimizer");
  app.add_option("--entries", o.entries, "Programs in the artifact: train, eval, gradient")
      ->delimiter(',')
      ->check(choice({"train", "eval", "gradient"}))
      ->group("target");
  app.add_flag("--fuse,!--no-fuse", o.fuse, "Fuse elementwise and reduction ops into kernels")->group("target");
  app.add_option("--conv-layout", o.convLayout,
                 "How a GPU stores what convolutions read and write: auto (channels last where that is estimated to be "
                 "faster), nchw, nhwc")
      ->check(choice({"auto", "nchw", "nhwc"}))
      ->group("target");
  app.add_option("--threads-max", o.threadsMax, "Threads for which scratch memory is planned")
      ->check(CLI::Range(1, 1024))
      ->group("target");
}

void addMemoryFlags(CLI::App &app, Options &o) {
  app.add_option("--device-budget", o.deviceBudget,
                 "Bytes that the step may take, all told: 8MiB, 1.5GiB, 800MB, or 50% of what it takes without")
      ->group("memory");
  app.add_option("--remat-strategy", o.rematStrategy,
                 "How recomputations are chosen: fit; the others are published methods, to compare")
      ->check(choice({"fit", "none", "sqrt", "greedy-xla", "min-cut", "lp-rounding"}))
      ->group("memory");
  app.add_flag(
         "--bound", [&o](int64_t) { o.bound = true, o.verbosity = std::max(o.verbosity, 1); },
         "Say how much any plan in this order recomputes at least, by linear programming (HiGHS; minutes)")
      ->group("memory");
}

void addOutputFlags(CLI::App &app, Options &o, std::string &levels) {
  app.add_option("-o,--output", o.output, "Output file; - is standard output")->group("stages");
  app.add_option("--emit", o.emit, "Last stage")
      ->check(choice({"onnx", "nn", "train", "fitted", "plan", "kernels", "ptx", "artifact", "onnx-model"}))
      ->group("stages");
  app.add_option("--from", o.from, "First stage: the input is that stage's text")
      ->check(choice({"onnx", "nn", "train", "fitted"}))
      ->group("stages");
  app.add_option("--onnx-stage", o.onnxStage, "--emit=onnx-model: the stage that is written as a model")
      ->check(choice({"nn", "train", "fitted"}))
      ->group("stages");
  app.add_option("--onnx-form", o.onnxForm,
                 "--emit=onnx-model: step, one graph whose inputs and outputs are all that is kept; training-info, an "
                 "inference graph with a TrainingInfoProto")
      ->check(choice({"step", "training-info"}))
      ->group("stages");
  app.add_option("--onnx-bf16", o.onnxBf16, "--emit=onnx-model: bf16 as f32 between casts, or as it is")
      ->check(choice({"cast-pairs", "native"}))
      ->group("stages");
  app.add_option("--onnx-optimizers", o.onnxOptimizers,
                 "--emit=onnx-model: updates written out, or with --convention=onnx as ai.onnx.preview.training")
      ->check(choice({"standard", "preview"}))
      ->group("stages");
  app.add_option(
         "--onnx-rounds", o.onnxRounds,
         "--emit=onnx-model: micro-batches and pieces of a loss head written out one after the other, as a Loop, "
         "or as a Loop where there are more than 8")
      ->check(choice({"auto", "unrolled", "loop"}))
      ->group("stages");
  app.add_flag("--onnx-weights,!--no-onnx-weights", o.onnxWeights, "--emit=onnx-model: weights as default inputs")
      ->group("stages");
  app.add_flag("--weights,!--no-weights", o.weights,
               "Weights in the artifact; without them a run starts from --init=random:SEED or from a checkpoint")
      ->group("stages");
  app.add_option("--config", o.config, "JSON file with the same keys as flags")->group("other");
  app.add_flag("--print-config", o.printConfig, "Prints the merged configuration with its origins, and exits")
      ->group("other");
  app.add_flag("--print-schema", o.printSchema, "Prints the JSON schema of the configuration file, and exits")
      ->group("other");
  app.add_flag("-v,--verbose", [&o](int64_t) { o.verbosity = 1; }, "More remarks")->group("other");
  app.add_flag("-q,--quiet", [&o](int64_t) { o.verbosity = -1; }, "Errors only")->group("other");
  app.add_option("--log", levels,
                 "Log lines `time level area message` (plan=debug,fitted=info; or one level for all areas): off, info, "
                 "debug; areas: import, nn, train, fitted, plan, artifact, and lowtide-run's")
      ->group("other");
}

/// "unknown flag '--modle'; did you mean '--mode'?", "unknown command 'compil'; …".
std::string describeExtras(const CLI::App &app) {
  std::string word = app.remaining(/*recurse=*/true).front(), nearest;
  word = word.substr(0, word.find('='));
  size_t best = 4;
  auto consider = [&](const std::string &name) {
    if (size_t distance = config::editDistance(word, name); distance < best)
      best = distance, nearest = name;
  };
  const bool flag = word.rfind("-", 0) == 0;
  for (const CLI::App *sub : app.get_subcommands({})) {
    if (!flag)
      consider(sub->get_name());
    else if (sub->parsed())
      for (const CLI::Option *option : sub->get_options())
        for (const std::string &name : option->get_lnames())
          consider("--" + name);
  }
  return (flag                            ? "unknown flag '"
          : app.get_subcommands().empty() ? "unknown command '"
                                          : "too many arguments: '") +
         word + "'" + (nearest.empty() ? "" : "; did you mean '" + nearest + "'?");
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
  app.set_version_flag("--version", std::string("lowtide ") + versionText);

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
  CLI::App *verify = command("verify", "Proves an artifact's plan again", Command::Verify);
  command("doctor", "Describes this machine, for a bug report", Command::Doctor);
  CLI::App *fit =
      command("fit", "Says what the step costs at which budget; needs no weights and no device", Command::Fit);
  for (CLI::App *sub : {compile, check, fit}) {
    sub->add_option("model", options.input, "ONNX file (or a stage's text with --from); or in the configuration file");
    addModelFlags(*sub, options);
    addTrainingFlags(*sub, options);
    addTargetFlags(*sub, options);
    addMemoryFlags(*sub, options);
    addOutputFlags(*sub, options, logLevels);
  }
  fit->add_flag("--json", options.json, "The same figures as JSON on standard output");
  fit->add_option("--rows", options.fitRows, "Lines of the table")->check(CLI::Range(2, 1000));
  fit->add_flag("--baselines", options.baselines, "Also what the other strategies cost at the same peak");
  fit->add_option("--bound-rows", options.boundRows, "Lines with a bound: each takes up to four minutes; 0: none")
      ->check(CLI::Range(0, 1000));
  fit->add_option(
         "--rounding-rows", options.roundingRows,
         "Lines for which lp-rounding solves two linear programs, each of up to a minute; lines above them take "
         "the cheapest of its plans that fits; 0: none")
      ->check(CLI::Range(0, 1000));
  check->add_flag("--json", options.json, "The same facts as JSON on standard output");
  for (CLI::App *sub : {report, explain, verify})
    sub->add_option("artifact", options.input, ".tide file")->required();
  report->add_option("-o,--output", options.output, "Output file; - is standard output (the artifact's name, .html)");
  report
      ->add_option("--format", options.format,
                   "html, svg, json, chrome-trace (for Perfetto) or torch-snapshot (for PyTorch's memory viewer); by "
                   "the output's extension, else html")
      ->check(choice({std::begin(lowtide::report::reportFormats), std::end(lowtide::report::reportFormats)}));
  report->add_option("--run", options.run,
                     "What lowtide-run --log-jsonl wrote: losses and times, drawn beside the plan");
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
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &) {
    // The commands with many flags show the short help, grouped and with examples.
    bool many = compile->parsed() || check->parsed();
    std::cout << (app.get_subcommands().empty() || many ? std::string(shortHelp)
                                                        : app.get_subcommands()[0]->help("lowtide"));
    return exitOk;
  } catch (const CLI::CallForAllHelp &) {
    std::cout << (app.get_subcommands().empty() ? app.help("", CLI::AppFormatMode::All)
                                                : app.get_subcommands()[0]->help("lowtide"));
    return exitOk;
  } catch (const CLI::CallForVersion &e) {
    std::cout << e.what() << "\n";
    return exitOk;
  } catch (const CLI::ExtrasError &) {
    return fail(describeExtras(app));
  } catch (const CLI::ParseError &e) {
    return fail(e.what());
  }
  if (help || app.get_subcommands().empty()) {
    (help ? std::cout : std::cerr) << shortHelp;
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
  if (options.input.empty() && (compile->parsed() || check->parsed() || fit->parsed()))
    return fail("which model? for example: lowtide " + app.get_subcommands()[0]->get_name() + " model.onnx");
  if (options.printConfig) {
    config.print(std::cout);
    return exitOk;
  }
  if (!checkTogether(options, config))
    return exitUsage;
  noteModelFlags(options, config);
  return std::nullopt;
}
