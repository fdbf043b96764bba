//===- Legalize.h - from the onnx dialect to nn -----------------*- C++ -*-===//
//
// One forward walk over the nodes of a model: every operator is given its meaning in nn ops, on static shapes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Support/Failure.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/ArrayRef.h"

#include <optional>
#include <string>
#include <vector>

namespace lowtide {

/// What becomes of operators that behave differently in training.
enum class TrainingMode {
  Train, ///< batch norm with trained scale and dropout in training form are in training form
  Eval,  ///< both have inference semantics
  AsIs,  ///< as the file says
};

/// A node that was not legalized.
struct Refusal {
  std::string domain, op;
  int64_t version;
  std::string reason;
  /// The module that the node came from, or its own name.
  std::string place;
  /// The node contradicts its operator's definition; otherwise it needs what is not implemented.
  bool isMalformed;
};

struct LegalizeOptions {
  TrainingMode mode = TrainingMode::Train;
  /// Overrides the ratio of every dropout; 0 removes them.
  std::optional<double> dropout;
  /// Batch norms that keep their running statistics while others train: names and globs of layers, with commas.
  std::string frozenNorms;
  /// `cross_entropy(logits, labels, label_smoothing=0.1) + 0.3*mse(output, target)` (LossText.h), or the name of an
  /// output that is the loss; empty: the file's own.
  std::string loss;
  /// Outputs that the file does not have, and that are only looked at: none of them is taken for its loss.
  std::vector<std::string> watched;
  /// Name of the function that is made.
  std::string entry = "forward";
  /// Whether a model without a loss is refused.
  bool requireLoss = false;
  /// When given, refused nodes are listed here and not reported; nodes that depend on them are listed too if their
  /// operator alone decides.
  std::vector<Refusal> *refusals = nullptr;
};

/// Legalizes `model` (as the importer writes it) into a new function beside it. All nodes that cannot be legalized are
/// reported together, grouped by operator and reason. `failure`, when given, says of which kind the failure was:
/// unsupported operators or variants, a file that contradicts itself, or an option that does not fit it.
mlir::FailureOr<mlir::func::FuncOp> legalizeModel(mlir::func::FuncOp model, const LegalizeOptions &options,
                                                  FailureKind *failure = nullptr);

/// Losses that a model without one could be trained by, as `LegalizeOptions::loss` takes them, likely ones first.
/// `forward` is what `legalizeModel` made of it.
std::vector<std::string> suggestLosses(mlir::func::FuncOp forward);

/// Operators that have a rule, for the documentation: "Add", "ai.onnx.ml.X" … in alphabetical order.
std::vector<std::string> listLegalOperators();

} // namespace lowtide
