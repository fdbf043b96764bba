//===- Explain.cpp - why a tensor is where it is ----------------*- C++ -*-===//
//
// `lowtide explain`: the decisions in a plan, with the bytes and the estimated time of each.
//
//===----------------------------------------------------------------------===//

#include "Diagnostics.h"
#include "Inspect.h"
#include "lowtide/Report/Report.h"
#include "lowtide/Support/NameList.h"
#include "lowtide/Support/StableSort.h"
#include "runtime/ShellQuote.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"

using namespace lowtide;
using namespace lowtide::report;
using llvm::StringRef;

/// Lines of the table of decisions.
static constexpr size_t maxRows = 50;

namespace {

/// Explains one entry.
class Explanation {
public:
  Explanation(const Entry &entry, llvm::raw_ostream &os) : entry(entry), os(os) {
    for (auto [number, tensor] : llvm::enumerate(entry.tensors))
      if (tensor.component == MemoryComponent::Recomputed)
        if (const Tensor *first = findFirst(number))
          againOf.try_emplace(first, number);
  }

  void summary();
  /// Says everything of the tensors whose place or maker `isMeant`; returns how many there are.
  unsigned tensors(llvm::function_ref<bool(StringRef)> isMeant);

private:
  void tensor(size_t number);
  /// How often and by what a tensor comes from the other memory or goes there, which one says, and the price.
  void moves(size_t number);
  /// At which other budgets something else is decided.
  void flips(size_t number);
  /// The store of a tensor that waits in another memory; null: it stays on the device.
  const Move *findStore(size_t number) const;
  /// The loads of what a store has written.
  llvm::SmallVector<const Move *> findLoads(const Move &store) const;
  double getSeconds(const Move &move) const { return entry.instructions[move.instruction].seconds; }
  void sumMoves();
  bool isAtPeak(const Tensor &tensor) const { return tensor.begin <= entry.peakAt && entry.peakAt < tensor.end; }
  const Instruction &getMaker(const Tensor &tensor) const { return entry.instructions[tensor.begin]; }
  std::string name(const Tensor &tensor) const {
    return tensor.place.empty() ? tensor.maker : tensor.maker + " · " + tensor.place;
  }
  /// The value that a recomputed one is: made earlier by the same kernel for the same place.
  const Tensor *findFirst(size_t number) const;
  static double perMiB(double seconds, uint64_t bytes) { return seconds * 1e6 / (double(bytes) / (1 << 20)); }

  const Entry &entry;
  llvm::raw_ostream &os;
  /// Of a value that is recomputed later, the number of the first one that is.
  llvm::DenseMap<const Tensor *, size_t> againOf;
};

} // namespace

static auto microseconds(double seconds) { return llvm::format("%.1f µs", seconds * 1e6); }

const Move *Explanation::findStore(size_t number) const {
  for (const Move &move : entry.moves)
    if (move.isStore && move.tensor == number && move.binding.empty())
      return &move;
  return nullptr;
}

llvm::SmallVector<const Move *> Explanation::findLoads(const Move &store) const {
  llvm::SmallVector<const Move *> loads;
  for (const Move &move : entry.moves)
    if (!move.isStore && move.otherValue == store.otherValue)
      loads.push_back(&move);
  return loads;
}

/// What waits in another memory, and what lies there from step to step.
void Explanation::sumMoves() {
  struct Sum {
    unsigned stores = 0, loads = 0;
    uint64_t stored = 0, loaded = 0;
  };
  struct Memory {
    Sum waiting, lasting;
    llvm::StringSet<> names;
  };
  llvm::MapVector<llvm::StringRef, Memory> memories;
  for (const Move &move : entry.moves) {
    Memory &memory = memories[move.space];
    Sum &sum = move.binding.empty() ? memory.waiting : memory.lasting;
    (move.isStore ? sum.stores : sum.loads) += 1;
    (move.isStore ? sum.stored : sum.loaded) += entry.tensors[move.tensor].bytes;
    if (!move.binding.empty())
      memory.names.insert(move.binding);
  }
  for (const auto &[space, memory] : memories) {
    const Sum &waiting = memory.waiting, &lasting = memory.lasting;
    os << "  stored in space " << space << ": " << waiting.stores << " tensors, " << formatBytes(waiting.stored)
       << "; loaded " << waiting.loads << " times, " << formatBytes(waiting.loaded) << "\n";
    if (lasting.loads || lasting.stores)
      os << "  there from step to step: " << memory.names.size() << " tensors; loaded " << lasting.loads << " times, "
         << formatBytes(lasting.loaded) << ", and stored " << lasting.stores << " times, "
         << formatBytes(lasting.stored) << "\n";
  }
}

