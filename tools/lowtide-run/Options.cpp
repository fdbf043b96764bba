//===- Options.cpp - the command line of lowtide-run -----------------------===//

#include "Options.h"

#include "Choices.h"
#include "CommandLine.h"
#include "Config.h"
#include "NumberChecks.h"
#include <CLI/CLI.hpp>
#include <cstdio>
#include <tuple>

namespace lowtide::run {
namespace {

const char *const shortHelp = R"(lowtide-run: execute a compiled training step

  lowtide-run step.tide --data=data.npz --steps=100
  lowtide-run step.tide --data=data.npz --steps=100 --expect=expected.json
  lowtide-run step.tide --data='tokens/*.bin' --steps=1000 --save=ckpt --checkpoint-every=100
  lowtide-run step.tide --data=data.npz --steps=1000 --resume=ckpt --save=ckpt
  lowtide-run step.tide --entry=eval --data=test.npz --resume=ckpt --eval-metrics=accuracy
  lowtide-run step.tide --data=synthetic --steps=20 --threads=1 --profile

Run
  --data=SPEC            .npz, .npy, idx, token shards, name=file, synthetic[:seed]; several with commas;
                         'pipe:COMMAND': batches that a program writes
  --steps=N              steps to train; default: once through the data
  --entry=NAME           train (default), eval, gradient
  --threads=N            default: all cores; the results do not depend on it
  --seed=N               of the step's random numbers (default 0)
  --shuffle=SEED         shuffle the samples of each epoch; default: in order
  --eval-data=SPEC --eval-every=N   evaluate on other data while training

Compare
  --expect=FILE          recorded losses; exit 9 if one leaves its tolerance
  --dump-gradients=FILE  gradients of the first batch, before training: .npz or .safetensors
  --dump-outputs=FILE    metrics and outputs of the last step: .npz or .safetensors

Keep
  --save=DIR             checkpoint at the end, and every --checkpoint-every=N steps; with --steps=0 of the start
  --resume=DIR           continue from the checkpoint that DIR/latest names, or the last sound one
  --init=FILE.safetensors|FOLDER|random:SEED  start from a PyTorch state_dict, PEFT's adapter, or random numbers
  --export=FILE --model=FILE   write trained weights back into the ONNX file

Watch
  --log-jsonl=FILE  --tensorboard=DIR  --summary=FILE
  --profile[=FILE]       time, bytes and rates of every instruction: as a table, or as JSON into FILE, there also when
                         and on which lane it ran in the last step (for lowtide report --run)

Exit: 0 ok, 1 usage, 2 bad input, 5 plan not proved, 6 device, 7 loss not finite, 8 file error, 9 losses leave the record,
128 + number of the signal (130: Ctrl-C) that stopped it after a step.
--help-all lists every flag.
)";

const char *const longHelp = R"(
All further flags
  --feeders=N              threads that prepare the next batch while a step runs (default 1; 0: batches are read between
                           steps); the batches do not depend on it
  --scale=ARRAY:FACTOR     multiply a batch array: x:1/255; several with commas
  --eval-metrics=LIST      accuracy, top5 (any number), perplexity, mse, mae; with arrays where several fit:
                           accuracy(logits, labels, ignore_index=0, shift=1)
  --keep-best=loss         name the checkpoint with the best evaluation in --save=DIR/best; or a metric, with :max or :min
  --patience=N             end the run after N evaluations without a better one
  --predict=FILE           write the outputs of every row of --data: .npz or .safetensors
  --ema                    evaluate (--entry=eval, --predict, --eval-data) and --export the averages of the weights that
                           lowtide compile --ema keeps, instead of the weights
  --export-ema=FILE.safetensors  write these averages at the end, as a PyTorch state_dict; --init reads it
  --merge-lora             with --export: adds the low-rank pairs (lowtide compile --lora) to the weights in the file
  --expect-key=KEY         recorded precision whose band holds: f32 (default), bf16, f16
  --expect-tolerance=RULE  band (default): the file's tolerance; f64: 1e-6 relative, or a tenth of the f32 tolerance
                           where that is larger
  --keep=N                 keep the N checkpoints of this run that were written last (default: all)
  --overwrite              replace the checkpoints of another run in --save=DIR, once this one has saved there
  --resume-strict          stop at a damaged checkpoint instead of taking the one before
  --on-nonfinite=stop|skip|continue  a step whose loss or parameters are not finite ends the run (default); is undone, for
                           which parameters and state are held twice; or is gone on from, saving nothing that is not finite
  --config=FILE            JSON, as the compiler's: sections run (steps, data, seed …), checkpoint (dir, every_steps, keep)
                           and log (jsonl, tensorboard, levels); flags and LOWTIDE_* variables win over it
  --log-every=N            progress line every N steps when not on a terminal
  --log=LEVELS             log lines `time level area message`, also by LOWTIDE_LOG: runtime=debug,checkpoint=info, or one
                           level (off, info, debug) for all areas (runtime, data, checkpoint, and the compiler's)
  --spill=FOLDER           where the file of an artifact with --disk-budget lies (the folder for temporary files)
  --spill-io=auto|io_uring|threads  what moves bytes there and back: io_uring, threads that read and write, or io_uring
                           where the system has it (default)
  --poison                 fill transient memory with NaN before each step (cuda-emulated: always)
  --device=cpu|cuda|cuda-emulated|N  refuse an artifact that was compiled for another device; N: on GPU number N
  --schedule=SEED          cuda-emulated: streams, blocks and warps take turns as this seed has it (default 0: in the
                           order of the program); no result depends on it
  -q, --quiet              no progress
)";

} // namespace

