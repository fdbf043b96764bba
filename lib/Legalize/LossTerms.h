//===- LossTerms.h - the losses that --loss can ask for ---------*- C++ -*-===//
//
// PyTorch's formulas, on the outputs of a model and on arrays of the data.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Legalize/LossOption.h"
#include "lowtide/Legalize/LossText.h"

namespace lowtide {

/// Builds terms of a loss; arrays of the data that the model does not read yet become arguments.
class LossTerms {
public:
  LossTerms(LegalizeContext &context, llvm::ArrayRef<NamedOutput> outputs, llvm::StringRef text)
      : context(context), outputs(outputs), text(text) {}

  /// The scalar that all terms add up to; errors point into the text.
  mlir::FailureOr<mlir::Value> build(llvm::ArrayRef<LossTerm> terms);

private:
  /// An error at byte `column` of the text; always failure.
  mlir::LogicalResult fail(size_t column, const llvm::Twine &message, const llvm::Twine &remedy = "");
  mlir::FailureOr<nn::Expr> buildTerm(const LossTerm &term);
  mlir::FailureOr<nn::Expr> ofClasses(const LossTerm &term, nn::Expr output);
  mlir::FailureOr<nn::Expr> ofMixedLabels(const LossTerm &term, nn::Expr logits, nn::Expr target);
  mlir::FailureOr<nn::Expr> ofElements(const LossTerm &term, nn::Expr output);
  /// An option that weighs: a number, a list of `shape`'s last dimension, an input of the model that broadcasts to
  /// `shape`, or a new array of the type `fresh`, whose samples are counted by dimension `batchDim` (−1: by none).
  mlir::FailureOr<nn::Expr> findWeights(const LossTerm &term, llvm::StringRef option, llvm::ArrayRef<int64_t> shape,
                                        mlir::RankedTensorType fresh, int64_t batchDim);
  void warnOfProbabilities(const LossTerm &term, mlir::Value output);

  mlir::Value findBatch(llvm::StringRef name) const;
  const NamedOutput *findOutput(llvm::StringRef name) const;
  /// An argument for array `name` of the data; fails where the name is taken by a parameter.
  mlir::FailureOr<mlir::Value> addBatch(const LossName &name, mlir::RankedTensorType type, int64_t batchDim);

  LegalizeContext &context;
  llvm::ArrayRef<NamedOutput> outputs;
  llvm::StringRef text;
};

/// Prints `fault` of a loss's text with a caret below it; always failure.
mlir::LogicalResult reportLossFault(mlir::MLIRContext *context, llvm::StringRef text, const LossFault &fault);

/// The kind of loss that classifiers with such an output are trained by.
LossKind suggestLossKind(mlir::Value output);

} // namespace lowtide
