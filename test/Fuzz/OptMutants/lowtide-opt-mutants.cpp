//===- lowtide-opt-mutants.cpp - changed IR against every pass --*- C++ -*-===//
//
//   lowtide-opt-mutants <file.mlir>… --passes=FILE [--count=N] [--seed=FIRST] [--write=FILE]
//
// Mutant number s is made from a module of one of the files (they are split at `// -----`) by the dice of seed s: its
// text or its operations are changed, and passes run over it in any order with any options (FILE: lines of a pass, the
// op that it runs on and its options, `name builtin.module option=type…`). Each is refused by the parser, by a verifier
// or by a pass, in words; or what comes out is what the verifiers accept. A child does the work, so that a signal, or
// ten seconds without an answer, is a finding with a seed and not the end. A process of its own makes the mutants
// (MutantMaker.h): changes by force may damage its memory, and passes get what a text can say, as lowtide-opt does.
// With --write, and one mutant, its module before the passes is kept.
//
//===----------------------------------------------------------------------===//

#include "../Watch.h"
#include "MutantMaker.h"
#include "lowtide/InitAll.h"
#include "lowtide/Support/TextPlaces.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <cinttypes>
#include <map>

using namespace mlir;
using namespace lowtide::fuzz;

namespace {

enum Outcome : unsigned {
  NotMade, ///< its maker ended: MLIR itself could not change or print it
  ByParser,
  ByVerifier,
  ByPass,
  Accepted,
  Defect,
  outcomes
};
enum Phase : unsigned { Reading, Verifying, Running, Checking, phases };
const char *phaseNames[phases] = {"in the parser", "in a verifier", "in a pass", "in a verifier after a pass"};

/// What parent and child share.
struct Board {
  static constexpr size_t maxKinds = 32;
  std::atomic<uint64_t> seed, done;
  std::atomic<uint32_t> kind, phase;
  std::atomic<uint64_t> counts[maxKinds][outcomes], runs[256], refusals[256];
  char story[1024]; ///< file, mutations, passes
};

struct PassLine {
  std::string name, anchor;
  std::vector<std::pair<std::string, std::string>> options; ///< name, type
};

struct Options {
  std::vector<std::string> files;
  std::string passes, write;
  uint64_t count = 5000, seed = 0;
};

class Trial {
public:
  explicit Trial(const Options &options, Board &board);
  /// What became of the mutant; a defect says what.
  Outcome run(const Mutant &mutant, std::string &said);
  const std::vector<PassLine> &getPasses() const { return passes; }

private:
  std::string choosePass(size_t number, Dice &dice);
  /// Half of the time what comes next for a module of that file: tests are called like their pass, stages as they are.
  size_t findFirst(StringRef file, Dice &dice) const;
  void note(StringRef text) {
    story += text;
    std::strncpy(board.story, story.c_str(), sizeof board.story - 1);
  }

  Board &board;
  std::vector<PassLine> passes;
  std::unique_ptr<MLIRContext> context;
  std::string story, firstError;
  uint64_t errors = 0;
};

Trial::Trial(const Options &options, Board &board) : board(board) {
  if (auto buffer = llvm::MemoryBuffer::getFile(options.passes))
    for (StringRef line : llvm::split((*buffer)->getBuffer(), '\n')) {
      SmallVector<StringRef> words;
      line.split(words, ' ', -1, /*KeepEmpty=*/false);
      if (words.size() < 2)
        continue;
      PassLine pass{words[0].str(), words[1].str(), {}};
      for (StringRef option : llvm::drop_begin(words, 2))
        pass.options.push_back({option.split('=').first.str(), option.split('=').second.str()});
      passes.push_back(std::move(pass));
    }
  context = createContext();
  context->getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && errors++ == 0)
      firstError = diagnostic.str();
    return success();
  });
}

