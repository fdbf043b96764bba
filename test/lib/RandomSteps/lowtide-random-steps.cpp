//===- lowtide-random-steps.cpp - random graphs, any budget -----*- C++ -*-===//
//
// Trains random graphs without a budget and under several, each in a process of its own, and demands equal bits. A
// graph that fails is shrunk and written into --keep as a file that --replay runs again:
//
//   lowtide-random-steps --first=0 --count=500 --keep=findings
//   lowtide-random-steps --replay=findings/seed-42.mlir
//   lowtide-random-steps --print=42                       the text of a seed's graph
//
// The last line on standard output holds the figures as JSON.
//
//===----------------------------------------------------------------------===//

#include "RandomGraph.h"
#include "Shrink.h"
#include "StepTrial.h"
#include "lowtide/InitAll.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

using namespace lowtide;
using namespace lowtide::test;
namespace cl = llvm::cl;

static cl::opt<uint64_t> first("first", cl::desc("first seed"), cl::init(0));
static cl::opt<unsigned> count("count", cl::desc("graphs"), cl::init(100));
static cl::opt<unsigned> budgets("budgets", cl::desc("budgets per graph"), cl::init(4));
static cl::opt<unsigned> steps("steps", cl::desc("steps per run"), cl::init(3));
static cl::opt<unsigned> referenceEvery("reference-every",
                                        cl::desc("compare every n-th graph with f64 on the reference target; 0: none"),
                                        cl::init(8));
static cl::opt<unsigned> optimizeEvery("optimize-every",
                                       cl::desc("run every n-th graph by optimized kernels, as users do; 0: none"),
                                       cl::init(16));
static cl::opt<unsigned>
    together("together", cl::desc("graphs whose kernels are compiled at once, by the same process"), cl::init(16));
static cl::opt<unsigned> seconds("seconds-each", cl::desc("a graph that takes longer hangs"), cl::init(120));
static cl::opt<std::string> keep("keep", cl::desc("folder for graphs that fail"), cl::init("."));
static cl::opt<std::string> replay("replay", cl::desc("try the graph in this file, in this process"));
static cl::opt<int64_t> printSeed("print", cl::desc("print the graph of this seed"), cl::init(-1));
static cl::opt<std::string> pretend("pretend", cl::desc("try nothing; graphs whose text holds this fail"));
static cl::opt<bool> noShrink("no-shrink", cl::desc("write failing graphs as they are"));
static cl::opt<bool> verbose("v", cl::desc("a line for each graph"));

static std::string scratch;

/// How a seed's graph is tried.
static TrialOptions trialOptions(uint64_t seed) {
  TrialOptions options;
  options.optimize = optimizeEvery && seed % optimizeEvery == 0;
  options.budgets = budgets;
  options.steps = steps;
  options.compareReference = referenceEvery && seed % referenceEvery == 0;
  options.scratch = scratch;
  return options;
}

/// The outcome's fields as lines, for the pipe between child and parent.
static std::string pack(const TrialOutcome &o) {
  return llvm::formatv("{0} {1} {2} {3} {4} {5} {6} {7}\n{8}{9}\n", o.plans, o.recomputed, o.refused, o.parts,
                       o.references, o.infinite, o.kind.size(), o.text.size(), o.kind, o.text)
      .str();
}

/// Takes an outcome from the beginning of `text`; whether there is one.
static bool unpack(llvm::StringRef &text, TrialOutcome &o) {
  int length = 0;
  size_t kind = 0, words = 0;
  if (std::sscanf(text.str().c_str(), "%u %u %u %u %u %u %zu %zu%n", &o.plans, &o.recomputed, &o.refused, &o.parts,
                  &o.references, &o.infinite, &kind, &words, &length) != 8 ||
      text.size() < length + kind + words + 2)
    return false;
  text = text.drop_front(length + 1);
  o.kind = text.take_front(kind).str();
  o.text = text.substr(kind, words).str();
  text = text.drop_front(kind + words + 1);
  return true;
}

