//===- StepSummary.cpp - what a step takes, in two lines --------*- C++ -*-===//
//
// Parts add up to what the runtime allocates.
//
//===----------------------------------------------------------------------===//

#include "StepSummary.h"
#include "ByteUnit.h"

using namespace lowtide;
using namespace lowtide::driver;

void lowtide::driver::printStepSummary(const report::Report &report, llvm::raw_ostream &os) {
  const report::Entry *entry = report::findMainEntry(report);
  if (!entry)
    return;
  const ByteUnit unit = ByteUnit::get(report.getBytes());
  os << "@" << entry->name << " takes " << unit.text(report.getBytes());
  if (report.deviceBudget)
    os << " of a budget of " << unit.text(report.deviceBudget);
  os << ": parameters " << unit.number(report.statics.parameters) << ", optimizer state "
     << unit.number(report.statics.state) << ", batch " << unit.number(report.statics.batch);
  uint64_t alive = 0;
  if (entry->peakAt < entry->live.size())
    for (unsigned c = 0; c < numTransientComponents; ++c)
      if (uint64_t bytes = entry->live[entry->peakAt][c]) {
        alive += bytes;
        os << ", " << getName(MemoryComponent(c)) << " " << unit.number(bytes);
      }
  // Gaps between buffers, and what another entry needs more.
  if (report.transientBytes > alive && unit.number(report.transientBytes - alive) != unit.number(0))
    os << ", not used by it " << unit.number(report.transientBytes - alive);
  os << "\n";
  if (entry->peakAt < entry->instructions.size())
    os << "its peak is at " << entry->instructions[entry->peakAt].label << ", instruction " << entry->peakAt << " of "
       << entry->instructions.size() << "\n";
}
