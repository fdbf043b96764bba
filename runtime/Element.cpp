//===- Element.cpp - single elements of any type ---------------------------===//

#include "runtime/Element.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>

namespace lowtide::rt {
namespace {

template <typename T> double loadAs(const void *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}
template <typename T, typename From> void storeAs(void *to, From value) {
  T narrowed = static_cast<T>(value);
  std::memcpy(to, &narrowed, sizeof narrowed);
}

double halfToDouble(uint16_t bits) {
  uint64_t magnitude = bits & 0x7fff;
  // The same fields at a double's places, with an exponent that is too small by 2^1008; exact below normal numbers too.
  double value = magnitude < 0x7c00    ? std::bit_cast<double>(magnitude << 42) * 0x1p1008
                 : magnitude == 0x7c00 ? INFINITY
                                       : NAN;
  return bits >> 15 ? -value : value;
}

uint16_t doubleToHalf(double value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  double magnitude = std::fabs(value);
  if (std::isnan(value))
    return sign | 0x7e00;
  if (magnitude >= 65520)
    return sign | 0x7c00;
  // Below normal numbers the last place of a half is 2^-24, that of a double from 2^28 on.
  if (magnitude < 0x1p-14)
    return static_cast<uint16_t>(sign |
                                 (std::bit_cast<uint64_t>(magnitude + 0x1p28) - std::bit_cast<uint64_t>(0x1p28)));
  // To nearest, ties to even, of the 42 bits that go; a carry goes into the exponent by itself.
  uint64_t fields = std::bit_cast<uint64_t>(magnitude);
  fields += (uint64_t(1) << 41) - 1 + (fields >> 42 & 1);
  return static_cast<uint16_t>(sign | ((fields >> 42) - (uint64_t(1008) << 10)));
}

uint16_t doubleToBrainFloat(double value) {
  auto single = static_cast<float>(value);
  uint32_t bits = std::bit_cast<uint32_t>(single);
  if (std::isnan(value))
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

} // namespace

double loadElement(plan::DType dtype, const void *from) {
  uint16_t half = 0;
  switch (dtype) {
  case plan::F64:
    return loadAs<double>(from);
  case plan::F32:
    return loadAs<float>(from);
  case plan::F16:
    std::memcpy(&half, from, 2);
    return halfToDouble(half);
  case plan::BF16:
    std::memcpy(&half, from, 2);
    return std::bit_cast<float>(uint32_t(half) << 16);
  case plan::I64:
    return loadAs<int64_t>(from);
  case plan::I32:
    return loadAs<int32_t>(from);
  case plan::I16:
    return loadAs<int16_t>(from);
  case plan::I8:
    return loadAs<int8_t>(from);
  case plan::U64:
    return loadAs<uint64_t>(from);
  case plan::U32:
    return loadAs<uint32_t>(from);
  case plan::U16:
    return loadAs<uint16_t>(from);
  case plan::U8:
  case plan::BOOL:
    return loadAs<uint8_t>(from);
  default:
    return NAN;
  }
}

void storeElement(plan::DType dtype, void *to, double value) {
  uint16_t half;
  switch (dtype) {
  case plan::F64:
    return storeAs<double>(to, value);
  case plan::F32:
    return storeAs<float>(to, value);
  case plan::F16:
    half = doubleToHalf(value);
    std::memcpy(to, &half, 2);
    return;
  case plan::BF16:
    half = doubleToBrainFloat(value);
    std::memcpy(to, &half, 2);
    return;
  default:
    return storeInteger(dtype, to, static_cast<int64_t>(value));
  }
}

void storeInteger(plan::DType dtype, void *to, int64_t value) {
  switch (dtype) {
  case plan::I64:
  case plan::U64:
    return storeAs<int64_t>(to, value);
  case plan::I32:
  case plan::U32:
    return storeAs<int32_t>(to, value);
  case plan::I16:
  case plan::U16:
    return storeAs<int16_t>(to, value);
  case plan::I8:
  case plan::U8:
    return storeAs<int8_t>(to, value);
  case plan::BOOL:
    return storeAs<int8_t>(to, value != 0);
  default:
    return storeElement(dtype, to, static_cast<double>(value));
  }
}

void fillElements(plan::DType dtype, void *to, uint64_t bytes, double value) {
  uint64_t size = elementBytes(dtype);
  char element[8];
  storeElement(dtype, element, value);
  for (uint64_t at = 0; at + size <= bytes; at += size)
    std::memcpy(static_cast<char *>(to) + at, element, size);
}

static constexpr struct {
  plan::DType dtype;
  const char *name;
} names[] = {{plan::F64, "F64"}, {plan::F32, "F32"}, {plan::F16, "F16"}, {plan::BF16, "BF16"}, {plan::I64, "I64"},
             {plan::I32, "I32"}, {plan::I16, "I16"}, {plan::I8, "I8"},   {plan::U8, "U8"},     {plan::BOOL, "BOOL"},
             {plan::U16, "U16"}, {plan::U32, "U32"}, {plan::U64, "U64"}};

const char *dtypeName(plan::DType dtype) {
  for (const auto &entry : names)
    if (entry.dtype == dtype)
      return entry.name;
  return "?";
}

plan::DType dtypeFromName(std::string_view name) {
  for (const auto &entry : names)
    if (name == entry.name)
      return entry.dtype;
  return plan::DTYPE_UNSPECIFIED;
}

} // namespace lowtide::rt
