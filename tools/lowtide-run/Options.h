//===- Options.h - the command line of lowtide-run -------------------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_OPTIONS_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_OPTIONS_H

#include "Log.h"

#include <cstdint>
#include <optional>
#include <string>

namespace lowtide::run {

/// What becomes of a step whose loss, or whose parameters, are not finite.
enum class OnNonFinite {
  Stop,     ///< the run ends there
  Skip,     ///< the step changes nothing
  Continue, ///< the run goes on with them; it saves nothing that is not finite
};

struct Options {
  std::string artifact;
  std::string entry = "train";
  std::string data, scale;
  std::string evalData, evalMetrics, keepBest, predict;
  int64_t evalEvery = 0, patience = 0;
  std::optional<int64_t> steps;
  std::optional<int64_t> seed;
  std::optional<uint64_t> shuffle;
  unsigned threads = 0;
  unsigned feeders = 1;
  uint64_t schedule = 0;
  std::string device, spill, spillIo = "auto";

  std::string expect, expectKey = "f32", expectTolerance = "band";
  std::string dumpGradients, dumpOutputs;
  std::string save, resume, init, exportModel, exportEma, model;
  int64_t checkpointEvery = 0;
  unsigned keep = 0;
  bool resumeStrict = false, overwrite = false, mergeLora = false, ema = false;
  OnNonFinite onNonFinite = OnNonFinite::Stop;

  std::string logJsonl, tensorboard, summary, profile;
  int64_t logEvery = 1;
  bool quiet = false, poison = false;
  config::Log log; ///< what --log and LOWTIDE_LOG ask for
};

/// Fills `options`; returns an exit code if the program is to end here (help was printed, or the usage was wrong).
std::optional<int> parseOptions(int argc, char **argv, Options &options);

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_OPTIONS_H
