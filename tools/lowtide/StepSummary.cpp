//===- StepSummary.cpp - what a step takes, in two lines --------*- C++ -*-===//
//
// Parts add up to what the runtime allocates.
//
//===----------------------------------------------------------------------===//

#include "StepSummary.h"
#include "lowtide/Support/ByteUnit.h"
#include <algorithm>

using namespace lowtide;
using namespace lowtide::driver;

void lowtide::driver::printStepSummary(const Figures &figures, llvm::raw_ostream &os) {
  const EntryFigures *entry = figures.findMainEntry();
  if (!entry)
    return;
  const ByteUnit unit = ByteUnit::get(figures.bytes);
  os << "@" << entry->name << " takes " << unit.text(figures.bytes);
  if (figures.budgetBytes)
    os << " of a budget of " << unit.text(figures.budgetBytes);
  os << ": parameters " << unit.number(figures.parameterBytes) << ", optimizer state "
     << unit.number(figures.stateBytes) << ", batch " << unit.number(figures.batchBytes);
  uint64_t alive = 0;
  for (const auto &[name, bytes] : entry->peakParts) {
    alive += bytes;
    os << ", " << name << " " << unit.number(bytes);
  }
  auto add = [&](const llvm::Twine &what, uint64_t bytes) {
    if (unit.number(bytes) != unit.number(0))
      os << ", " << what << " " << unit.number(bytes);
    return unit.number(bytes) != unit.number(0);
  };
  // Gaps between buffers; then what another entry needs more, which shares the memory.
  const uint64_t own = std::clamp(entry->arenaBytes, alive, std::max(alive, figures.transientBytes));
  add("not used by it", own - alive);
  const auto &largest = *std::max_element(
      figures.entries.begin(), figures.entries.end(),
      [](const EntryFigures &one, const EntryFigures &other) { return one.arenaBytes < other.arenaBytes; });
  const bool isShared = figures.transientBytes > own && largest.name != entry->name &&
                        add("more for @" + largest.name, figures.transientBytes - own);
  if (isShared)
    os << " (none with --entries=" << entry->name << ")";
  os << "\n";
  if (entry->peakAt < entry->instructions)
    os << "its peak is at " << entry->peakLabel << ", instruction " << entry->peakAt << " of " << entry->instructions
       << "\n";
}
