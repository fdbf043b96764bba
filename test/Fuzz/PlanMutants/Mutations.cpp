//===- Mutations.cpp - the kinds of changes --------------------------------===//

#include "Mutations.h"

#include "PlanWalk.h"

namespace lowtide::fuzz {
namespace {

bool changeField(plan::Plan &plan, Dice &dice) { return changeAnyField(plan, dice); }

constexpr Mutation all[] = {
    {"swap instructions", swapInstructions},
    {"delete an instruction", deleteInstruction},
    {"duplicate an instruction", duplicateInstruction},
    {"move an instruction", moveInstruction},
    {"resize a slice", resizeSlice},
    {"shift a slice", shiftSlice},
    {"exchange slices", exchangeSlices},
    {"change a slice's arena", changeArenaOfSlice},
    {"relocate a value", relocateValue},
    {"overlay a result", overlayResult},
    {"change a value number", changeValue},
    {"renumber a value", renumberValue},
    {"exchange kernels", exchangeKernels},
    {"exchange symbols", exchangeSymbols},
    {"change an extent", changeExtents},
    {"change a footprint", changeFootprint},
    {"change a statement", changeStatement},
    {"change a kernel", changeKernelField},
    {"change an attribute", changeAttribute},
    {"change a copy or fill", changeCopy},
    {"change a carry", changeCarry},
    {"change a repeat", changeRepeat},
    {"change a binding", changeBinding},
    {"change an entry", changeEntry},
    {"change an arena", changeArena},
    {"change streams", changeStreams},
    {"spread over streams", spreadOverStreams},
    {"change any field", changeField},
};

} // namespace

std::span<const Mutation> mutations() { return all; }

} // namespace lowtide::fuzz
