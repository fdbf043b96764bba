//===- VerifyWork.cpp - how much there is to verify -------------------------===//

#include "runtime/VerifyWork.h"

#include <algorithm>

namespace lowtide::rt {

uint64_t countVerifiedRounds(const plan::Repeat &repeat) {
  const bool moves = std::any_of(repeat.body().begin(), repeat.body().end(), [](const plan::Instruction &instruction) {
    return instruction.has_copy() && (instruction.copy().source_step() || instruction.copy().target_step());
  });
  const uint64_t count = static_cast<uint64_t>(std::max<int64_t>(repeat.count(), 0));
  return moves ? count : std::min<uint64_t>(count, 2);
}

uint64_t countVerified(const google::protobuf::RepeatedPtrField<plan::Instruction> &instructions) {
  constexpr uint64_t most = uint64_t(1) << 63;
  uint64_t count = 0;
  for (const plan::Instruction &instruction : instructions) {
    uint64_t more = 1;
    if (instruction.has_repeat() && __builtin_mul_overflow(countVerifiedRounds(instruction.repeat()),
                                                           countVerified(instruction.repeat().body()), &more))
      return most;
    more += instruction.has_repeat();
    count = std::min(most, count + std::min(most, more));
  }
  return count;
}

} // namespace lowtide::rt
