//===- OptionParsing.h - values of flags ------------------------*- C++ -*-===//
//
// Numbers, counts and choices as text, with errors that say what was found.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Support/NameList.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <string>
#include <type_traits>

namespace lowtide::train {

/// A number as a user would write it: 0.3, 1e-05; anything else as it is.
template <typename Arg> decltype(auto) asWritten(Arg &&arg) {
  if constexpr (std::is_same_v<std::decay_t<Arg>, double>) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format("%g", arg);
    return text;
  } else {
    return std::forward<Arg>(arg);
  }
}

template <typename... Args> llvm::Error refuse(const char *format, Args &&...args) {
  return llvm::createStringError(llvm::formatv(format, asWritten(std::forward<Args>(args))...).str());
}

inline llvm::Error parseNumber(llvm::StringRef flag, llvm::StringRef text, double &value) {
  if (text.trim().getAsDouble(value) || !std::isfinite(value))
    return refuse("{0}: '{1}' is not a finite number", flag, text);
  return llvm::Error::success();
}

inline llvm::Error parseCount(llvm::StringRef flag, llvm::StringRef text, int64_t &value) {
  if (text.trim().getAsInteger(10, value) || value < 0)
    return refuse("{0}: '{1}' is not a number of steps", flag, text);
  return llvm::Error::success();
}

inline llvm::Error parseChoice(llvm::StringRef flag, llvm::StringRef text, llvm::ArrayRef<llvm::StringRef> choices,
                               std::string &value) {
  if (!llvm::is_contained(choices, text))
    return refuse("{0}: '{1}' is none of {2}{3}", flag, text, llvm::join(choices, ", "), suggestName(text, choices));
  value = text.str();
  return llvm::Error::success();
}

} // namespace lowtide::train
