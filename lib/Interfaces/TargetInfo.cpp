//===- TargetInfo.cpp - the table of targets, read --------------*- C++ -*-===//
//
// Makes targets of rows, and says in words what is wrong with figures that came from elsewhere.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Interfaces/TargetInfo.h"
#include "lowtide/Support/NameList.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/TargetParser/Host.h"

#include <cmath>

using namespace lowtide;
using llvm::StringRef;

namespace {
/// A row of the table's CPUs.
struct CpuRow {
  StringRef name;
  TargetKind kind;
  StringRef chip, title;
  uint32_t vectorBits;
  double libraryFlops, kernelFlops, bytesPerSecond, launchSeconds;
  double fileWriteRate, fileReadRate, fileSeconds;
};
} // namespace

static constexpr Chip chips[] = {
#define LOWTIDE_CHIPS
#include "Targets.inc"
};
static constexpr Card cards[] = {
#define LOWTIDE_CARDS
#include "Targets.inc"
};
static constexpr CpuRow cpus[] = {
#define LOWTIDE_CPUS
#include "Targets.inc"
};

llvm::ArrayRef<Chip> lowtide::listChips() { return chips; }

const Chip *lowtide::findChip(StringRef name) {
  const auto *found = llvm::find_if(chips, [&](const Chip &chip) { return chip.name == name; });
  return found == std::end(chips) ? nullptr : found;
}

llvm::ArrayRef<Card> lowtide::listCards() { return cards; }

static std::string plain(StringRef name) {
  std::string text = name.lower();
  llvm::erase_if(text, [](char c) { return c == ' ' || c == '-' || c == '_'; });
  return text;
}

const Card *lowtide::findCard(StringRef name) {
  const auto *found = llvm::find_if(cards, [&](const Card &card) { return plain(card.name) == plain(name); });
  return found == std::end(cards) ? nullptr : found;
}

static constexpr std::pair<TargetKind, StringRef> kinds[] = {{TargetKind::Cpu, "cpu"},
                                                             {TargetKind::Cuda, "cuda"},
                                                             {TargetKind::CudaEmulated, "cuda-emulated"},
                                                             {TargetKind::Reference, "reference"}};

StringRef lowtide::getTargetKindName(TargetKind kind) {
  return llvm::find_if(kinds, [&](const auto &row) { return row.first == kind; })->second;
}

std::optional<TargetKind> lowtide::findTargetKind(StringRef name) {
  const auto *found = llvm::find_if(kinds, [&](const auto &row) { return row.second == name; });
  return found == std::end(kinds) ? std::nullopt : std::optional(found->first);
}

static TargetInfo makeCpu(const CpuRow &row) {
  TargetInfo target;
  target.name = row.name, target.kind = row.kind, target.chip = row.chip, target.title = row.title;
  target.vectorBits = row.vectorBits;
  target.libraryFlops = row.libraryFlops, target.kernelFlops = row.kernelFlops;
  target.bytesPerSecond = row.bytesPerSecond, target.launchSeconds = row.launchSeconds;
  target.links = {{"device", "file", row.fileWriteRate, row.fileSeconds},
                  {"file", "device", row.fileReadRate, row.fileSeconds}};
  if (row.kind == TargetKind::Cpu)
    target.libraries = {"lowtide-cpu"};
  return target;
}

/// The card whose figures stand where a row has none.
static const Card &getUsualCard() { return *findCard(findChip("sm_90")->card); }

