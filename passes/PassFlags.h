//===- PassFlags.h - passes with the values of their flags ------*- C++ -*-===//
//
// `create<Pass>(values)` makes a pass whose options are those of the flags that it reads, `setFlags` sets them alone.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Passes.h"
#include "lowtide/Support/OptionValues.h"
#include "llvm/ADT/StringExtras.h"
#include <charconv>

namespace lowtide {

/// A value as text that reads back as the same: what options of passes take.
inline std::string formatOption(const std::string &text) { return text; }
inline std::string formatOption(bool isOn) { return isOn ? "true" : "false"; }
inline std::string formatOption(int64_t number) { return std::to_string(number); }
inline std::string formatOption(double number) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), number).ptr);
}
inline std::string formatOption(const std::vector<std::string> &rules) { return llvm::join(rules, ";"); }
/// "eps=1e-8;weight_decay=0.1"
inline std::string formatOption(const std::map<std::string, std::string> &values) {
  std::vector<std::string> settings;
  for (const auto &[name, value] : values)
    settings.push_back(name + "=" + value);
  return formatOption(settings);
}

#include "PassFlags.inc"

/// Options of a pass, with the values of its flags.
template <typename Options> Options takeFlags(const OptionValues &values) {
  Options options;
  setFlags(options, values);
  return options;
}

} // namespace lowtide
