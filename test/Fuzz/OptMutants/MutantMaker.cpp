//===- MutantMaker.cpp - texts of changed modules ---------------*- C++ -*-===//

#include "MutantMaker.h"

#include "lowtide/InitAll.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <map>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;

namespace lowtide::fuzz {

std::unique_ptr<MLIRContext> createContext() {
  DialectRegistry registry;
  lowtide::registerAllDialects(registry);
  auto context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

namespace {

/// What the process does.
class Changes {
public:
  explicit Changes(const std::vector<std::string> &files);
  Mutant make(uint64_t seed);

private:
  ModuleOp base(size_t number);

  std::vector<std::pair<std::string, std::string>> texts; ///< file, text
  std::unique_ptr<MLIRContext> context = createContext();
  std::map<size_t, OwningOpRef<ModuleOp>> bases;
};

Changes::Changes(const std::vector<std::string> &files) {
  for (const std::string &path : files) {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    if (!buffer)
      continue;
    SmallVector<StringRef> parts;
    (*buffer)->getBuffer().split(parts, "// -----");
    for (StringRef part : parts)
      texts.push_back({StringRef(path).rsplit('/').second.str(), part.str()});
  }
  context->getDiagEngine().registerHandler([](Diagnostic &) { return success(); });
}

ModuleOp Changes::base(size_t number) {
  OwningOpRef<ModuleOp> &module = bases[number];
  if (!module)
    module = parseSourceString<ModuleOp>(texts[number].second, ParserConfig(context.get()));
  return module.get();
}

Mutant Changes::make(uint64_t seed) {
  Dice dice(seed);
  const size_t number = dice.below(texts.size());
  Mutant mutant{seed, uint32_t(irMutations().size()), true, texts[number].first, texts[number].first, {}};
  if (dice.oneIn(10)) {
    mutant.text = texts[number].second;
    for (uint64_t i = 0, times = 1 + dice.below(3); i < times; ++i)
      mutant.text = changeText(std::move(mutant.text), dice);
    mutant.story += ", other text";
    return mutant;
  }
  mutant.kind = uint32_t(irMutations().size() + 1);
  ModuleOp original = base(number);
  if (!original) {
    mutant.text = texts[number].second;
    return mutant;
  }
  // What was made by force cannot always be taken apart: it is left to the end of the process.
  ModuleOp module = original.clone();
  const uint64_t times = dice.below(4);
  for (uint64_t done = 0, tries = 0; done < times && tries < 40; ++tries) {
    const size_t chosen = dice.below(irMutations().size());
    if (!irMutations()[chosen].apply(module, dice))
      continue;
    if (!done++)
      mutant.kind = uint32_t(chosen);
    mutant.story += std::string(", ") + irMutations()[chosen].name;
  }
  llvm::raw_string_ostream(mutant.text) << OpWithFlags(module, OpPrintingFlags().printGenericOpForm());
  return mutant;
}

//--- The wire: numbers as they lie in memory, texts after their length

bool put(int pipe, const void *bytes, size_t size) {
  for (auto *at = static_cast<const char *>(bytes); size;) {
    const ssize_t done = ::write(pipe, at, size);
    if (done <= 0)
      return false;
    at += done, size -= size_t(done);
  }
  return true;
}

bool get(int pipe, void *bytes, size_t size) {
  for (auto *at = static_cast<char *>(bytes); size;) {
    const ssize_t done = ::read(pipe, at, size);
    if (done <= 0)
      return false;
    at += done, size -= size_t(done);
  }
  return true;
}

bool put(int pipe, const std::string &text) {
  const uint64_t size = text.size();
  return put(pipe, &size, sizeof size) && put(pipe, text.data(), size);
}

bool get(int pipe, std::string &text) {
  uint64_t size = 0;
  // A damaged process may say anything; no module is as large.
  if (!get(pipe, &size, sizeof size) || size > uint64_t(1) << 28)
    return false;
  text.resize(size);
  return get(pipe, text.data(), size);
}

} // namespace

MutantMaker::MutantMaker(const std::vector<std::string> &files, uint64_t first, uint64_t end)
    : files(files), seed(first), end(end) {
  start();
}

void MutantMaker::start() {
  int ends[2];
  if (::pipe(ends))
    std::abort();
  child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Changes changes(files);
    for (; seed < end; ++seed) {
      ::alarm(60);
      const Mutant mutant = changes.make(seed);
      ::alarm(0); // who reads may take long
      if (!put(ends[1], &mutant.seed, sizeof mutant.seed) || !put(ends[1], &mutant.kind, sizeof mutant.kind) ||
          !put(ends[1], mutant.file) || !put(ends[1], mutant.story) || !put(ends[1], mutant.text))
        break;
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  pipe = ends[0];
}

void MutantMaker::stop() {
  if (child <= 0)
    return;
  ::close(pipe);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  child = -1;
}

bool MutantMaker::read(Mutant &mutant) {
  mutant = {};
  mutant.isMade = get(pipe, &mutant.seed, sizeof mutant.seed) && get(pipe, &mutant.kind, sizeof mutant.kind) &&
                  get(pipe, mutant.file) && get(pipe, mutant.story) && get(pipe, mutant.text) && mutant.seed == seed &&
                  mutant.kind < irMutations().size() + 2;
  return mutant.isMade;
}

Mutant MutantMaker::next() {
  Mutant mutant;
  for (bool isFresh = false; !read(mutant) && !isFresh; isFresh = true) {
    stop();
    start();
  }
  if (!mutant.isMade) {
    mutant = {seed, uint32_t(irMutations().size() + 1), false, {}, "a change that ends its process", {}};
    stop();
    ++seed;
    start();
    return mutant;
  }
  ++seed;
  return mutant;
}

} // namespace lowtide::fuzz
