//===- OptionValues.h - the values of declared options ----------*- C++ -*-===//
//
// A member for each record of DeclaredOptions.td, which begins with its default.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lowtide {

/// What options say, as plain data: texts as they are written, for whoever reads them to check and parse.
struct OptionValues {
#include "lowtide/Support/OptionValues.inc"

  std::map<std::string, std::string> optimizerOptions; ///< betas, eps, weight_decay, …
  std::map<std::string, std::string> scheduleOptions;  ///< power, step_size, …
};

} // namespace lowtide
