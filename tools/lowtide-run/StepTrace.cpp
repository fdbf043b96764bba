//===- StepTrace.cpp - where a step first holds what is not finite ---------===//

#include "StepTrace.h"

#include "runtime/Element.h"
#include "runtime/checkpoint/Finite.h"
#include "runtime/devices/InstructionTime.h"

#include <cmath>
#include <cstring>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::run;

namespace {

/// "f32", "bf16", … as calls state it; f32 where they do not.
plan::DType callType(const plan::Call &call, const char *attribute, plan::DType otherwise) {
  for (const plan::Attribute &each : call.attributes())
    if (each.name() == attribute)
      return each.s() == "bf16"  ? plan::BF16
             : each.s() == "f16" ? plan::F16
             : each.s() == "f64" ? plan::F64
                                 : plan::F32;
  return otherwise;
}

/// The first word that is the NaN of x86 or of a constant, or an infinity.
std::optional<uint64_t> firstTelling(const uint8_t *data, uint64_t bytes) {
  for (uint64_t i = 0; i + 4 <= bytes; i += 4) {
    uint32_t word;
    std::memcpy(&word, data + i, sizeof word);
    word &= 0x7fffffff;
    if (word == 0x7fc00000 || word == 0x7f800000)
      return i / 4;
  }
  return std::nullopt;
}

std::string numberText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", std::isnan(value) ? std::fabs(value) : value);
  return text;
}

} // namespace

StepTrace::StepTrace(Session &session, const std::string &entry)
    : session_(session), entry_(*session.artifact().entry(entry)) {
  for (const plan::Binding &binding : entry_.bindings()) {
    plan::Slice last = binding.slice();
    types_[keyOf(last)] = binding.dtype();
    last.set_value(binding.final_value());
    types_[keyOf(last)] = binding.dtype();
  }
  addTypes(entry_.instructions());
}

void StepTrace::addTypes(const google::protobuf::RepeatedPtrField<plan::Instruction> &instructions) {
  for (const plan::Instruction &instruction : instructions) {
    if (instruction.has_repeat())
      addTypes(instruction.repeat().body());
    if (!instruction.has_call())
      continue;
    const plan::DType type = callType(instruction.call(), "dtype", plan::F32);
    for (const plan::Slice &slice : instruction.call().writes())
      types_.try_emplace(keyOf(slice), callType(instruction.call(), "result_dtype", type));
    // A product's first two operands; what follows may be of another type.
    for (int i = 0; i < std::min(2, instruction.call().reads_size()); ++i)
      types_.try_emplace(keyOf(instruction.call().reads(i)), type);
  }
}

std::optional<StepTrace::Found> StepTrace::look(const plan::Slice &slice, int64_t moved) const {
  // What waits in a file comes back before anything computes with it.
  if (session_.plan().arenas(static_cast<int>(slice.arena())).space() == plan::Arena::FILE)
    return std::nullopt;
  const uint8_t *data = session_.at(slice) + moved;
  auto known = types_.find(keyOf(slice));
  const plan::DType type = known == types_.end() ? plan::F32 : known->second;
  const std::optional<uint64_t> at =
      known == types_.end() ? firstTelling(data, slice.bytes()) : firstNotFinite(type, data, slice.bytes());
  if (!at)
    return std::nullopt;
  return Found{*at, loadElement(type, data + *at * elementBytes(type))};
}

std::optional<StepTrace::Found> StepTrace::look(const plan::Instruction &instruction, uint64_t round) const {
  if (instruction.has_copy())
    return look(instruction.copy().target(), static_cast<int64_t>(round) * instruction.copy().target_step());
  if (instruction.has_fill())
    return look(instruction.fill().target(), 0);
  std::optional<Found> found;
  auto lookAt = [&](const auto &writes) {
    for (const plan::Slice &slice : writes)
      if (!found)
        found = look(slice, 0);
  };
  if (instruction.has_launch())
    lookAt(instruction.launch().writes());
  else if (instruction.has_call())
    lookAt(instruction.call().writes());
  return found;
}

Status StepTrace::learn() {
  ordinary_.clear();
  return session_.observe(entry_.name(), [&](const plan::Instruction &instruction, uint64_t round) {
    ordinary_.push_back(look(instruction, round).has_value());
    return true;
  });
}

Expected<std::string> StepTrace::find() {
  size_t number = 0;
  std::string text;
  Status status = session_.observe(entry_.name(), [&](const plan::Instruction &instruction, uint64_t round) {
    const size_t at = number++;
    if (at < ordinary_.size() && ordinary_[at])
      return true;
    std::optional<Found> found = look(instruction, round);
    if (!found || (ordinary_.empty() && !std::isnan(found->value)))
      return true;
    InstructionTime what = describeInstruction(session_.plan(), instruction);
    text = "instruction " + std::to_string(at + 1) + " (" + printable(what.what) +
           (what.location.empty() ? ")" : ", of " + printable(what.location) + ")") +
           " is the first whose result holds " + numberText(found->value) + ", at element " +
           std::to_string(found->element);
    return false;
  });
  if (!status.isOk())
    return status;
  return text;
}
