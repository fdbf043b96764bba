//===- Diff.cpp - what changed between two plans or two texts ---*- C++ -*-===//
//
// `lowtide diff`: instructions, order, addresses and peaks of two artifacts; or lines of two IR files, whatever their
// values are called.
//
//===----------------------------------------------------------------------===//

#include "Diagnostics.h"
#include "Inspect.h"
#include "lowtide/Report/Report.h"
#include "lowtide/Solve/Algorithms/Difference.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace lowtide;
using namespace lowtide::report;
using llvm::StringRef;

/// Removed or added instructions that are listed.
static constexpr size_t maxListed = 20;
/// Lines around a change.
static constexpr size_t context = 2;

namespace {

/// Texts as numbers: equal ones have the same.
class Numbering {
public:
  uint32_t operator()(StringRef text) { return numbers.try_emplace(text, uint32_t(numbers.size())).first->second; }

private:
  llvm::StringMap<uint32_t> numbers;
};

} // namespace

/// "a → b", or "a" if they are the same.
static std::string change(const std::string &before, const std::string &after) {
  return before == after ? before + " (the same)" : before + " → " + after;
}

static std::string milliseconds(double seconds) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3f ms", seconds * 1e3);
  return text;
}

/// Instructions of `labels` that are not in pairs, with their count, in order of appearance.
static llvm::MapVector<StringRef, int> countRest(llvm::ArrayRef<Instruction> instructions,
                                                 const std::vector<char> &isCommon) {
  llvm::MapVector<StringRef, int> rest;
  for (auto [i, instruction] : llvm::enumerate(instructions))
    if (!isCommon[i])
      ++rest[instruction.label];
  return rest;
}

static void list(const llvm::MapVector<StringRef, int> &labels, const char *mark, llvm::raw_ostream &os) {
  for (auto [i, entry] : llvm::enumerate(labels)) {
    if (i == maxListed) {
      os << "    " << mark << " … " << labels.size() - maxListed << " more kinds\n";
      break;
    }
    os << "    " << mark << " " << entry.first << (entry.second > 1 ? " × " + std::to_string(entry.second) : "")
       << "\n";
  }
}

/// Prints how `after` differs from `before`; whether it does.
static bool diffEntries(const Entry &before, const Entry &after, llvm::raw_ostream &os) {
  Numbering number;
  auto labels = [&](const Entry &entry) {
    std::vector<uint32_t> numbers;
    for (const Instruction &instruction : entry.instructions)
      numbers.push_back(number(instruction.label));
    return numbers;
  };
  const std::vector<uint32_t> a = labels(before), b = labels(after);
  auto common = solve::findCommon(a, b);
  std::vector<char> inA(a.size()), inB(b.size());
  for (auto [i, j] : common)
    inA[i] = inB[j] = 1;
  auto removed = countRest(before.instructions, inA), added = countRest(after.instructions, inB);
  // What is in both lists has only moved.
  int moved = 0;
  for (auto &[label, count] : removed)
    if (auto found = added.find(label); found != added.end()) {
      int both = std::min(count, found->second);
      moved += both;
      count -= both;
      found->second -= both;
    }
  auto isGone = [](const auto &entry) { return entry.second == 0; };
  removed.remove_if(isGone);
  added.remove_if(isGone);
  auto sum = [](const auto &labels) {
    int all = 0;
    for (const auto &[label, count] : labels)
      all += count;
    return all;
  };
  const int numRemoved = sum(removed), numAdded = sum(added);

  // Tensors of instructions that both have, in the order of their makers' results.
  auto made = [](const Entry &entry) {
    std::vector<std::vector<const Tensor *>> tensors(entry.instructions.size());
    for (const Tensor &tensor : entry.tensors)
      if (tensor.begin < tensors.size())
        tensors[tensor.begin].push_back(&tensor);
    return tensors;
  };
  auto madeA = made(before), madeB = made(after);
  unsigned elsewhere = 0, shared = 0, otherwise = 0;
  for (auto [i, j] : common)
    for (size_t k = 0; k < std::min(madeA[i].size(), madeB[j].size()); ++k) {
      ++shared;
      elsewhere += madeA[i][k]->offset != madeB[j][k]->offset;
      otherwise += madeA[i][k]->component != madeB[j][k]->component;
    }

  auto again = [](const Entry &entry) {
    return std::to_string(llvm::count_if(entry.instructions, [](const Instruction &each) { return each.recomputed; }));
  };
  os << "@" << after.name << "\n  instructions    " << change(std::to_string(a.size()), std::to_string(b.size()))
     << ": " << numRemoved << " gone, " << numAdded << " new, " << moved << " moved\n  recomputed      "
     << change(again(before), again(after)) << "\n  transient peak  "
     << change(formatBytes(before.peakBytes), formatBytes(after.peakBytes)) << "\n  estimated time  "
     << change(milliseconds(before.getSeconds()), milliseconds(after.getSeconds())) << "\n  tensors         of "
     << shared << " that both make in the same place of the order " << elsewhere << " have another address, "
     << otherwise << " another role\n";
  list(removed, "-", os);
  list(added, "+", os);
  return numRemoved || numAdded || moved || elsewhere || otherwise || before.peakBytes != after.peakBytes;
}