std::string Trial::choosePass(size_t number, Dice &dice) {
  const PassLine &pass = passes[number];
  static constexpr const char *numbers[] = {
      "0", "1", "2", "3", "-1", "8", "100", "4096", "9223372036854775807", "-9223372036854775808"};
  static constexpr const char *words[] = {"cpu:x86-64-v3",
                                          "cpu",
                                          "reference",
                                          "cuda:sm_90",
                                          "cuda-emulated",
                                          "tpu",
                                          "dynamic",
                                          "none",
                                          "1024",
                                          "0",
                                          "-1",
                                          "nan",
                                          "50%",
                                          "100%",
                                          "1MiB",
                                          "100",
                                          "mixed-bf16",
                                          "mixed-f16",
                                          "bf16",
                                          "f64",
                                          "f32",
                                          "train",
                                          "eval",
                                          "as-is",
                                          "forward",
                                          "gradient",
                                          "adam",
                                          "sgd",
                                          "momentum",
                                          "adagrad",
                                          "adamw",
                                          "linear",
                                          "cosine",
                                          "onnx",
                                          "torch",
                                          "lazy",
                                          "exact",
                                          "off",
                                          "fuse",
                                          "fit",
                                          "sqrt",
                                          "min-cut",
                                          "lp-rounding",
                                          "greedy-xla",
                                          "1e-3",
                                          "1e400",
                                          "18446744073709551615"};
  std::string text;
  const bool isPlain = dice.oneIn(2);
  for (const auto &[name, type] : pass.options) {
    // A search may be long: it gets less work, not more.
    if (name == "effort") {
      text += (text.empty() ? "" : " ") + name + "=" + std::to_string(dice.below(10000));
      continue;
    }
    // Other words are refused at once, or the pass does nothing.
    static const std::map<StringRef, std::vector<StringRef>> needed = {
        {"lora", {"*:r=2", "*w*:r=1,alpha=4,rslora", "*:r=2,dropout=0.5", "*:r=0", "*:r"}},
        {"precision", {"mixed-bf16", "mixed-f16", "bf16", "f16", "f32"}},
        {"frozen-weights", {"auto", "nf4", "int8", "fp8", "f32", "bf16"}},
        {"ema", {"0.999", "0.5", "0"}}};
    if (auto found = needed.find(name); found != needed.end()) {
      text += (text.empty() ? "" : " ") + name + "=" + found->second[dice.below(found->second.size())].str();
      continue;
    }
    if (isPlain || !dice.oneIn(3))
      continue;
    const bool isSwitch = type == "bool" || type == "switch",
               isNumber = StringRef(type).contains("int") || type == "whole";
    std::string value = isSwitch   ? (dice.oneIn(2) ? "true" : "false")
                        : isNumber ? numbers[dice.below(std::size(numbers))]
                                   : words[dice.below(std::size(words))];
    text += (text.empty() ? "" : " ") + name + "=" + value;
  }
  text = text.empty() ? pass.name : pass.name + "{" + text + "}";
  return pass.anchor == "builtin.module" ? text : pass.anchor + "(" + text + ")";
}

size_t Trial::findFirst(StringRef file, Dice &dice) const {
  if (dice.oneIn(2))
    return dice.below(passes.size());
  static const std::pair<StringRef, StringRef> stages[] = {{"-onnx.", "onnx-legalize"},
                                                           {"-nn.", "nn-fuse-patterns"},
                                                           {"-train.", "train-chunk-loss-head"},
                                                           {"-fitted.", "plan-lower"},
                                                           {"-plan.", "verify-plan"}};
  size_t longest = 0, found = dice.below(passes.size());
  for (const auto &[i, pass] : llvm::enumerate(passes)) {
    const bool isNext =
        llvm::any_of(stages, [&](auto &stage) { return file.contains(stage.first) && stage.second == pass.name; });
    if (isNext || (file.starts_with(pass.name) && pass.name.size() > longest))
      found = i, longest = pass.name.size();
  }
  return found;
}

Outcome Trial::run(const Mutant &mutant, std::string &said) {
  // Its maker has drawn from the seed's own numbers.
  Dice dice(~mutant.seed);
  firstError.clear();
  story.clear();
  note(mutant.story);
  board.kind = mutant.kind;
  if (!mutant.isMade)
    return NotMade;
  board.phase = Reading;
  errors = 0;
  // As lowtide-opt does.
  if (lowtide::findHugeResultNumber(mutant.text))
    return ByParser;
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(mutant.text, ParserConfig(context.get(), /*verifyAfterParse=*/false));
  if (!module) {
    said = "the parser says nothing";
    return errors ? ByParser : Defect;
  }
  board.phase = Verifying;
  errors = 0;
  if (failed(verify(*module))) {
    said = "a verifier refuses and says nothing";
    return errors ? ByVerifier : Defect;
  }
  // In the order of a step's life, from anywhere; or in any.
  const bool inOrder = dice.oneIn(2);
  size_t next = findFirst(mutant.file, dice);
  for (uint64_t i = 0, count = 1 + dice.below(5); i < count; ++i) {
    if (inOrder && i)
      next += 1 + dice.below(3);
    else if (i)
      next = dice.below(passes.size());
    if (next >= passes.size())
      break;
    const std::string text = choosePass(next, dice);
    note(" | " + text);
    PassManager manager = PassManager::on<ModuleOp>(context.get(), OpPassManager::Nesting::Implicit);
    manager.enableVerifier(false);
    errors = 0;
    firstError.clear();
    board.phase = Running;
    std::string complaint;
    llvm::raw_string_ostream stream(complaint);
    if (failed(parsePassPipeline(text, manager, stream))) {
      said = "options are refused without a word";
      return complaint.empty() && !errors ? Defect : ByPass;
    }
    ++board.runs[next];
    if (failed(manager.run(*module))) {
      ++board.refusals[next];
      said = "a pass fails and says nothing";
      return errors ? ByPass : Defect;
    }
    board.phase = Checking;
    errors = 0;
    firstError.clear();
    if (failed(verify(*module))) {
      said = "a pass leaves what a verifier refuses: " + firstError;
      return Defect;
    }
  }
  return Accepted;
}