/// What a child process makes of graphs; fewer outcomes than graphs where it ended early, and why, in words.
static std::vector<TrialOutcome> tryInChild(const std::vector<std::string> &texts, const TrialOptions &options,
                                            TrialOutcome &end) {
  int ends[2];
  if (pipe(ends))
    llvm::report_fatal_error("no pipe");
  llvm::outs().flush();
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    alarm(seconds * static_cast<unsigned>(texts.size())); // together they may take as long as one after the other
    std::string packed;
    for (const TrialOutcome &outcome : tryGraphs(texts, options))
      packed += pack(outcome);
    for (size_t written = 0; written < packed.size();) {
      ssize_t bytes = write(ends[1], packed.data() + written, packed.size() - written);
      if (bytes <= 0)
        break;
      written += static_cast<size_t>(bytes);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string packed;
  char buffer[4096];
  for (ssize_t bytes; (bytes = read(ends[0], buffer, sizeof buffer)) > 0;)
    packed.append(buffer, static_cast<size_t>(bytes));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status)) {
    end.kind = WTERMSIG(status) == SIGALRM ? "hang" : "crash";
    end.text = strsignal(WTERMSIG(status));
  } else {
    end.kind = "crash";
    end.text = "exit " + std::to_string(WEXITSTATUS(status));
  }
  std::vector<TrialOutcome> outcomes;
  llvm::StringRef rest = packed;
  for (TrialOutcome outcome; unpack(rest, outcome);)
    outcomes.push_back(outcome);
  return outcomes;
}

/// Tries graphs in a child process: a crash or a hang is an outcome like any other, of the graph that shows it alone.
static std::vector<TrialOutcome> tryApart(const std::vector<std::string> &texts, const TrialOptions &options) {
  std::vector<TrialOutcome> outcomes(texts.size());
  if (!pretend.empty()) {
    for (auto [outcome, text] : llvm::zip_equal(outcomes, texts))
      outcome.kind = llvm::StringRef(text).contains(pretend) ? "pretended" : "";
    return outcomes;
  }
  TrialOutcome end; // why the child ended, should it have ended early
  std::vector<TrialOutcome> found = tryInChild(texts, options, end);
  if (found.size() == texts.size() && (texts.size() == 1 || llvm::all_of(found, [](auto &o) { return o.isGood(); })))
    return found;
  if (texts.size() == 1)
    return {end};
  for (auto [outcome, text] : llvm::zip_equal(outcomes, texts))
    outcome = tryApart({text}, options).front();
  // Good alone and not together is not good.
  if (llvm::all_of(outcomes, [](auto &o) { return o.isGood(); }))
    for (size_t i = 0; i < texts.size(); ++i)
      if (i == found.size() || !found[i].isGood()) {
        outcomes[i] = i < found.size() ? found[i] : end;
        outcomes[i].text += " (not alone)";
        break;
      }
  return outcomes;
}

/// The first line without its numbers: two graphs that fail in the same way say the same there.
static std::string wordsOf(const TrialOutcome &outcome) {
  std::string words = outcome.kind + ": ";
  for (char letter : llvm::StringRef(outcome.text).split('\n').first)
    if (!llvm::isDigit(letter))
      words += letter;
  return words;
}

static void report(uint64_t seed, StepGraph graph, StepSettings settings, TrialOutcome outcome) {
  unsigned ops = graph.countOps();
  const std::string words = wordsOf(outcome);
  auto fails = [&](const StepGraph &smaller, const StepSettings &simpler) {
    TrialOutcome now = tryApart({smaller.text(simpler)}, trialOptions(seed)).front();
    if (wordsOf(now) != words)
      return false;
    outcome.text = now.text;
    return true;
  };
  if (!noShrink)
    shrinkGraph(graph, settings, fails);
  std::string path = keep + "/seed-" + std::to_string(seed) + ".mlir";
  std::error_code error = llvm::sys::fs::create_directories(keep);
  llvm::raw_fd_ostream file(path, error);
  file << "// " << outcome.kind << ": " << llvm::StringRef(outcome.text).split('\n').first << "\n"
       << "// lowtide-random-steps --replay=<this file>\n"
       << graph.text(settings);
  llvm::outs() << "FAIL seed " << seed << ": " << outcome.kind << ": " << outcome.text << "\n  " << ops
               << " ops, shrunk to " << graph.countOps() << ": " << path << "\n";
}

