//===- PlanWalk.h - what a plan has, for who wants to change it ------------===//
#ifndef LOWTIDE_TEST_FUZZ_PLANMUTANTS_PLANWALK_H
#define LOWTIDE_TEST_FUZZ_PLANMUTANTS_PLANWALK_H

#include "Mutations.h"

#include <vector>

namespace lowtide::fuzz {

using Instructions = google::protobuf::RepeatedPtrField<plan::Instruction>;
using Slices = google::protobuf::RepeatedPtrField<plan::Slice>;

/// The list of an entry and those of all repeats in it.
std::vector<Instructions *> listsOf(plan::Entry &entry);
/// All instructions of a kind, in all entries.
std::vector<plan::Instruction *> instructionsOf(plan::Plan &plan, plan::Instruction::KindCase kind);
/// Every slice of an entry but those of its bindings; every slice.
std::vector<plan::Slice *> operandsOf(plan::Entry &entry);
std::vector<plan::Slice *> slicesOf(plan::Entry &entry);

plan::Entry &anyEntry(plan::Plan &plan, Dice &dice);
/// A list with instructions, longer ones more often; null where there is none.
Instructions *anyList(plan::Plan &plan, Dice &dice);
int anyIndex(const Instructions &list, Dice &dice);
plan::Slice *anySlice(plan::Plan &plan, Dice &dice);
/// Elements, cache lines, or any number of bytes.
uint64_t anyDistance(Dice &dice);
/// Moves the last instruction to `to`.
void sink(Instructions &list, int to);

bool swapInstructions(plan::Plan &plan, Dice &dice);
bool deleteInstruction(plan::Plan &plan, Dice &dice);
bool duplicateInstruction(plan::Plan &plan, Dice &dice);
bool moveInstruction(plan::Plan &plan, Dice &dice);
bool resizeSlice(plan::Plan &plan, Dice &dice);
bool shiftSlice(plan::Plan &plan, Dice &dice);
bool exchangeSlices(plan::Plan &plan, Dice &dice);
bool changeArenaOfSlice(plan::Plan &plan, Dice &dice);
bool relocateValue(plan::Plan &plan, Dice &dice);
bool overlayResult(plan::Plan &plan, Dice &dice);
bool changeValue(plan::Plan &plan, Dice &dice);
bool renumberValue(plan::Plan &plan, Dice &dice);
bool exchangeKernels(plan::Plan &plan, Dice &dice);
bool exchangeSymbols(plan::Plan &plan, Dice &dice);
bool changeExtents(plan::Plan &plan, Dice &dice);
bool changeFootprint(plan::Plan &plan, Dice &dice);
bool changeStatement(plan::Plan &plan, Dice &dice);
bool changeKernelField(plan::Plan &plan, Dice &dice);
bool changeAttribute(plan::Plan &plan, Dice &dice);
bool changeCopy(plan::Plan &plan, Dice &dice);
bool changeCarry(plan::Plan &plan, Dice &dice);
bool changeRepeat(plan::Plan &plan, Dice &dice);
bool changeBinding(plan::Plan &plan, Dice &dice);
bool changeEntry(plan::Plan &plan, Dice &dice);
bool changeArena(plan::Plan &plan, Dice &dice);
bool changeStreams(plan::Plan &plan, Dice &dice);
bool spreadOverStreams(plan::Plan &plan, Dice &dice);

} // namespace lowtide::fuzz

#endif // LOWTIDE_TEST_FUZZ_PLANMUTANTS_PLANWALK_H
