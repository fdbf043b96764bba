//===- StepTrace.h - where a step first holds what is not finite -----------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_STEPTRACE_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_STEPTRACE_H

#include "runtime/Session.h"

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace lowtide::run {

/// Looks at what every instruction of an entry writes. The plan states element types of bindings and of the operands of
/// library calls; of other values only the bits that arithmetic leaves (the default NaN, the infinities) are told from
/// integers, as f32.
class StepTrace {
public:
  StepTrace(rt::Session &session, const std::string &entry);

  const std::string &entry() const { return entry_.name(); }
  /// Executes the entry on what its bindings hold, and notes which instructions leave what is not finite even in a step
  /// that is sound: masks of infinity, say.
  rt::Status learn();
  /// Executes it and says which instruction is the first to leave what is not finite, but for those; without `learn`
  /// the first that leaves a NaN. Empty if there is none.
  rt::Expected<std::string> find();

private:
  /// Arena, first byte, value.
  using Key = std::tuple<uint32_t, uint64_t, uint64_t>;
  struct Found {
    uint64_t element = 0;
    double value = 0;
  };
  static Key keyOf(const plan::Slice &slice) { return {slice.arena(), slice.offset(), slice.value()}; }
  void addTypes(const google::protobuf::RepeatedPtrField<plan::Instruction> &instructions);
  std::optional<Found> look(const plan::Instruction &instruction, uint64_t round) const;
  std::optional<Found> look(const plan::Slice &slice, int64_t moved) const;

  rt::Session &session_;
  const plan::Entry &entry_;
  std::map<Key, plan::DType> types_;
  std::vector<bool> ordinary_; ///< by the order of execution
};

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_STEPTRACE_H
