//===- Rules.h - the table of legalization rules ----------------*- C++ -*-===//
//
// One rule per ONNX operator; each family's file registers its own.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Legalize/NodeView.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace lowtide {

using Rule = mlir::LogicalResult (*)(NodeView &node);

/// Whether an operator may sum, compare or scatter rows of which data decide the number (Legalize/SelectedRows.h). Its
/// rule must take the number of rows from there, not from the shape.
enum class SelectedMeet : bool { No, Yes };

class RuleTable {
public:
  /// All rules.
  static const RuleTable &get();

  /// A rule of the standard domain, or "domain.Name".
  void add(llvm::StringRef name, Rule rule, SelectedMeet meet = SelectedMeet::No) {
    rules[name] = rule;
    if (meet == SelectedMeet::Yes)
      meeting.insert(name);
  }
  bool mayRowsMeet(llvm::StringRef domain, llvm::StringRef name) const;
  /// Null when there is none. `ai.onnx` and the empty domain are the same.
  Rule find(llvm::StringRef domain, llvm::StringRef name) const;
  /// An operator that is known and deliberately refused, with the reason.
  void addRefusal(llvm::StringRef name, llvm::StringRef reason) { refusals[name] = reason.str(); }
  std::optional<std::string> findRefusal(llvm::StringRef domain, llvm::StringRef name) const;
  const llvm::StringMap<Rule> &all() const { return rules; }

private:
  llvm::StringMap<Rule> rules;
  llvm::StringMap<std::string> refusals;
  llvm::StringSet<> meeting;
};

void addElementwiseRules(RuleTable &table);
void addActivationRules(RuleTable &table);
void addComparisonRules(RuleTable &table);
void addMovementRules(RuleTable &table);
void addPadRules(RuleTable &table);
void addShapeRules(RuleTable &table);
void addSelectionRules(RuleTable &table);
void addReductionRules(RuleTable &table);
void addOrderingRules(RuleTable &table);
void addStateRules(RuleTable &table);
void addDeterminantRules(RuleTable &table);
void addContractionRules(RuleTable &table);
void addConvolutionRules(RuleTable &table);
void addPoolingRules(RuleTable &table);
void addPreparationRules(RuleTable &table);
void addNormalizationRules(RuleTable &table);
void addLossRules(RuleTable &table);
void addIndexingRules(RuleTable &table);
void addRandomRules(RuleTable &table);
void addControlRules(RuleTable &table);
void addLoopRules(RuleTable &table);
void addSampleRules(RuleTable &table);
void addSequenceRules(RuleTable &table);
void addAttentionRules(RuleTable &table);
void addResizeRules(RuleTable &table);
void addRecurrentRules(RuleTable &table);
void addContribRules(RuleTable &table);
void addContribImageRules(RuleTable &table);
void addTrainingRules(RuleTable &table);
void addContribAttentionRules(RuleTable &table);
void addSpectralRules(RuleTable &table);
void addRegionRules(RuleTable &table);
void addDeformableRules(RuleTable &table);
void addQuantizedRules(RuleTable &table);
void addRefusals(RuleTable &table);

} // namespace lowtide
