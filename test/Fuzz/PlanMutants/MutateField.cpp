//===- MutateField.cpp - any field of any message --------------------------===//

#include "Mutations.h"

#include <algorithm>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <vector>

using namespace google::protobuf;

namespace lowtide::fuzz {

uint64_t changedNumber(uint64_t value, Dice &dice) {
  static constexpr uint64_t edges[] = {0,
                                       1,
                                       2,
                                       7,
                                       63,
                                       64,
                                       65,
                                       4096,
                                       0x7fffffff,
                                       0x80000000,
                                       0xffffffff,
                                       0x100000000,
                                       uint64_t(1) << 46,
                                       (uint64_t(1) << 62) + 1,
                                       uint64_t(1) << 63,
                                       ~uint64_t(0) - 63,
                                       ~uint64_t(0)};
  switch (dice.below(8)) {
  case 0:
    return value + 1;
  case 1:
    return value - 1;
  case 2:
    return value * 2;
  case 3:
    return value / 2;
  case 4:
    return value + (uint64_t(1) << dice.below(12));
  case 5:
    return value - (uint64_t(1) << dice.below(12));
  case 6:
    return value ^ (uint64_t(1) << dice.below(64));
  default:
    return edges[dice.below(std::size(edges))];
  }
}

namespace {

/// A place where a field of a message is set.
struct Place {
  Message *message;
  const FieldDescriptor *field;
};

/// A walk that chooses one of all places with equal chance, in one pass (reservoir of one).
class Choice {
public:
  explicit Choice(Dice &dice) : dice_(dice) {}
  void visit(Message &message) {
    std::vector<const FieldDescriptor *> fields;
    message.GetReflection()->ListFields(message, &fields);
    for (const FieldDescriptor *field : fields) {
      if (dice_.below(++seen_) == 0)
        chosen = {&message, field};
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
        continue;
      const Reflection &reflection = *message.GetReflection();
      if (!field->is_repeated()) {
        visit(*reflection.MutableMessage(&message, field));
        continue;
      }
      for (int i = 0; i < reflection.FieldSize(message, field); ++i)
        visit(*reflection.MutableRepeatedMessage(&message, field, i));
    }
  }
  Place chosen{};

private:
  Dice &dice_;
  uint64_t seen_ = 0;
};

std::string changedText(std::string text, Dice &dice) {
  switch (dice.below(4)) {
  case 0:
    return {};
  case 1:
    return text + (dice.oneIn(2) ? "_0" : "\n");
  case 2:
    if (!text.empty())
      text[dice.below(text.size())] = static_cast<char>(dice.below(128));
    return text;
  default: {
    static constexpr const char *known[] = {"train",     "lr",  "step", "seed", "row",       "gemm", "conv",
                                            "attention", "f32", "bf16", "cpu",  "reference", "loss"};
    return known[dice.below(std::size(known))];
  }
  }
}

bool changeRepeated(Message &message, const FieldDescriptor *field, Dice &dice) {
  const Reflection &reflection = *message.GetReflection();
  const int size = reflection.FieldSize(message, field), at = static_cast<int>(dice.below(static_cast<uint64_t>(size)));
  switch (dice.below(3)) {
  case 0:
    reflection.SwapElements(&message, field, at, size - 1);
    reflection.RemoveLast(&message, field);
    return true;
  case 1:
    reflection.SwapElements(&message, field, at, static_cast<int>(dice.below(static_cast<uint64_t>(size))));
    return true;
  default:
    break;
  }
  switch (field->cpp_type()) {
  case FieldDescriptor::CPPTYPE_MESSAGE: {
    std::unique_ptr<Message> copy(reflection.GetRepeatedMessage(message, field, at).New());
    copy->CopyFrom(reflection.GetRepeatedMessage(message, field, at));
    reflection.AddMessage(&message, field)->CopyFrom(*copy);
    return true;
  }
  case FieldDescriptor::CPPTYPE_INT64: {
    const auto old = static_cast<uint64_t>(reflection.GetRepeatedInt64(message, field, at));
    reflection.SetRepeatedInt64(&message, field, at, static_cast<int64_t>(changedNumber(old, dice)));
    return true;
  }
  case FieldDescriptor::CPPTYPE_STRING:
    reflection.SetRepeatedString(&message, field, at,
                                 changedText(reflection.GetRepeatedString(message, field, at), dice));
    return true;
  default:
    return false;
  }
}

} // namespace

bool changeAnyField(Message &message, Dice &dice) {
  Choice choice(dice);
  choice.visit(message);
  if (!choice.chosen.message)
    return false;
  Message &in = *choice.chosen.message;
  const FieldDescriptor *field = choice.chosen.field;
  const Reflection &reflection = *in.GetReflection();
  if (field->is_repeated())
    return !field->is_map() && changeRepeated(in, field, dice);
  if (dice.oneIn(6)) {
    reflection.ClearField(&in, field);
    return true;
  }
  switch (field->cpp_type()) {
  case FieldDescriptor::CPPTYPE_UINT32:
    reflection.SetUInt32(&in, field, static_cast<uint32_t>(changedNumber(reflection.GetUInt32(in, field), dice)));
    return true;
  case FieldDescriptor::CPPTYPE_UINT64:
    reflection.SetUInt64(&in, field, changedNumber(reflection.GetUInt64(in, field), dice));
    return true;
  case FieldDescriptor::CPPTYPE_INT64:
    reflection.SetInt64(
        &in, field, static_cast<int64_t>(changedNumber(static_cast<uint64_t>(reflection.GetInt64(in, field)), dice)));
    return true;
  case FieldDescriptor::CPPTYPE_ENUM:
    reflection.SetEnumValue(&in, field, static_cast<int>(dice.below(16)));
    return true;
  case FieldDescriptor::CPPTYPE_DOUBLE: {
    static constexpr double numbers[] = {0, -0.0, 1, -1, 0.5, 1e300, -1e300, 1e-300, 65536};
    reflection.SetDouble(&in, field, numbers[dice.below(std::size(numbers))]);
    return true;
  }
  case FieldDescriptor::CPPTYPE_BOOL:
    reflection.SetBool(&in, field, !reflection.GetBool(in, field));
    return true;
  case FieldDescriptor::CPPTYPE_STRING:
    reflection.SetString(&in, field, changedText(reflection.GetString(in, field), dice));
    return true;
  default:
    return false;
  }
}

} // namespace lowtide::fuzz
