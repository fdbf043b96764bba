//===- DeclaredOptions.h - options of driver and passes ---------*- C++ -*-===//
//
// What DeclaredOptions.td says of each, for whoever holds a value: fields begin with its default.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string_view>

namespace lowtide {

/// A flag of the driver that passes have as an option, by the same name.
struct DeclaredOption {
  std::string_view name;
  std::string_view initial; ///< the default, as it is typed
  std::string_view help;
  std::string_view switchValue; ///< what it is where it stands alone; empty: it takes a value
};

#define GET_DeclaredOptions_IMPL
#include "lowtide/Support/DeclaredOptions.inc"

namespace detail {
// Not constant: a call of one ends the compilation, and its name says why.
void noOptionHasThisName();
void itsDefaultIsOfAnotherType();
} // namespace detail

/// The option of that name, which has a record.
consteval const DeclaredOption &declaredOption(std::string_view name) {
  for (const DeclaredOption &option : DeclaredOptions)
    if (option.name == name)
      return option;
  detail::noOptionHasThisName();
  return DeclaredOptions[0];
}

/// Its default.
consteval std::string_view defaultText(std::string_view name) { return declaredOption(name).initial; }

/// Its default, a whole number.
consteval int64_t defaultWhole(std::string_view name) {
  int64_t value = 0;
  for (char digit : declaredOption(name).initial) {
    if (digit < '0' || digit > '9')
      detail::itsDefaultIsOfAnotherType();
    value = value * 10 + (digit - '0');
  }
  return value;
}

/// Its default, a decimal fraction.
consteval double defaultNumber(std::string_view name) {
  double digits = 0, unit = declaredOption(name).initial.starts_with('-') ? -1 : 1;
  bool isFraction = false;
  for (char sign : declaredOption(name).initial) {
    if (sign == '-')
      continue;
    if (sign != '.' && (sign < '0' || sign > '9'))
      detail::itsDefaultIsOfAnotherType();
    if (sign == '.') {
      isFraction = true;
      continue;
    }
    digits = digits * 10 + (sign - '0');
    unit *= isFraction ? 10 : 1;
  }
  return digits / unit;
}

/// Its default, true or false.
consteval bool defaultSwitch(std::string_view name) {
  const std::string_view initial = declaredOption(name).initial;
  if (initial != "true" && initial != "false")
    detail::itsDefaultIsOfAnotherType();
  return initial == "true";
}

} // namespace lowtide
