//===- ProofReport.h - a comparison in words --------------------------------===//
#ifndef LOWTIDE_TOOLS_VERIFY_PROOFREPORT_H
#define LOWTIDE_TOOLS_VERIFY_PROOFREPORT_H

#include "Comparison.h"

#include <optional>
#include <string>
#include <vector>

namespace lowtide::verify {

/// What was compared, and what came of it.
struct ProofReport {
  std::string model, against; ///< as they were given
  std::string updates;        ///< "sgd lr=0.1"
  double tolerance = 0;
  Comparison comparison;
  /// Outputs of modules; nothing: they were not looked at.
  std::optional<std::vector<Row>> outputs;

  /// Of `outputs`, the first that differs; null: none does.
  const Row *firstOutput() const;
};

/// The tables: one line for each parameter, buffer and loss that has one, then what is first and what it comes to.
std::string writeTable(const ProofReport &report);
/// What to type next, one sentence an entry; empty where everything agrees.
std::vector<std::string> adviseOn(const ProofReport &report);
/// The same facts as one JSON object, with a line's end.
std::string writeJson(const ProofReport &report);

} // namespace lowtide::verify

#endif // LOWTIDE_TOOLS_VERIFY_PROOFREPORT_H