/// Kernels for `chip`, planned for `card`; null: no figures but those that a plan needs.
static TargetInfo makeGpu(const Chip &chip, const Card *card) {
  TargetInfo target;
  target.kind = TargetKind::Cuda;
  target.chip = chip.name;
  target.title = card ? card->title : chip.cards;
  const Card &counted = card && card->processors ? *card : getUsualCard();
  target.processors = counted.processors;
  target.libraryFlops = counted.libraryFlops, target.kernelFlops = counted.kernelFlops;
  target.bytesPerSecond = counted.bytesPerSecond, target.launchSeconds = counted.launchSeconds;
  target.libraries = {"cublaslt", "cudnn"};
  if (!card)
    return target;
  target.memory = {{"device", card->totalMiB << 20, card->takenMiB << 20, card->memoryRate}};
  if (card->hostLinkRate)
    target.links = {{"host", "device", card->hostLinkRate}, {"device", "host", card->hostLinkRate}};
  if (card->peerLinkRate)
    target.links.push_back({"device", "peer", card->peerLinkRate});
  const std::pair<StringRef, double> rates[] = {
      {"bf16", card->bf16}, {"f16", card->f16}, {"f32", card->f32}, {"f64", card->f64}, {"tf32", card->tf32}};
  for (const auto &[dtype, rate] : rates)
    if (rate)
      target.rates.push_back({dtype.str(), rate});
  return target;
}

