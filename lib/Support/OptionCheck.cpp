//===- OptionCheck.cpp - what the text of an option has to be ---*- C++ -*-===//

#include "lowtide/Support/OptionCheck.h"
#include "lowtide/Support/NameList.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace lowtide;

std::string OptionCheck::findFault(const std::string &text) const {
  if (!accepted.empty() && text == accepted)
    return "";
  double value = 0;
  int64_t whole = 0;
  const bool isNumber = !llvm::StringRef(text).getAsDouble(value) && std::isfinite(value);
  auto fault = [&](bool isGood, const std::string &what) {
    return isGood ? std::string() : "must be " + what + ", not '" + text + "'";
  };
  switch (kind) {
  case Kind::Positive:
    return fault(isNumber && value > 0, "a number above 0");
  case Kind::NonNegative:
    return fault(isNumber && value >= 0, "a number of at least 0");
  case Kind::Rate:
    return fault(isNumber && value >= 0 && value <= 1, "a rate from 0 to 1");
  case Kind::Range:
    return fault(!llvm::StringRef(text).getAsInteger(10, whole) && whole >= low && whole <= high,
                 "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  case Kind::Words:
    if (llvm::is_contained(words, text))
      return "";
    return "'" + text + "' is none of " + llvm::join(words, ", ") +
           suggestName(text, llvm::SmallVector<llvm::StringRef>(words.begin(), words.end()));
  case Kind::Custom:
    return custom(text);
  }
  return "";
}
