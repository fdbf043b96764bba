//===- lowtide-plan-mutants.cpp - changed plans against proof and runtime --===//
//
//   lowtide-plan-mutants <artifact>… [--count=N] [--seed=FIRST] [--write=FILE]
//
// Mutant number s is made from one of the artifacts by the dice of seed s. Each is refused in words, or executed on
// guarded memory, where every byte lies in its slice and holds the value that is asked for. A child does the work, so
// that a signal, or ten seconds without an answer, is a finding with a seed and not the end. With --write, and one
// mutant, its artifact is kept. With --count=0 the artifacts themselves are executed like that, and nothing else.
//
//===----------------------------------------------------------------------===//

#include "../Watch.h"
#include "Trial.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

using namespace lowtide::fuzz;

namespace {

struct Options {
  std::vector<std::string> artifacts;
  uint64_t count = 20000, seed = 0;
  std::string write;
};

const char *phaseNames[phases] = {
    "while it is changed", "at load", "at bind", "on guarded memory", "on guarded memory, the other way round",
    "in the runtime"};

bool parse(int argc, char **argv, Options &options) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    auto value = [&](const char *flag) {
      return word.rfind(flag, 0) == 0 ? word.c_str() + std::strlen(flag) : nullptr;
    };
    if (const char *text = value("--count="))
      options.count = std::strtoull(text, nullptr, 10);
    else if (const char *text = value("--seed="))
      options.seed = std::strtoull(text, nullptr, 10);
    else if (const char *text = value("--write="))
      options.write = text;
    else if (word.rfind("--", 0) == 0)
      return false;
    else
      options.artifacts.push_back(word);
  }
  return !options.artifacts.empty();
}

void say(uint64_t seed, const Trial &trial, const Board &board, const std::string &what) {
  std::printf("FINDING seed %" PRIu64 " (%s, %s): %s\n", seed, trial.baseOf(seed).name().c_str(), board.story,
              what.c_str());
  std::fflush(stdout);
}

/// Does seeds [first, end) and ends the process.
[[noreturn]] void work(Trial &trial, Board &board, uint64_t first, uint64_t end, const std::string &write) {
  // A plan may ask for as much memory as it likes.
  limitMemory(uint64_t(3) << 30);
  for (uint64_t seed = first; seed < end; ++seed) {
    board.seed = seed;
    TrialResult result = trial.run(seed, board);
    ++board.counts[result.kind][result.outcome];
    ++board.done;
    if (result.outcome == Defect)
      say(seed, trial, board, result.said);
    if (!write.empty()) {
      std::printf("seed %" PRIu64 ": %s: outcome %u %s\n", seed, board.story, result.outcome, result.said.c_str());
      if (FILE *file = std::fopen(write.c_str(), "wb")) {
        std::fwrite(trial.file().data(), 1, trial.file().size(), file);
        std::fclose(file);
      }
    }
  }
  std::fflush(stdout);
  ::_exit(0);
}

void printTable(const Board &board) {
  std::printf("%-26s %10s %10s %10s %10s %10s %8s %8s\n", "first change", "mutants", "refused", "at bind", "equal",
              "other", "not run", "defects");
  uint64_t sums[outcomes] = {};
  auto row = [](const char *name, const auto &counts) {
    uint64_t all = 0;
    for (const auto &count : counts)
      all += count;
    std::printf("%-26s %10" PRIu64, name, all);
    for (unsigned i = 0; i < outcomes; ++i)
      std::printf(i < NotRun ? " %10" PRIu64 : " %8" PRIu64, uint64_t(counts[i]));
    std::printf("\n");
  };
  for (size_t kind = 0; kind < mutations().size(); ++kind) {
    row(mutations()[kind].name, board.counts[kind]);
    for (unsigned i = 0; i < outcomes; ++i)
      sums[i] += board.counts[kind][i];
  }
  row("all", sums);
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr, "usage: lowtide-plan-mutants <artifact>… [--count=N] [--seed=FIRST] [--write=FILE]\n");
    return 1;
  }
  std::vector<std::unique_ptr<Base>> bases;
  for (const std::string &path : options.artifacts) {
    auto base = Base::open(path);
    if (!base) {
      std::fprintf(stderr, "error: %s\n", base.status().str().c_str());
      return 1;
    }
    bases.push_back(std::move(*base));
  }
  Trial trial(std::move(bases));
  if (lowtide::rt::Status status = trial.rehearse(); !status.isOk()) {
    std::fprintf(stderr, "error: %s\n", status.str().c_str());
    return 1;
  }
  Board &board = shareBoard<Board>();
  uint64_t defects = 0;
  for (uint64_t next = options.seed, end = options.seed + options.count; next < end;) {
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child < 0)
      return 1;
    if (child == 0)
      work(trial, board, next, end, options.write);
    const std::string cause = awaitChild(child, board.done);
    if (cause.empty())
      break;
    ++board.counts[board.kind][Defect];
    say(board.seed, trial, board, cause + " " + phaseNames[board.phase]);
    next = board.seed + 1;
  }
  printTable(board);
  for (size_t kind = 0; kind < mutations().size(); ++kind)
    defects += board.counts[kind][Defect];
  return defects ? 1 : 0;
}