std::optional<int> parseOptions(int argc, char **argv, Options &options) {
  CLI::App app{"lowtide-run"};
  bool help = false, helpAll = false;
  app.set_help_flag();
  app.add_flag("-h,--help", help);
  app.add_flag("--help-all", helpAll);
  app.add_option("artifact", options.artifact);
  app.add_option("--entry", options.entry);
  app.add_option("--data", options.data);
  app.add_option("--scale", options.scale);
  app.add_option("--eval-data", options.evalData);
  app.add_option("--eval-every", options.evalEvery)->check(config::wholeNumber(1));
  app.add_option("--eval-metrics", options.evalMetrics);
  app.add_option("--keep-best", options.keepBest);
  app.add_option("--patience", options.patience)->check(config::wholeNumber(1));
  app.add_option("--predict", options.predict);
  app.add_option("--steps", options.steps)->check(config::wholeNumber(0));
  app.add_option("--seed", options.seed)->check(config::wholeNumber(INT64_MIN));
  app.add_option("--shuffle", options.shuffle)->check(config::wholeNumber(0));
  app.add_option("--threads", options.threads)->check(config::wholeNumber(0, 1024));
  app.add_option("--feeders", options.feeders)->check(config::wholeNumber(0, 64));
  app.add_option("--schedule", options.schedule)->check(config::wholeNumber(0));
  app.add_option("--device", options.device)->check([](const std::string &text) {
    const bool isKind = text == "cpu" || text == "cuda" || text == "cuda-emulated";
    const bool isNumber = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    return isKind || isNumber ? std::string()
                              : "must be cpu, cuda, cuda-emulated or the number of a GPU, not '" + text + "'";
  });
  app.add_option("--expect", options.expect);
  app.add_option("--expect-key", options.expectKey)->check(config::choice({"f32", "bf16", "f16"}));
  app.add_option("--expect-tolerance", options.expectTolerance)->check(config::choice({"band", "f64"}));
  app.add_option("--dump-gradients", options.dumpGradients);
  app.add_option("--dump-outputs", options.dumpOutputs);
  app.add_option("--save", options.save);
  app.add_option("--resume", options.resume);
  app.add_flag("--resume-strict", options.resumeStrict);
  app.add_flag("--overwrite", options.overwrite);
  std::string onNonFinite = "stop";
  app.add_option("--on-nonfinite", onNonFinite)->check(config::choice({"stop", "skip", "continue"}));
  app.add_option("--checkpoint-every", options.checkpointEvery)->check(config::wholeNumber(0));
  app.add_option("--keep", options.keep)->check(config::wholeNumber(0, UINT32_MAX));
  app.add_option("--init", options.init);
  app.add_option("--export", options.exportModel);
  app.add_option("--model", options.model);
  app.add_flag("--merge-lora", options.mergeLora);
  app.add_flag("--ema", options.ema);
  app.add_option("--export-ema", options.exportEma);
  app.add_option("--log-jsonl", options.logJsonl);
  app.add_option("--tensorboard", options.tensorboard);
  app.add_option("--summary", options.summary);
  app.add_flag("--profile{-}", options.profile);
  app.add_option("--log-every", options.logEvery)->check(config::wholeNumber(1));
  std::string logLevels;
  app.add_option("--log", logLevels);
  app.add_flag("--poison", options.poison);
  app.add_option("--spill", options.spill);
  app.add_option("--spill-io", options.spillIo)->check(config::choice({"auto", "io_uring", "threads"}));
  app.add_flag("-q,--quiet", options.quiet);
  app.add_flag("--deterministic"); // always so; configurations may say it
  std::string file;
  app.add_option("--config", file);
  auto usage = [](const std::string &message) {
    std::fprintf(stderr, "error: %s\nnote: lowtide-run -h shows how to call it\n", message.c_str());
    return 1;
  };
  try {
    config::parse(app, argc, argv);
  } catch (const CLI::ParseError &error) {
    usage(error.what());
    if (error.get_exit_code() == int(CLI::ExitCodes::ExtrasError))
      std::fputs("note: optimizer, precision, batch and memory are set by 'lowtide compile'\n", stderr);
    return 1;
  }
  if (help || helpAll) {
    std::fputs(shortHelp, stdout);
    if (helpAll)
      std::fputs(longHelp, stdout);
    return 0;
  }
  // Of the command line alone: a configuration says what all runs have in common.
  const bool isEvaluation = !options.predict.empty() || options.entry == "eval";
  std::vector<std::string> ofTraining = {"--save",      "--checkpoint-every", "--keep",        "--overwrite",
                                         "--shuffle",   "--eval-every",       "--patience",    "--keep-best",
                                         "--eval-data", "--dump-gradients",   "--on-nonfinite"};
  if (!options.predict.empty())
    ofTraining.push_back("--steps");
  if (isEvaluation)
    for (const std::string &flag : ofTraining)
      if (app.count(flag))
        return usage((options.predict.empty() ? "--entry=eval" : "--predict") + std::string(" trains nothing, and ") +
                     flag + " is of training: " +
                     (flag == "--eval-data" ? "what is evaluated here is --data=FILE"
                                            : "train with --save=DIR first, then give --resume=DIR here"));
  if (!options.predict.empty() && app.count("--entry") && options.entry != "eval")
    return usage("--predict computes what --entry=eval does, not --entry=" + options.entry + ": leave --entry out");
  config::Sections sections;
  sections.own = {"run", "checkpoint", "log"};
  sections.others = {"model", "loss", "optimizer", "schedule", "memory", "batch", "target"};
  sections.flags = {{"checkpoint.dir", "save"},
                    {"checkpoint.every-steps", "checkpoint-every"},
                    {"log.jsonl", "log-jsonl"},
                    {"log.levels", "log"}};
  sections.ignoresOtherKeys = true; // they are the compiler's, which has checked them
  config::Config config(app, sections);
  std::string error;
  if (!config.applyEnvironment(error) || (!file.empty() && !config.applyFile(file, error)))
    return usage(error);
  if (!options.log.configure(logLevels, error))
    return usage("--log (LOWTIDE_LOG): " + error);
  if (options.artifact.empty())
    return usage("no artifact given");
  if (options.checkpointEvery && options.save.empty())
    return usage("--checkpoint-every needs --save=DIR");
  for (auto [flag, needs, isThere] : {std::tuple("--keep", "--save=DIR", !options.save.empty()),
                                      std::tuple("--overwrite", "--save=DIR", !options.save.empty()),
                                      std::tuple("--resume-strict", "--resume=DIR", !options.resume.empty()),
                                      std::tuple("--expect-key", "--expect=FILE", !options.expect.empty()),
                                      std::tuple("--expect-tolerance", "--expect=FILE", !options.expect.empty())})
    if (app.count(flag) && !isThere)
      return usage(std::string(flag) + " needs " + needs);
  options.onNonFinite = onNonFinite == "skip"       ? OnNonFinite::Skip
                        : onNonFinite == "continue" ? OnNonFinite::Continue
                                                    : OnNonFinite::Stop;
  if (!options.predict.empty())
    options.entry = "eval";
  const bool trains = options.entry != "eval";
  if (trains && options.evalData.empty() &&
      (options.evalEvery || !options.evalMetrics.empty() || !options.keepBest.empty() || options.patience))
    return usage("--eval-every, --eval-metrics, --keep-best and --patience need --eval-data=FILE (--eval-metrics: or "
                 "--entry=eval)");
  if (!options.keepBest.empty() && (options.save.empty() || !trains))
    return usage("--keep-best needs --save=DIR and a run that trains");
  if (options.exportModel.empty() != options.model.empty())
    return usage("--export=FILE and --model=FILE (the ONNX file that was compiled) go together");
  if (options.ema && trains && options.evalData.empty() && options.exportModel.empty())
    return usage(
        "--ema goes with --entry=eval, --predict, --eval-data or --export: training computes with the weights");
  if (options.mergeLora && options.exportModel.empty())
    return usage("--merge-lora goes with --export=FILE, into whose weights it adds the trained pairs");
  return std::nullopt;
}

} // namespace lowtide::run