void Explanation::summary() {
  uint64_t keptBytes = 0, againBytes = 0;
  std::vector<const Tensor *> decided;
  unsigned kept = 0, again = 0;
  for (const Tensor &tensor : entry.tensors) {
    const bool isAgain = tensor.component == MemoryComponent::Recomputed;
    if (findStore(size_t(&tensor - entry.tensors.data()))) {
      decided.push_back(&tensor);
      continue;
    }
    if (!isAgain && tensor.component != MemoryComponent::Saved)
      continue;
    (isAgain ? again : kept) += 1;
    (isAgain ? againBytes : keptBytes) += tensor.bytes;
    decided.push_back(&tensor);
  }
  const double seconds = entry.getSeconds(), extra = entry.getRecomputedSeconds();
  os << "@" << entry.name << ": " << entry.instructions.size() << " instructions, "
     << llvm::format("%.3g ms", seconds * 1e3) << " by the cost model; transient peak " << formatBytes(entry.peakBytes);
  if (!entry.instructions.empty())
    os << " at instruction " << entry.peakAt << " (" << entry.instructions[entry.peakAt].label << ")";
  os << "\n";
  if (entry.before)
    os << "  without the budget the peak is " << formatBytes(entry.before->peakBytes) << "\n";
  os << "  kept for the backward pass: " << kept << " tensors, " << formatBytes(keptBytes) << "\n"
     << "  recomputed:                 " << again << " tensors, " << formatBytes(againBytes);
  if (extra > 0 && seconds > extra)
    os << llvm::format(", +%.3g ms (+%.1f %%)", extra * 1e3, 100 * extra / (seconds - extra));
  os << "\n";
  sumMoves();
  if (decided.empty())
    return;
  sortStably(decided, [](const Tensor *a, const Tensor *b) { return a->bytes > b->bytes; });
  os << "\n  tensor       bytes  decision         lives  to run its maker      per MiB  at peak  what\n";
  for (const Tensor *tensor : llvm::ArrayRef(decided).take_front(maxRows)) {
    const double cost = getMaker(*tensor).seconds;
    const Move *store = findStore(size_t(tensor - entry.tensors.data()));
    os << llvm::format("  #%-6u", unsigned(tensor - entry.tensors.data()))
       << llvm::right_justify(formatBytes(tensor->bytes), 11)
       << (store                                         ? "  stored   "
           : tensor->component == MemoryComponent::Saved ? "  kept     "
                                                         : "  again    ")
       << llvm::right_justify(std::to_string(tensor->begin) + "–" + std::to_string(tensor->end - 1), 13)
       << llvm::format("%13.1f µs %11.1f µs", cost * 1e6, perMiB(cost, tensor->bytes))
       << (isAtPeak(*tensor) ? "      yes  " : "       no  ") << name(*tensor);
    if (store) {
      double seconds = getSeconds(*store);
      for (const Move *load : findLoads(*store))
        seconds += getSeconds(*load);
      os << "; to store and load it takes " << microseconds(seconds) << " of its lanes";
    }
    os << "\n";
  }
  if (decided.size() > maxRows)
    os << "  … " << decided.size() - maxRows << " smaller ones; name a layer to see them\n";
}

const Tensor *Explanation::findFirst(size_t number) const {
  const Tensor &again = entry.tensors[number];
  // The last that was given up: several of one place may look alike.
  for (const Tensor &tensor : llvm::reverse(llvm::ArrayRef(entry.tensors).take_front(number)))
    if (tensor.end <= again.begin && tensor.component != MemoryComponent::Recomputed &&
        tensor.component != MemoryComponent::Workspace && tensor.bytes == again.bytes && tensor.place == again.place &&
        tensor.maker == again.maker)
      return &tensor;
  return nullptr;
}