static int diffArtifacts(const std::string &before, const std::string &after) {
  std::vector<Report> reports;
  for (const std::string &path : {before, after}) {
    auto artifact = rt::Artifact::open(path);
    if (!artifact)
      return driver::fail(artifact.status());
    reports.push_back(buildReport((*artifact)->plan(), (*artifact)->meta(), path));
  }
  llvm::raw_ostream &os = llvm::outs();
  const Report &a = reports[0], &b = reports[1];
  auto budget = [](const Report &report) {
    return report.deviceBudget ? formatBytes(report.deviceBudget) : std::string("none");
  };
  os << "target           " << change(a.target, b.target) << "\nbudget           " << change(budget(a), budget(b))
     << "\nparameters       " << change(formatBytes(a.statics.parameters), formatBytes(b.statics.parameters))
     << "\noptimizer state  " << change(formatBytes(a.statics.state), formatBytes(b.statics.state))
     << "\ninput, output    " << change(formatBytes(a.statics.batch), formatBytes(b.statics.batch))
     << "\nexchange blocks  " << change(formatBytes(a.statics.exchange), formatBytes(b.statics.exchange))
     << "\ntransient        " << change(formatBytes(a.transientBytes), formatBytes(b.transientBytes)) << "\n";
  bool differs = a.target != b.target || a.statics.sum() != b.statics.sum();
  auto find = [](const Report &report, StringRef name) -> const Entry * {
    for (const Entry &entry : report.entries)
      if (entry.name == name)
        return &entry;
    return nullptr;
  };
  for (const Entry &entry : a.entries) {
    if (const Entry *other = find(b, entry.name)) {
      differs |= diffEntries(entry, *other, os);
      continue;
    }
    os << "@" << entry.name << " is gone\n";
    differs = true;
  }
  for (const Entry &entry : b.entries)
    if (!find(a, entry.name)) {
      os << "@" << entry.name << " is new\n";
      differs = true;
    }
  os << (differs ? "the plans differ\n" : "the plans are the same\n");
  return driver::exitOk;
}

/// A line without what renumbering changes: names of values, of aliases and of places.
static std::string anonymous(StringRef line) {
  std::string text;
  line = line.rtrim();
  for (size_t i = 0; i < line.size(); ++i) {
    StringRef rest = line.drop_front(i);
    if (rest.starts_with("loc(")) {
      // A location may hold parentheses of its own.
      int depth = 0;
      bool quoted = false;
      for (; i < line.size(); ++i) {
        quoted ^= line[i] == '"';
        depth += quoted ? 0 : line[i] == '(' ? 1 : line[i] == ')' ? -1 : 0;
        if (line[i] == ')' && !quoted && depth == 0)
          break;
      }
      continue;
    }
    const bool isName =
        line[i] == '%' || rest.starts_with("#loc") || rest.starts_with("#map") || rest.starts_with("^bb");
    text += line[i];
    if (!isName)
      continue;
    while (i + 1 < line.size() && (llvm::isAlnum(line[i + 1]) || StringRef("_$.-#").contains(line[i + 1])))
      ++i;
  }
  return StringRef(text).rtrim().str();
}

static int diffTexts(const std::string &before, const std::string &after) {
  std::unique_ptr<llvm::MemoryBuffer> files[2];
  llvm::SmallVector<StringRef> lines[2];
  std::vector<uint32_t> numbers[2];
  Numbering number;
  for (unsigned side = 0; side < 2; ++side) {
    const std::string &path = side ? after : before;
    auto file = llvm::MemoryBuffer::getFileOrSTDIN(path, /*IsText=*/true);
    if (!file) {
      driver::printError("cannot read '" + path + "': " + file.getError().message());
      return driver::exitIo;
    }
    files[side] = std::move(*file);
    files[side]->getBuffer().split(lines[side], '\n');
    for (StringRef line : lines[side])
      numbers[side].push_back(number(anonymous(line)));
  }
  auto common = solve::findCommon(numbers[0], numbers[1]);
  common.emplace_back(uint32_t(lines[0].size()), uint32_t(lines[1].size()));
  // The second text with what is gone from the first one in between.
  struct Line {
    char mark;
    StringRef text;
    size_t number;
  };
  std::vector<Line> script;
  size_t a = 0, b = 0, numRemoved = 0, numAdded = 0;
  for (auto [nextA, nextB] : common) {
    numRemoved += nextA - a;
    numAdded += nextB - b;
    for (; a < nextA; ++a)
      script.push_back({'-', lines[0][a], b});
    for (; b < nextB; ++b)
      script.push_back({'+', lines[1][b], b});
    if (b < lines[1].size())
      script.push_back({' ', lines[1][b], b});
    ++a;
    ++b;
  }
  std::vector<char> isShown(script.size());
  for (size_t i = 0; i < script.size(); ++i)
    if (script[i].mark != ' ')
      for (size_t k = i - std::min(i, context); k < std::min(i + context + 1, script.size()); ++k)
        isShown[k] = 1;
  llvm::raw_ostream &os = llvm::outs();
  for (size_t i = 0; i < script.size(); ++i) {
    if (isShown[i] && (i == 0 || !isShown[i - 1]))
      os << "@@ line " << script[i].number + 1 << "\n";
    if (isShown[i])
      os << script[i].mark << " " << script[i].text << "\n";
  }
  if (numRemoved + numAdded)
    os << numRemoved << " lines gone, " << numAdded << " new\n";
  else
    os << "no difference but in names\n";
  return driver::exitOk;
}

int driver::showDifference(const Options &options) {
  return options.diffIr ? diffTexts(options.input, options.other) : diffArtifacts(options.input, options.other);
}
