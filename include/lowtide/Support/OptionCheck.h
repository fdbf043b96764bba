//===- OptionCheck.h - what the text of an option has to be -----*- C++ -*-===//
//
// One checker for flags, keys of the configuration file, requests and options of passes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lowtide {

/// What a text has to be.
struct OptionCheck {
  enum class Kind {
    Positive,    ///< a finite number above 0
    NonNegative, ///< a finite number of at least 0
    Rate,        ///< a number from 0 to 1
    Range,       ///< a whole number from `low` to `high`
    Words,       ///< one of `words`
    Custom,      ///< what `custom` says
  };
  Kind kind;
  std::vector<std::string> words = {};
  int64_t low = 0, high = 0;
  /// What is wrong with a text; empty: nothing.
  std::function<std::string(const std::string &text)> custom = {};
  /// A text that is right in any case, as a default is; empty: none.
  std::string accepted = {};

  /// The same of any kind.
  std::string findFault(const std::string &text) const;
};

} // namespace lowtide