void Explanation::tensor(size_t number) {
  const Tensor &tensor = entry.tensors[number];
  const Instruction &maker = getMaker(tensor);
  os << "\n@" << entry.name << " #" << number << "  " << name(tensor) << "\n  " << getName(tensor.component) << ", "
     << formatExact(tensor.bytes) << " at " << tensor.offset << " of the transient arena\n  made by instruction "
     << tensor.begin << " (" << microseconds(maker.seconds) << "), ";
  if (tensor.readers.empty())
    os << "read by none";
  else
    os << "read by " << tensor.readers.size() << (tensor.readers.size() == 1 ? " instruction" : " instructions")
       << ", last by " << tensor.readers.back() << " (" << entry.instructions[tensor.readers.back()].label << ")";
  os << "; its bytes are taken from " << tensor.begin << " to " << tensor.end - 1 << "\n";
  switch (tensor.component) {
  case MemoryComponent::Saved: {
    auto after = llvm::find_if(tensor.readers, [&](unsigned reader) { return reader > entry.lossAt; });
    os << "  kept: made before the loss (instruction " << entry.lossAt << "), read again after it";
    if (after != tensor.readers.end())
      os << " from instruction " << *after << " on";
    os << "\n  to run its maker again instead takes " << microseconds(maker.seconds) << " or more, "
       << llvm::format("%.1f µs", perMiB(maker.seconds, tensor.bytes)) << " per MiB";
    if (isAtPeak(tensor))
      os << "; it is alive at the peak, so a smaller budget may ask for that";
    else
      os << "; it is not alive at the peak, so that would not lower it";
    os << "\n";
    break;
  }
  case MemoryComponent::Recomputed:
    os << "  recomputed: costs " << microseconds(maker.seconds) << ", "
       << llvm::format("%.1f µs", perMiB(maker.seconds, tensor.bytes)) << " per MiB";
    if (const Tensor *first = findFirst(number))
      os << "; first made by instruction " << first->begin << " and given up after " << first->end - 1
         << ", which leaves " << formatBytes(tensor.bytes) << " to others for " << tensor.begin - first->end
         << " instructions";
    os << "\n";
    break;
  case MemoryComponent::Gradient:
    os << "  gone as soon as the update has read it\n";
    break;
  case MemoryComponent::Output:
    os << "  kept to the end: an output of the step\n";
    break;
  case MemoryComponent::Workspace:
    os << "  scratch: nothing in it outlives its instruction\n";
    break;
  default:
    if (auto again = againOf.find(&tensor); again != againOf.end())
      os << "  given up after its last reader, and recomputed by instruction " << entry.tensors[again->second].begin
         << " (#" << again->second << ")\n";
    else if (llvm::none_of(entry.moves, [&](const Move &move) { return move.tensor == number; }))
      os << "  neither kept for the backward pass nor recomputed: its bytes are free after its last reader\n";
    break;
  }
  moves(number);
  flips(number);
}

static StringRef getName(BudgetDecision decision) {
  switch (decision) {
  case BudgetDecision::Keep:
    return "kept";
  case BudgetDecision::Recompute:
    return "recomputed";
  case BudgetDecision::Store:
    return "stored in another memory";
  }
  return "";
}

void Explanation::flips(size_t number) {
  const Tensor &tensor = entry.tensors[number];
  for (const BudgetFlip &flip : tensor.flips)
    os << "  where it flips: " << getName(flip.decision) << " with a budget of " << formatExact(flip.bytes)
       << ", and not with " << formatExact(flip.nearerBytes) << "\n";
  const bool isDecided = tensor.component == MemoryComponent::Saved || tensor.component == MemoryComponent::Recomputed;
  if (!tensor.flips.empty() || (!isDecided && !findStore(number)))
    return;
  if (const std::optional<PlannedBudgets> &planned = entry.plannedBudgets)
    os << "  flips at none of " << planned->count << " budgets from " << formatExact(planned->leastBytes) << " to "
       << formatExact(planned->mostBytes) << "\n";
  else
    os << "  where it flips: lowtide compile --device-budget=SIZE --flips=on plans other budgets, too\n";
}

