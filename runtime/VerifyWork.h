//===- VerifyWork.h - how much there is to verify --------------------------===//
#ifndef LOWTIDE_RUNTIME_VERIFYWORK_H
#define LOWTIDE_RUNTIME_VERIFYWORK_H

#include "plan.pb.h"

namespace lowtide::rt {

/// Most instructions of an entry that the verifier goes through.
inline constexpr uint64_t maxInstructions = 10000000;

/// Rounds of a repeat that it goes through: all where a copy moves on with them, else the first two.
uint64_t countVerifiedRounds(const plan::Repeat &repeat);

/// Instructions that it goes through; at most 2^63.
uint64_t countVerified(const google::protobuf::RepeatedPtrField<plan::Instruction> &instructions);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_VERIFYWORK_H
