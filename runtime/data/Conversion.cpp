//===- Conversion.cpp - numbers as files have them, as steps read them -----===//

#include "runtime/data/Conversion.h"

#include "runtime/Element.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace lowtide::rt {
namespace {

template <typename T> T load(const uint8_t *from, int64_t i) {
  T value;
  std::memcpy(&value, from + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}
template <typename T> void store(uint8_t *to, int64_t i, T value) {
  std::memcpy(to + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
}

template <typename From, typename To>
int64_t toInteger(const uint8_t *from, uint8_t *to, int64_t count, const Conversion &) {
  for (int64_t i = 0; i < count; ++i) {
    From value = load<From>(from, i);
    if (!std::in_range<To>(value))
      return i;
    store(to, i, static_cast<To>(value));
  }
  return count;
}

template <typename From> int64_t toBool(const uint8_t *from, uint8_t *to, int64_t count, const Conversion &) {
  for (int64_t i = 0; i < count; ++i) {
    From value = load<From>(from, i);
    if (value != 0 && value != 1)
      return i;
    to[i] = static_cast<uint8_t>(value);
  }
  return count;
}

template <typename From, typename To>
int64_t toFloat(const uint8_t *from, uint8_t *to, int64_t count, const Conversion &conversion) {
  // Factors are applied in f64: what a file has of 8 or 16 bits is then divided with one rounding, as numpy does.
  const Scale &scale = conversion.scale();
  const bool isScaled = !scale.isOne();
  for (int64_t i = 0; i < count; ++i) {
    From value = load<From>(from, i);
    To result = isScaled ? static_cast<To>(scale.of(static_cast<double>(value))) : static_cast<To>(value);
    if constexpr (std::is_floating_point_v<From>)
      if (std::isinf(result) && std::isfinite(value))
        return i;
    store(to, i, result);
  }
  return count;
}

/// The same where one of the two types has 16 bits.
int64_t toAnyFloat(const uint8_t *from, uint8_t *to, int64_t count, const Conversion &conversion) {
  const plan::DType source = conversion.from(), target = conversion.to();
  const uint64_t read = elementBytes(source), written = elementBytes(target);
  for (int64_t i = 0; i < count; ++i) {
    double value = conversion.scale().of(loadElement(source, from + static_cast<uint64_t>(i) * read));
    uint8_t *place = to + static_cast<uint64_t>(i) * written;
    storeElement(target, place, value);
    if (std::isfinite(value) && !std::isfinite(loadElement(target, place)))
      return i;
  }
  return count;
}

/// Calls `select` with a value of the type that holds an element; not for 16-bit floats.
template <typename Select> auto withType(plan::DType dtype, Select select) {
  switch (dtype) {
  case plan::F64:
    return select(double());
  case plan::F32:
    return select(float());
  case plan::I64:
    return select(int64_t());
  case plan::I32:
    return select(int32_t());
  case plan::I16:
    return select(int16_t());
  case plan::I8:
    return select(int8_t());
  case plan::U16:
    return select(uint16_t());
  case plan::U32:
    return select(uint32_t());
  case plan::U64:
    return select(uint64_t());
  default:
    return select(uint8_t()); // bytes and booleans
  }
}

bool isNarrow(plan::DType dtype) { return dtype == plan::F16 || dtype == plan::BF16; }

bool readNumber(std::string_view text, double &value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

} // namespace

bool isFloat(plan::DType dtype) {
  return dtype == plan::F64 || dtype == plan::F32 || dtype == plan::F16 || dtype == plan::BF16;
}

std::string elementText(plan::DType dtype, const uint8_t *from) {
  if (isNarrow(dtype) || isFloat(dtype)) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", loadElement(dtype, from));
    return text;
  }
  return withType(dtype, [&](auto type) { return std::to_string(load<decltype(type)>(from, 0)); });
}

Expected<Scale> Scale::parse(const std::string &text) {
  Scale scale;
  size_t slash = text.find('/');
  bool good = readNumber(std::string_view(text).substr(0, slash), scale.numerator);
  if (good && slash != std::string::npos)
    good = readNumber(std::string_view(text).substr(slash + 1), scale.denominator);
  if (!good || scale.denominator == 0 || scale.numerator == 0)
    return Status(StatusCode::Usage,
                  "'" + printable(text) + "' is no factor; write a number or a quotient: 0.5, 1/255");
  return scale;
}

std::string Scale::str() const {
  char text[64];
  if (denominator == 1)
    std::snprintf(text, sizeof text, "%.17g", numerator);
  else
    std::snprintf(text, sizeof text, "%.9g/%.9g", numerator, denominator);
  return text;
}

Conversion::Function Conversion::select(plan::DType from, plan::DType to) {
  if (isFloat(to)) {
    if (isNarrow(from) || isNarrow(to))
      return toAnyFloat;
    return withType(from, [&](auto source) -> Function {
      using From = decltype(source);
      return to == plan::F32 ? toFloat<From, float> : toFloat<From, double>;
    });
  }
  return withType(from, [&](auto source) -> Function {
    using From = decltype(source);
    if constexpr (std::is_integral_v<From>) {
      if (to == plan::BOOL)
        return toBool<From>;
      return withType(to, [](auto target) -> Function {
        using To = decltype(target);
        if constexpr (std::is_integral_v<To>)
          return toInteger<From, To>;
        return nullptr;
      });
    }
    return nullptr;
  });
}

Expected<Conversion> Conversion::create(plan::DType from, plan::DType to, Scale scale) {
  Conversion conversion;
  conversion.from_ = from, conversion.to_ = to, conversion.scale_ = scale;
  if (!scale.isOne() && !isFloat(to))
    return Status(StatusCode::Usage, "the step reads " + describe(to) + ", which no factor is applied to");
  if (from == to && scale.isOne())
    return conversion;
  if (isFloat(from) && !isFloat(to))
    return badInput("floats are not made integers: save it with .astype('" + describe(to) + "')");
  conversion.function_ = select(from, to);
  return conversion;
}

int64_t Conversion::convert(const uint8_t *from, uint8_t *to, int64_t count) const {
  if (function_)
    return function_(from, to, count, *this);
  std::memcpy(to, from, static_cast<uint64_t>(count) * elementBytes(from_));
  return count;
}

} // namespace lowtide::rt
