//===- Options.h - what the user asked the compiler for ---------*- C++ -*-===//
//
// The driver's options as plain data, merged from command line, environment, configuration file and defaults.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "ExitCodes.h"
#include "Log.h"
#include "lowtide/Compiler/Request.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lowtide::driver {

/// The program, and the format of the plans that it writes: "0.1.0, plan format 3".
std::string describeVersion();

enum class Command { Compile, Check, Fit, Report, Explain, Diff, Verify, Doctor };

/// Everything that `lowtide` can be told: what to make of which model, where it goes, and how it is printed.
struct Options : FitRequest {
  Command command = Command::Compile;
  std::string input;
  std::string output;
  std::string config;

  int64_t lastBatch = 0;                   // samples after the last whole batch; 0: no entry for them
  std::vector<std::string> params, frozen; // as `selections` has them in order
  std::string card;                        // of `lowtide fit`: a GPU's name, instead of a budget
  // `lowtide fit` is given a budget, and not by a file, which serves `lowtide compile`, too
  bool asksWhetherFits = false;

  std::string weightsFrom; // with --from: the model whose weights the artifact holds
  std::string figures;     // where the numbers of a compile go, as JSON; empty: nowhere
  bool dumpPassPipeline = false;
  bool printConfig = false, printSchema = false;
  bool json = false;
  bool strict = false; // of `lowtide check`: a guess is an error
  std::string format;  // of a report; empty: by the output's extension
  std::string run;     // what a run recorded, for a report
  std::string tensor;  // explain: a tensor (#12), layer or bound name, as a glob; empty: all decisions
  std::string other;   // diff: the second file
  bool diffIr = false; // diff: the files are IR, not artifacts

  // verify, of a model
  std::string against;            // record.npz, module.py:make, onnxruntime; empty: an artifact's plan is proved
  std::string python = "python3"; // runs module.py
  std::string record;             // where the record of module.py is kept; empty: nowhere
  int64_t proofSteps = 10;        // of that record
  double tolerance = 1e-5;        // of an entry, in units of the largest entry of its array
  std::string data;               // a batch for ONNX Runtime

  int verbosity = 0; // -1 quiet, 1 verbose
  config::Log log;   // what --log and LOWTIDE_LOG ask for
};

/// Parses; prints help, configuration or usage errors itself and then returns the exit code to leave with.
std::optional<int> parseOptions(int argc, char **argv, Options &options);

} // namespace lowtide::driver
