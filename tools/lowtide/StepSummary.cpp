//===- StepSummary.cpp - what a step takes, in two lines --------*- C++ -*-===//
//
// Parts add up to what the runtime allocates.
//
//===----------------------------------------------------------------------===//

#include "StepSummary.h"
#include "lowtide/Support/ByteUnit.h"

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
  // Gaps between buffers, and what another entry needs more.
  if (figures.transientBytes > alive && unit.number(figures.transientBytes - alive) != unit.number(0))
    os << ", not used by it " << unit.number(figures.transientBytes - alive);
  os << "\n";
  if (entry->peakAt < entry->instructions)
    os << "its peak is at " << entry->peakLabel << ", instruction " << entry->peakAt << " of " << entry->instructions
       << "\n";
}