static int runReplay() {
  auto file = llvm::MemoryBuffer::getFile(replay);
  if (!file) {
    llvm::errs() << "error: cannot read '" << replay << "': " << file.getError().message() << "\n";
    return 2;
  }
  TrialOutcome outcome = tryGraph((*file)->getBuffer().str(), trialOptions(0));
  llvm::outs() << (outcome.isGood() ? "passed" : "FAIL " + outcome.kind + ": " + outcome.text) << "\n";
  return outcome.isGood() ? 0 : 1;
}

/// The graph of a seed.
struct Drawn {
  explicit Drawn(uint64_t seed) : seed(seed), graph(makeRandomGraph(seed, settings)) {}
  uint64_t seed;
  StepSettings settings;
  StepGraph graph;
};

static bool isPlain(const TrialOptions &options) { return !options.optimize && !options.compareReference; }

static int runSeeds() {
  TrialOutcome sum;
  unsigned failed = 0;
  auto start = std::chrono::steady_clock::now();
  for (uint64_t seed = first, end = first + count; seed < end;) {
    // Optimized code takes long to make, and the reference is made for one: such graphs go alone.
    const TrialOptions options = trialOptions(seed);
    std::vector<Drawn> drawn{Drawn(seed++)};
    while (seed < end && drawn.size() < together && isPlain(options) && isPlain(trialOptions(seed)))
      drawn.emplace_back(seed++);
    std::vector<std::string> texts;
    for (const Drawn &one : drawn)
      texts.push_back(one.graph.text(one.settings));
    for (auto [one, outcome] : llvm::zip_equal(drawn, tryApart(texts, options))) {
      sum.plans += outcome.plans, sum.recomputed += outcome.recomputed, sum.refused += outcome.refused;
      sum.parts += outcome.parts, sum.references += outcome.references, sum.infinite += outcome.infinite;
      if (verbose)
        llvm::outs() << "seed " << one.seed << ": " << one.graph.countOps() << " ops, " << outcome.plans << " plans, "
                     << (outcome.isGood() ? "ok" : outcome.kind) << "\n";
      if (!outcome.isGood()) {
        ++failed;
        report(one.seed, std::move(one.graph), one.settings, outcome);
      }
    }
  }
  std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  llvm::outs() << llvm::formatv(
      "{{\"graphs\": {0}, \"failed\": {1}, \"plans\": {2}, \"recomputed\": {3}, \"refused\": {4}, "
      "\"micro_batched\": {5}, \"references\": {6}, \"not_finite\": {7}, \"seconds\": {8:F1}}\n",
      unsigned(count), failed, sum.plans, sum.recomputed, sum.refused, sum.parts, sum.references, sum.infinite,
      taken.count());
  return failed ? 1 : 0;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "random training graphs: any budget, the same bits\n");
  registerAllPasses(); // the checks around passes look up what a pass says of itself
  if (printSeed >= 0) {
    StepSettings settings;
    llvm::outs() << makeRandomGraph(static_cast<uint64_t>(printSeed), settings).text(settings);
    return 0;
  }
  llvm::SmallString<128> folder;
  const char *memory = "/dev/shm"; // artifacts are written and read once
  if (llvm::sys::fs::is_directory(memory)
          ? llvm::sys::fs::createUniqueDirectory(std::string(memory) + "/lowtide-steps", folder)
          : llvm::sys::fs::createUniqueDirectory("lowtide-steps", folder)) {
    llvm::errs() << "error: no folder for artifacts\n";
    return 8;
  }
  scratch = folder.str().str();
  prepareTrials();
  int code = replay.empty() ? runSeeds() : runReplay();
  llvm::sys::fs::remove_directories(scratch);
  return code;
}