/// The rows that the machine of this compile has the instructions of, the widest vectors last.
static StringRef findNativeRow() {
  const llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  const bool isWide = llvm::all_of(llvm::ArrayRef<StringRef>{"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
                                   [&](StringRef feature) { return features.lookup(feature); });
  return isWide ? "cpu:x86-64-v4" : "cpu:x86-64-v3";
}

std::optional<TargetInfo> lowtide::findTarget(StringRef name) {
  if (name == "cpu")
    name = findNativeRow();
  if (name == "cuda")
    name = "cuda:sm_90";
  for (const CpuRow &row : cpus)
    if (row.name == name)
      return makeCpu(row);
  std::optional<TargetInfo> target;
  if (name == "cuda-emulated") {
    target = makeGpu(*findChip("sm_90"), nullptr);
    target->kind = TargetKind::CudaEmulated;
    target->chip = "";
    target->title = "a GPU's kernels on a CPU with AVX2 and FMA, for checks";
  } else if (!name.consume_front("cuda:")) {
    return std::nullopt;
  } else if (const Chip *chip = findChip(name)) {
    target = makeGpu(*chip, chip->card.empty() ? nullptr : findCard(chip->card));
  } else if (const Card *card = findCard(name)) {
    target = makeGpu(*findChip(card->chip), card);
    name = card->name;
  } else {
    return std::nullopt;
  }
  target->name = target->kind == TargetKind::Cuda ? ("cuda:" + name).str() : name.str();
  return target;
}

const TargetInfo &lowtide::getDefaultTarget() {
  static const TargetInfo target = *findTarget("cpu:x86-64-v3");
  return target;
}

std::vector<std::string> lowtide::listTargetNames() {
  std::vector<std::string> names = {"cpu"};
  for (const CpuRow &row : cpus)
    names.push_back(row.name.str());
  names.insert(names.end(), {"cuda", "cuda-emulated"});
  for (const Chip &chip : chips)
    names.push_back(("cuda:" + chip.name).str());
  for (const Card &card : cards)
    names.push_back(("cuda:" + card.name).str());
  return names;
}

std::string lowtide::describeUnknownTarget(StringRef name) {
  const std::string text = ("unknown target '" + name + "'").str();
  // Of a chip that is too old, or new, none is meant.
  if (name.starts_with("cuda:sm_"))
    return text;
  const std::vector<std::string> names = listTargetNames();
  // "rtx4090": a GPU without its kind.
  for (StringRef known : names)
    if (known.consume_front("cuda:") && known.equals_insensitive(name))
      return text + "; did you mean 'cuda:" + known.str() + "'?";
  // A letter from 'cpu', and the opposite of it.
  if (name.equals_insensitive("gpu") || name.equals_insensitive("nvidia"))
    return text + "; did you mean 'cuda'?";
  return text + suggestName(name, llvm::SmallVector<StringRef>(names.begin(), names.end()));
}

const MemorySpace *TargetInfo::findMemory(StringRef space) const {
  auto found = llvm::find_if(memory, [&](const MemorySpace &one) { return one.name == space; });
  return found == memory.end() ? nullptr : &*found;
}

std::string TargetInfo::getArtifactTarget() const {
  return (getTargetKindName(kind) + (chip.empty() ? "" : ":") + chip).str();
}

/// "chip 'sm_70' is not known; cuda has sm_80, …"; nothing: the kind has it.
static std::optional<std::string> findChipFault(const TargetInfo &target) {
  std::vector<StringRef> known;
  switch (target.kind) {
  case TargetKind::Cpu:
    for (const CpuRow &row : cpus)
      if (row.kind == TargetKind::Cpu)
        known.push_back(row.chip);
    break;
  case TargetKind::Cuda:
    for (const Chip &chip : chips)
      known.push_back(chip.name);
    break;
  case TargetKind::CudaEmulated:
  case TargetKind::Reference:
    if (target.chip.empty())
      return std::nullopt;
    return llvm::formatv("chip is '{0}'; {1} has none: leave it out", target.chip, getTargetKindName(target.kind))
        .str();
  }
  if (llvm::is_contained(known, target.chip))
    return std::nullopt;
  return llvm::formatv("chip is '{0}'; {1} has {2}", target.chip, getTargetKindName(target.kind),
                       llvm::join(known, ", "))
      .str();
}

std::optional<std::string> TargetInfo::findFault() const {
  if (name.empty())
    return "name is empty; it takes what the target is called, such as \"cuda:sm_90\"";
  if (std::optional<std::string> fault = findChipFault(*this))
    return fault;
  if (isGpu() && (processors < 1 || processors > mostProcessors))
    return llvm::formatv("processors is {0}; a GPU has 1 to {1}", processors, mostProcessors).str();
  if (threadsMax < 1 || threadsMax > mostThreads)
    return llvm::formatv("threads_max is {0}; it is between 1 and {1}", threadsMax, mostThreads).str();
  auto isRate = [](double rate) { return std::isfinite(rate) && rate > 0; };
  const std::pair<StringRef, double> estimates[] = {{"library_flops", libraryFlops},
                                                    {"kernel_flops", kernelFlops},
                                                    {"memory_bytes_per_second", bytesPerSecond},
                                                    {"launch_seconds", launchSeconds}};
  for (const auto &[field, value] : estimates)
    if (!isRate(value))
      return llvm::formatv("estimates.{0} is {1:E2}; it is a number above 0", field, value).str();
  for (const DTypeRate &rate : rates)
    if (!llvm::is_contained({"bf16", "f16", "f32", "f64", "tf32", "f8", "i8"}, rate.dtype))
      return llvm::formatv("rates.{0} is of no type of numbers; there are bf16, f16, f32, f64, tf32, f8, i8",
                           rate.dtype)
          .str();
    else if (!isRate(rate.flopsPerSecond))
      return llvm::formatv("rates.{0} is {1:E2}; it is a number above 0", rate.dtype, rate.flopsPerSecond).str();
  for (const MemorySpace &space : memory)
    if (space.name.empty())
      return "memory holds a space without a name";
    else if (llvm::count_if(memory, [&](const MemorySpace &other) { return other.name == space.name; }) > 1)
      return llvm::formatv("memory holds '{0}' twice", space.name).str();
    else if (space.bytes && space.reservedBytes >= space.bytes)
      return llvm::formatv("memory '{0}' has {1} bytes, of which {2} are reserved: none is left", space.name,
                           space.bytes, space.reservedBytes)
          .str();
    else if (space.bytesPerSecond != 0 && !isRate(space.bytesPerSecond))
      return llvm::formatv("memory '{0}': bytes_per_second is {1:E2}; it is a number above 0", space.name,
                           space.bytesPerSecond)
          .str();
  for (const MemoryLink &link : links)
    if (link.from.empty() || link.to.empty() || link.from == link.to)
      return llvm::formatv("a link goes from '{0}' to '{1}'; it joins two memories", link.from, link.to).str();
    else if (!isRate(link.bytesPerSecond))
      return llvm::formatv("link from '{0}' to '{1}': bytes_per_second is {2:E2}; it is a number above 0", link.from,
                           link.to, link.bytesPerSecond)
          .str();
    else if (!std::isfinite(link.latencySeconds) || link.latencySeconds < 0)
      return llvm::formatv("link from '{0}' to '{1}': latency_seconds is {2:E2}; it is a number from 0", link.from,
                           link.to, link.latencySeconds)
          .str();
  return std::nullopt;
}
