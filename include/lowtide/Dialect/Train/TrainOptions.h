//===- TrainOptions.h - what the user chose about training ------*- C++ -*-===//
//
// Optimizer, learning-rate schedule and parameter groups, parsed from their
// flags.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Support/NameList.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/Error.h"
#include <map>
#include <string>
#include <vector>

namespace lowtide::train {

/// Learning rate over time; the runtime computes it before each step
/// (runtime/plan.proto, Schedule).
struct ScheduleOptions {
  std::string kind = "constant"; ///< constant, linear, cosine
  double lr = 1e-3;
  int64_t warmupSteps = 0; ///< lr · (step + 1) / warmupSteps until then
  int64_t totalSteps = 0;  ///< linear, cosine: minLr from this step on
  double minLr = 0.0;
};

/// `pattern,pattern:option=value,option=value`: parameters whose name matches
/// get their own options.
struct GroupRule {
  std::string text; ///< as written: the group's name
  std::vector<NamePattern> patterns;
  std::map<std::string, double> options; ///< options of the optimizer; lr is turned into lr_scale

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
  std::string optimizer = "adamw";       ///< sgd, momentum, adagrad, adam, adamw
  std::string convention = "torch";      ///< or "onnx"
  std::map<std::string, double> options; ///< as set by the user; the rest are the optimizer's defaults
  ScheduleOptions schedule;
  std::vector<GroupRule> groups; ///< the first that matches wins

  /// Sets one flag from its text: optimizer, convention, lr, betas (two
  /// numbers), schedule, warmup_steps, total_steps, min_lr, group (several,
  /// separated by ';'), or any option of an optimizer; `-` may stand for `_`.
  /// An empty value means 1 (`--nesterov`). Errors say what was found and what
  /// is possible.
  llvm::Error set(llvm::StringRef flag, llvm::StringRef value);
  /// Checks what no single flag can: ranges, decays that need total_steps,
  /// options that the optimizer lacks. `sgd` with a momentum becomes
  /// `momentum`. The train dialect must be loaded.
  llvm::Error finish(mlir::MLIRContext *context);

  /// Values of all options for a parameter; `rule` is null outside all groups.
  /// After finish().
  std::map<std::string, double> resolve(mlir::MLIRContext *context, const GroupRule *rule) const;
  /// Null if none matches.
  const GroupRule *findGroup(llvm::StringRef parameter) const;

  /// The module attributes `train.optimizer` and `train.schedule`.
  mlir::DictionaryAttr getOptimizerAttr(mlir::MLIRContext *context) const;
  mlir::DictionaryAttr getScheduleAttr(mlir::MLIRContext *context) const;
};

} // namespace lowtide::train
