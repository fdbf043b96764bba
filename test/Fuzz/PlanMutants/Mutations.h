//===- Mutations.h - what may be wrong in a plan ---------------------------===//
//
// Structured changes of a plan that was proved: each is one that a wrong compiler, or a mixed-up file, could have made.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_TEST_FUZZ_PLANMUTANTS_MUTATIONS_H
#define LOWTIDE_TEST_FUZZ_PLANMUTANTS_MUTATIONS_H

#include "Dice.h"
#include "plan.pb.h"

#include <span>
#include <string>

namespace lowtide::fuzz {

struct Mutation {
  const char *name;
  /// Changes the plan; false where it has nothing of the kind.
  bool (*apply)(plan::Plan &plan, Dice &dice);
};

/// All kinds, in the order in which they are counted.
std::span<const Mutation> mutations();

/// Sets a field of any message below `message`, or changes what it repeats (MutateField.cpp).
bool changeAnyField(google::protobuf::Message &message, Dice &dice);
/// A number near `value`, or one at which something may wrap.
uint64_t changedNumber(uint64_t value, Dice &dice);

} // namespace lowtide::fuzz

#endif // LOWTIDE_TEST_FUZZ_PLANMUTANTS_MUTATIONS_H
