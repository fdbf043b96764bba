//===- ScheduleOptions.h - the learning rate over time ----------*- C++ -*-===//
//
// What the user chose about the schedule, parsed from its flags. The runtime
// computes the rate before each step (runtime/plan.proto, Schedule).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Support/DeclaredOptions.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <map>
#include <string>
#include <vector>

namespace lowtide::train {

struct ScheduleOptions {
  std::string kind{defaultText("schedule")}; ///< see listSchedules
  double lr = defaultNumber("lr");
  int64_t warmupSteps = defaultWhole("warmup-steps"); ///< lr · (step + 1) / warmupSteps until then
  int64_t totalSteps = defaultWhole("total-steps");   ///< where a decay ends
  double minLr = defaultNumber("min-lr");
  std::map<std::string, double> options; ///< as set by the user: power, step_size, …
  std::vector<int64_t> milestones;       ///< multistep: steps at which the rate falls
  std::string curve;                     ///< one-cycle, wsd: cosine, linear, 1-sqrt; empty: cosine

  /// Whether a flag is one of these: schedule, lr, warmup_steps, total_steps, min_lr, milestones, curve, or an option.
  static bool hasFlag(llvm::StringRef name);
  /// Sets one flag of those from its text.
  llvm::Error set(llvm::StringRef name, llvm::StringRef value);
  /// Checks what no single flag can: ranges, flags that the kind lacks, decays without an end.
  llvm::Error finish();
  /// Whether every group's rate falls to min_lr itself, as to PyTorch's eta_min, and not to its part of it.
  bool endsAtOneRate() const;
  /// The module attribute `train.schedule`. After finish().
  mlir::DictionaryAttr getAttr(mlir::MLIRContext *context) const;
};

/// Names of all schedules.
llvm::SmallVector<llvm::StringRef> listSchedules();

} // namespace lowtide::train
