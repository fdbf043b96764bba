//===- NumberChecks.cpp - which numbers a flag takes ------------*- C++ -*-===//

#include "NumberChecks.h"
#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>

using namespace lowtide;

/// Finite numbers that `accepts`; `words` say which those are, `kind` does after the flag in --help-all.
static CLI::Validator numbers(bool (*accepts)(double), const char *words, const char *kind) {
  return CLI::Validator(
      [=](std::string &text) {
        double value;
        const bool good = CLI::detail::lexical_cast(text, value) && std::isfinite(value) && accepts(value);
        return good ? std::string() : std::string("must be ") + words + ", not '" + text + "'";
      },
      kind);
}

CLI::Validator config::positive() {
  return numbers([](double value) { return value > 0; }, "a number above 0", "POSITIVE");
}

CLI::Validator config::nonNegative() {
  return numbers([](double value) { return value >= 0; }, "a number of at least 0", "NONNEGATIVE");
}

CLI::Validator config::wholeNumber(int64_t low, int64_t high) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  const std::string from = std::to_string(low), range = from + " to " + std::to_string(high);
  const std::string words = high < most ? " from " + range : low > least ? " of at least " + from : "";
  return CLI::Validator(
      [=](std::string &text) {
        int64_t value;
        const char *end = text.data() + text.size();
        auto [stop, error] = std::from_chars(text.data(), end, value);
        const bool good = error == std::errc() && stop == end && value >= low && value <= high;
        return good ? std::string() : "must be a whole number" + words + ", not '" + text + "'";
      },
      high < most ? "INT in [" + from + " - " + std::to_string(high) + "]" : "");
}

CLI::Validator config::rate() {
  return numbers([](double value) { return value >= 0 && value <= 1; }, "a rate from 0 to 1", "FLOAT in [0 - 1]");
}