bool parse(int argc, char **argv, Options &options) {
  for (StringRef word : llvm::ArrayRef(argv, size_t(argc)).drop_front()) {
    if (word.consume_front("--count="))
      word.getAsInteger(10, options.count);
    else if (word.consume_front("--seed="))
      word.getAsInteger(10, options.seed);
    else if (word.consume_front("--write="))
      options.write = word.str();
    else if (word.consume_front("--passes="))
      options.passes = word.str();
    else if (word.starts_with("--"))
      return false;
    else
      options.files.push_back(word.str());
  }
  return !options.files.empty() && !options.passes.empty();
}

void say(const Board &board, const std::string &what) {
  std::string line = what;
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::printf("FINDING seed %" PRIu64 " (%s): %s\n", uint64_t(board.seed), board.story, line.substr(0, 400).c_str());
  std::fflush(stdout);
}

/// Does seeds [first, end) and ends the process.
[[noreturn]] void work(const Options &options, Board &board, uint64_t first, uint64_t end) {
  limitMemory(uint64_t(6) << 30);
  // What a crash prints is in the way of the findings.
  if (options.write.empty())
    (void)std::freopen("/dev/null", "w", stderr);
  MutantMaker maker(options.files, first, end);
  Trial trial(options, board);
  for (uint64_t seed = first; seed < end; ++seed) {
    board.seed = seed;
    std::string said;
    const Mutant mutant = maker.next();
    if (std::error_code error; !options.write.empty())
      llvm::raw_fd_ostream(options.write, error) << mutant.text;
    const Outcome outcome = trial.run(mutant, said);
    // What is said of a mutant has to hold for it alone.
    if (outcome == Defect && seed != first) {
      std::fflush(stdout);
      ::_exit(3);
    }
    ++board.counts[board.kind][outcome];
    ++board.done;
    if (outcome == Defect)
      say(board, said);
    if (!options.write.empty())
      std::printf("seed %" PRIu64 " (%s): outcome %u\n", seed, board.story, outcome);
  }
  std::fflush(stdout);
  ::_exit(0);
}

void printTable(const Board &board, const std::vector<PassLine> &passes) {
  std::printf("%-26s %10s %10s %10s %11s %10s %10s %10s\n", "first change", "mutants", "not made", "by parser",
              "by verifier", "by pass", "accepted", "defects");
  uint64_t sums[outcomes] = {};
  auto row = [](const char *name, const auto &counts) {
    uint64_t all = 0;
    for (const auto &count : counts)
      all += count;
    std::printf("%-26s %10" PRIu64, name, all);
    for (const auto &count : counts)
      std::printf(" %10" PRIu64, uint64_t(count));
    std::printf("\n");
  };
  for (size_t kind = 0; kind < irMutations().size() + 2; ++kind) {
    row(kind < irMutations().size()    ? irMutations()[kind].name
        : kind == irMutations().size() ? "text"
                                       : "none",
        board.counts[kind]);
    for (unsigned i = 0; i < outcomes; ++i)
      sums[i] += board.counts[kind][i];
  }
  row("all", sums);
  for (size_t i = 0; i < passes.size(); ++i)
    std::printf("%-26s %10" PRIu64 " runs %10" PRIu64 " refused\n", passes[i].name.c_str(), uint64_t(board.runs[i]),
                uint64_t(board.refusals[i]));
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    llvm::errs() << "usage: lowtide-opt-mutants <file.mlir>… --passes=FILE [--count=N] [--seed=FIRST] [--write=FILE]\n";
    return 1;
  }
  lowtide::registerAllPasses();
  if (!options.write.empty())
    llvm::sys::PrintStackTraceOnErrorSignal(argv[0]);
  Board &board = shareBoard<Board>();
  uint64_t defects = 0;
  // What a context has made stays in it: each child does some thousands, and one that dies has its last mutant tried
  // again by a child that has done nothing else.
  constexpr uint64_t most = 2000;
  auto runChild = [&](uint64_t first, uint64_t end) -> std::string {
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0)
      work(options, board, first, end);
    return child < 0 ? "no child" : awaitChild(child, board.done);
  };
  for (uint64_t next = options.seed, end = options.seed + options.count; next < end;) {
    const uint64_t until = std::min(end, next + most);
    std::string cause = runChild(next, until);
    if (cause.empty()) {
      next = until;
      continue;
    }
    const uint64_t died = board.seed;
    if (died != next)
      cause = runChild(died, died + 1);
    next = died + 1;
    if (cause.empty())
      continue;
    ++board.counts[board.kind][Defect];
    say(board, cause + " " + phaseNames[board.phase]);
  }
  printTable(board, Trial(options, board).getPasses());
  for (size_t kind = 0; kind < Board::maxKinds; ++kind)
    defects += board.counts[kind][Defect];
  return defects ? 1 : 0;
}
