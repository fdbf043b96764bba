//===- TrainOptions.h - what the user chose about training ------*- C++ -*-===//
//
// Optimizer, learning-rate schedule and parameter groups, parsed from their
// flags.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/Train/ScheduleOptions.h"
#include "lowtide/Support/NameList.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/Error.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lowtide::train {

/// `pattern,pattern:option=value,option=value`: parameters whose name matches
/// get their own options; `optimizer=NAME` is one of them.
struct GroupRule {
  std::string text; ///< as written: the group's name
  std::vector<NamePattern> patterns;
  std::map<std::string, double> options; ///< options of the optimizer; lr is turned into lr_scale
  std::optional<double> rate;            ///< that lr
  std::string optimizer;                 ///< of these parameters; empty: as for all
  /// `moments`, `master`: codecs of what is stored (passes/TrainStateLayouts.cpp).
  std::map<std::string, std::string> layouts;

  /// A pattern with a dot or an asterisk is a glob over the whole name; one
  /// without is a glob over each component
  /// (`bias` matches `h.0.attn.bias`).
  bool matches(llvm::StringRef name) const;
};

/// Appends the patterns of a list: names and globs between commas (NameList.h).
llvm::Error parsePatterns(llvm::StringRef text, std::vector<NamePattern> &patterns);
/// Whether a pattern of a group, or of layers, means `name` (GroupRule::matches).
bool matchesLayer(const NamePattern &pattern, llvm::StringRef name);
/// "pattern 'x' matches nothing", or why it is none.
std::string describeUnmatched(const NamePattern &pattern);

struct TrainOptions {
  std::string optimizer{defaultText("optimizer")};   ///< name of a record (Optimizers.td)
  std::string convention{defaultText("convention")}; ///< or "onnx"
  std::map<std::string, double> options;             ///< as set by the user; the rest are the optimizer's defaults
  /// Optimizer of what `optimizer` leaves to another one (Muon: all but hidden matrices), and what differs there; empty
  /// name: as the record has it.
  std::string fallback;
  std::map<std::string, double> fallbackOptions;
  std::optional<double> fallbackRate; ///< its lr, of which fallbackOptions have a part of --lr
  ScheduleOptions schedule;
  std::vector<GroupRule> groups; ///< the first that matches wins

  /// Sets one flag from its text: optimizer, fallback (`adamw:lr=1e-4`),
  /// convention, what ScheduleOptions has, lists such as betas (two numbers),
  /// group (several, separated by ';'), or any option of an optimizer; `-` may stand for `_`.
  /// An empty value means 1 (`--nesterov`). Errors say what was found and what
  /// is possible.
  llvm::Error set(llvm::StringRef flag, llvm::StringRef value);
  /// Checks what no single flag can: ranges, decays that need total_steps,
  /// options that the optimizer lacks. `sgd` with a momentum becomes
  /// `momentum`, of groups and of the fallback, too. The train dialect must be loaded.
  llvm::Error finish(mlir::MLIRContext *context);

  /// The optimizer of a parameter; `rule` is null outside all groups. After finish().
  llvm::StringRef chooseOptimizer(const GroupRule *rule, bool isHiddenMatrix) const;
  /// Values of all options of an optimizer for a parameter. After finish().
  std::map<std::string, double> resolve(mlir::MLIRContext *context, llvm::StringRef optimizer,
                                        const GroupRule *rule) const;
  /// The learning rate of its own that the schedule of a parameter begins with; none: --lr, or a part of it (lr_scale).
  std::optional<double> findRate(llvm::StringRef optimizer, const GroupRule *rule) const;
  /// The first that matches a name of a parameter; null if none does.
  const GroupRule *findGroup(llvm::ArrayRef<llvm::StringRef> names) const;

  /// The module attributes `train.optimizer` and `train.schedule`.
  mlir::DictionaryAttr getOptimizerAttr(mlir::MLIRContext *context) const;
  mlir::DictionaryAttr getScheduleAttr(mlir::MLIRContext *context) const { return schedule.getAttr(context); }

private:
  llvm::Error checkGroup(mlir::MLIRContext *context, GroupRule &rule, llvm::StringRef asked);
};

} // namespace lowtide::train
