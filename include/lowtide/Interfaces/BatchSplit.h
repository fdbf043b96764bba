//===- BatchSplit.h - how an op treats the samples of a batch ---*- C++ -*-===//
//
// The question that BatchInterface answers: given where the operands count samples, what becomes of each result when
// the op is computed for a part of the samples only?
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>
#include <string>

namespace lowtide {

/// Where a tensor counts samples: dimension `dim` has outer · samples · inner elements, in row-major order. A part of
/// the samples is the tensor with fewer samples there.
struct BatchPosition {
  int64_t dim = 0, outer = 1, inner = 1;
  /// The condition by which data select these rows; null where they are the samples' own. Each part of the samples
  /// makes a selection of its own: its rows are in an order of their own, and those of the whole are in no part's
  /// place.
  mlir::Value selection;
  /// Where not 0, the elements are numbers of rows, of which there are samples · named; a part numbers its own from 0.
  int64_t named = 0;
  /// By which condition data select the rows that are named; null where they are the samples' own.
  mlir::Value namedSelection;
  /// Of what an op needs: where not 0, its elements number rows of the whole batch, of which there are `rowBlocks`
  /// times all samples with so many each, and the op of a part needs them as numbers of the part's own rows; −1 for a
  /// row of another part.
  int64_t renumbered = 0, rowBlocks = 1;

  /// The position in dimension `dim` of another tensor with the same rows; its elements are no numbers of rows.
  BatchPosition at(int64_t dim) const { return {dim, outer, inner, selection}; }
  bool operator==(const BatchPosition &other) const = default;
  /// `dim` of the operand that is the number of the first sample: a scalar, not a tensor with samples.
  static constexpr int64_t firstSample = -1;
};

/// A question about one op, and its answer.
struct BatchSplit {
  enum class Kind : uint8_t {
    Same,      ///< does not depend on which samples there are
    Rows,      ///< counts samples at `position`
    Sum,       ///< the whole is the sum over the parts
    Statistic, ///< one value for each part, which says nothing about the whole
  };
  struct Result {
    Kind kind = Kind::Same;
    BatchPosition position;
  };

  BatchSplit(mlir::Operation *op, int64_t samples, llvm::ArrayRef<std::optional<BatchPosition>> operands, bool allSums)
      : op(op), samples(samples), allSums(allSums), operands(operands), required(op->getNumOperands()),
        results(op->getNumResults()) {}

  mlir::Operation *op;
  int64_t samples;
  /// No operand counts samples; each is a sum over the parts, and only the parts' terms are at hand. An op that is
  /// linear in its operands together answers Sum; any other leaves the results alone.
  bool allSums;
  /// Whether who asks takes `renumbered` into account; without it no op answers so.
  bool canRenumber = false;
  /// Nothing: does not count samples.
  llvm::ArrayRef<std::optional<BatchPosition>> operands;

  /// Where each operand must count samples; one that does not has all samples and must be cut there.
  llvm::SmallVector<std::optional<BatchPosition>> required;
  llvm::SmallVector<Result> results;
  /// Why there is no answer: continues "the op …".
  std::string reason;

  llvm::LogicalResult refuse(const llvm::Twine &why) {
    reason = why.str();
    return mlir::failure();
  }
  /// Every result is a sum.
  llvm::LogicalResult answerSums() {
    for (Result &result : results)
      result.kind = Kind::Sum;
    return mlir::success();
  }
};

} // namespace lowtide