void Explanation::moves(size_t number) {
  const Tensor &tensor = entry.tensors[number];
  if (const Move *store = findStore(number)) {
    double seconds = getSeconds(*store);
    unsigned away = tensor.end;
    os << "  stored in space " << store->space << " by instruction " << store->instruction;
    for (const Move *load : findLoads(*store)) {
      os << ", loaded again by instruction " << load->instruction << " (#" << load->tensor << ")";
      if (load->instruction > away)
        os << ", which leaves " << formatBytes(tensor.bytes) << " to others from program point " << away << " to "
           << load->instruction - 1;
      away = std::max(away, entry.tensors[load->tensor].end);
      seconds += getSeconds(*load);
    }
    os << "\n  its price: to store and load it takes " << microseconds(seconds)
       << " of the lanes, which pass while others compute; to run its maker again "
       << microseconds(getMaker(tensor).seconds) << " or more; to keep it " << formatBytes(tensor.bytes)
       << " for so long\n";
  }
  for (const Move &move : entry.moves) {
    if (move.tensor != number || (move.isStore && move.binding.empty()))
      continue;
    os << (move.isStore ? "  goes to" : "  comes from") << " space " << move.space << " by instruction "
       << move.instruction << " in " << microseconds(getSeconds(move)) << " of its lane";
    if (!move.binding.empty())
      os << (move.isStore ? ", where it is the next " : ", where it is ") << move.binding << " from step to step";
    os << "\n";
  }
}

unsigned Explanation::tensors(llvm::function_ref<bool(StringRef)> isMeant) {
  unsigned count = 0;
  for (auto [i, each] : llvm::enumerate(entry.tensors))
    if (isMeant("#" + std::to_string(i)) || isMeant(each.place) || isMeant(each.maker)) {
      tensor(i);
      ++count;
    }
  return count;
}

/// When an entry loads what lies in another memory from step to step, and stores it.
static void explainVisits(const report::Entry &entry, StringRef binding, llvm::raw_ostream &os) {
  llvm::SmallVector<std::string> loads, stores;
  double seconds = 0;
  for (const Move &move : entry.moves)
    if (move.binding == binding) {
      (move.isStore ? stores : loads).push_back(std::to_string(move.instruction));
      seconds += entry.instructions[move.instruction].seconds;
    }
  if (loads.empty() && stores.empty())
    return;
  os << "  @" << entry.name << " loads it by instruction " << llvm::join(loads, ", ");
  if (!stores.empty())
    os << ", and stores it by " << llvm::join(stores, ", ");
  os << ": " << microseconds(seconds) << " of the lanes\n";
}

/// Where a parameter's first value is. The file may not hold it itself, where an exporter evaluated something of it.
static std::string describeStart(const plan::ParameterSource &source) {
  const std::string name = "the initializer '" + source.initializer() + "' of the model file";
  if (!source.image_initializers_size())
    return "  starts from " + name + "\n";
  std::string images;
  for (const std::string &image : source.image_initializers())
    images += (images.empty() ? "'" : ", '") + image + "'";
  return "  starts from " + name + ", or from what its exporter evaluated of it: " + images + "\n";
}

/// All names of a bound tensor: a tied parameter has several, the model file may have another one, and optimizer state
/// begins with its parameter's.
static std::vector<std::string> listNames(const plan::Plan &plan, StringRef binding) {
  std::vector<std::string> names = {binding.str()};
  for (const plan::ParameterSource &source : plan.sources()) {
    StringRef rest = binding;
    if (!rest.consume_front(source.name()) || (!rest.empty() && !rest.starts_with(".")))
      continue;
    for (const std::string &tied : source.tied_names())
      names.push_back(tied + rest.str());
    if (!rest.empty())
      continue;
    names.push_back(source.initializer());
    names.insert(names.end(), source.image_initializers().begin(), source.image_initializers().end());
  }
  return names;
}

/// The first entry that writes a bound tensor; empty: none does.
static std::string findWriter(const plan::Plan &plan, const plan::Binding &binding) {
  for (const plan::Entry &entry : plan.entries())
    for (const plan::Binding &each : entry.bindings())
      if (each.kind() == binding.kind() && each.name() == binding.name() && each.final_value() != each.slice().value())
        return entry.name();
  return {};
}

/// Entries of the module's state dictionary that no memory of the step holds; returns how many are meant.
static unsigned explainSaved(const plan::Plan &plan, llvm::function_ref<bool(StringRef)> isMeant,
                             llvm::raw_ostream &os) {
  unsigned count = 0;
  for (const plan::ParameterSource &source : plan.sources()) {
    if (!source.saved() || source.value().empty() || !isMeant(source.name()))
      continue;
    ++count;
    os << "\nconstant " << source.name() << "\n  ";
    if (source.updates_per_step())
      os << "counts batches in checkpoints, " << source.updates_per_step() << " a step; no instruction reads it\n";
    else
      os << "its value is part of the code of the step, if anything reads it; checkpoints hold it\n";
  }
  return count;
}

