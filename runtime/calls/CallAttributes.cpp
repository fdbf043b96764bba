//===- CallAttributes.cpp - the attributes of library calls, read and checked ===//

#include "runtime/calls/CallAttributes.h"

#include <algorithm>
#include <cmath>

namespace lowtide::rt {
namespace {

bool parse(const std::string &name, plan::DType &value) {
  const std::pair<const char *, plan::DType> known[] = {
      {"f32", plan::F32}, {"f64", plan::F64}, {"f16", plan::F16}, {"bf16", plan::BF16}};
  for (const auto &[text, dtype] : known)
    if (name == text) {
      value = dtype;
      return true;
    }
  return false;
}

} // namespace

CallAttributes::CallAttributes(const plan::Call &call)
    : call_(call), used_(static_cast<size_t>(call.attributes_size())) {}

bool CallAttributes::has(const char *name) const {
  return std::any_of(call_.attributes().begin(), call_.attributes().end(),
                     [&](const plan::Attribute &attribute) { return attribute.name() == name; });
}

Status CallAttributes::integer(const char *name, int64_t &value, int64_t low, bool required) {
  const plan::Attribute *attribute = find(name);
  if (!attribute)
    return required ? refuseCall(std::string("attribute '") + name + "' is missing") : Status::ok();
  if (attribute->value_case() != plan::Attribute::kI || attribute->i() < low || attribute->i() > maxCount)
    return refuseCall(std::string("attribute '") + name + "' is not an integer from " + std::to_string(low) +
                      " to 2^40");
  value = attribute->i();
  return Status::ok();
}

Status CallAttributes::flag(const char *name, bool &value) {
  int64_t number = value;
  LOWTIDE_TRY(integer(name, number, 0, false));
  if (number > 1)
    return refuseCall(std::string("attribute '") + name + "' is neither 0 nor 1");
  value = number != 0;
  return Status::ok();
}

Status CallAttributes::real(const char *name, double &value) {
  const plan::Attribute *attribute = find(name);
  if (!attribute)
    return Status::ok();
  if (attribute->value_case() != plan::Attribute::kF || !std::isfinite(attribute->f()))
    return refuseCall(std::string("attribute '") + name + "' is not a finite number");
  value = attribute->f();
  return Status::ok();
}

Status CallAttributes::text(const char *name, std::string &value) {
  const plan::Attribute *attribute = find(name);
  if (!attribute)
    return Status::ok();
  if (attribute->value_case() != plan::Attribute::kS)
    return refuseCall(std::string("attribute '") + name + "' is not a string");
  value = attribute->s();
  return Status::ok();
}

Status CallAttributes::list(const char *name, std::vector<int64_t> &values, int64_t low, bool required) {
  const plan::Attribute *attribute = find(name);
  if (!attribute)
    return required ? refuseCall(std::string("attribute '") + name + "' is missing") : Status::ok();
  if (attribute->value_case() != plan::Attribute::kInts || attribute->ints().values_size() > 16)
    return refuseCall(std::string("attribute '") + name + "' is not a list of at most 16 integers");
  values.assign(attribute->ints().values().begin(), attribute->ints().values().end());
  for (int64_t value : values)
    if (value < low || value > maxCount)
      return refuseCall(std::string("attribute '") + name + "' holds a number outside " + std::to_string(low) +
                        " to 2^40");
  return Status::ok();
}

Status CallAttributes::dtypes(plan::DType &operands, plan::DType &result) {
  std::string name = "f32";
  LOWTIDE_TRY(text("dtype", name));
  if (!parse(name, operands))
    return refuseCall("dtype '" + printable(name) + "'; f32, f64, f16 and bf16 are offered");
  std::string resultName = name;
  LOWTIDE_TRY(text("result_dtype", resultName));
  if (!parse(resultName, result) || (result != operands && !(isNarrow(operands) && result == plan::F32)))
    return refuseCall("result_dtype '" + printable(resultName) + "' for operands of " + name +
                      "; it is theirs, or f32 for 16-bit operands");
  return Status::ok();
}

Status CallAttributes::allUsed() const {
  for (size_t i = 0; i < used_.size(); ++i)
    if (!used_[i])
      return refuseCall("attribute '" + printable(call_.attributes(static_cast<int>(i)).name()) +
                        "' is unknown or given twice");
  return Status::ok();
}

const plan::Attribute *CallAttributes::find(const char *name) {
  for (int i = 0; i < call_.attributes_size(); ++i)
    if (call_.attributes(i).name() == name) {
      used_[static_cast<size_t>(i)] = true;
      return &call_.attributes(i);
    }
  return nullptr;
}

} // namespace lowtide::rt