/// Says where the bound tensors lie whose name `isMeant`; returns how many there are.
static unsigned explainBindings(const plan::Plan &plan, llvm::ArrayRef<report::Entry> entries,
                                llvm::function_ref<bool(StringRef)> isMeant, llvm::raw_ostream &os) {
  llvm::StringSet<> seen;
  unsigned count = 0;
  for (const plan::Entry &entry : plan.entries())
    for (const plan::Binding &binding : entry.bindings()) {
      const std::vector<std::string> names = listNames(plan, binding.name());
      if (!llvm::any_of(names, isMeant) || !seen.insert(binding.name() + std::to_string(binding.kind())).second)
        continue;
      ++count;
      const plan::Slice &slice = binding.slice();
      os << "\n"
         << llvm::StringRef(plan::Binding::Kind_Name(binding.kind())).lower() << " " << binding.name() << "\n  "
         << formatExact(slice.bytes()) << " at " << slice.offset() << " of the arena "
         << plan.arenas(int(slice.arena())).name() << ", in every entry\n";
      if (binding.kind() == plan::Binding::PARAM || binding.kind() == plan::Binding::STATE) {
        const std::string writer = findWriter(plan, binding);
        os << (writer.empty() ? "  written by no entry" : "  updated in place by @" + writer) << "\n";
      }
      if (binding.pending())
        os << "  left by each step for the update that the next one begins with; in no checkpoint\n";
      for (const report::Entry &visiting : entries)
        explainVisits(visiting, binding.name(), os);
      for (const plan::ParameterSource &source : plan.sources())
        if (source.name() == binding.name()) {
          if (source.tied_names_size())
            os << "  tied, also called " << llvm::join(source.tied_names(), ", ") << "\n";
          os << describeStart(source);
        }
    }
  return count;
}

int driver::explainArtifact(const Options &options) {
  auto artifact = rt::Artifact::open(options.input);
  if (!artifact)
    return fail(artifact.status());
  llvm::raw_ostream &os = llvm::outs();
  Report report = buildReport((*artifact)->plan(), (*artifact)->meta(), options.input);
  if (options.tensor.empty()) {
    os << report.target << ", " << formatBytes(report.getBytes()) << " allocated";
    if (report.deviceBudget)
      os << " of a budget of " << formatBytes(report.deviceBudget);
    os << ": " << formatBytes(report.statics.sum()) << " for parameters, optimizer state, input and output"
       << (report.statics.exchange
               ? ", " + formatBytes(report.statics.exchange) + " of it " + report.getExchangeName().str()
               : "")
       << ", " << formatBytes(report.transientBytes) << " transient";
    if (report.hostBytes)
      os << "; " << formatBytes(report.hostBytes) << " of host memory";
    if (report.fileBytes)
      os << "; " << formatBytes(report.fileBytes) << " in a file";
    os << "\n";
    if (!report.machines.empty())
      os << "runs on " << report.machines << "\n";
    if (!report.plannedFor.empty())
      os << "planned for " << report.plannedFor << "\n";
    if (!report.stored.isEmpty())
      report.stored.print(os);
    for (const Entry &entry : report.entries) {
      os << "\n";
      Explanation(entry, os).summary();
    }
    return exitOk;
  }
  const NamePattern pattern(options.tensor);
  // A place lists several layers; each may be meant, whole or from its start.
  auto isMeant = [&](StringRef text) {
    llvm::SmallVector<StringRef> names;
    text.split(names, ", ");
    return llvm::any_of(names, [&](StringRef name) {
      return pattern.matches(name) || name.starts_with(options.tensor + "/") || name.starts_with(options.tensor + ".");
    });
  };
  unsigned count = explainBindings((*artifact)->plan(), report.entries, isMeant, os) +
                   explainSaved((*artifact)->plan(), isMeant, os);
  for (const Entry &entry : report.entries)
    count += Explanation(entry, os).tensors(isMeant);
  if (count)
    return exitOk;
  if (!pattern.getFault().empty())
    printError("'" + options.tensor + "' is no pattern: " + pattern.getFault());
  else
    printError("'" + options.tensor + "' is neither a tensor (#12), nor a layer, nor a bound name of '" +
               options.input + "'");
  printNote("lowtide explain " + rt::quoteForShell(options.input) +
            " lists the largest decisions; patterns work: '*attn*'; "
            "a constant that became part of the step's code has no name there");
  return exitUsage;
}
