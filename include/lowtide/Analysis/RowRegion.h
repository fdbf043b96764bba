//===- RowRegion.h - what is computed of a product row by row ---*- C++ -*-===//
//
// The ops between a product with many columns (logits) and what is small again: losses, gradients. Where all of them
// treat rows one by one, they can be computed for some rows after others, and nothing as large as the product is held.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Analysis/BatchTracking.h"

namespace lowtide {

/// Why a product is held whole.
enum class WholeReason : uint8_t {
  None,       ///< it need not be
  NoProduct,  ///< what a loss reads is made of no product of rows with one matrix
  FewColumns, ///< there are no more columns (classes) than features
  SmallGain,  ///< it is not four times as large as the matrix, whose gradient is as large in any case
  Output,     ///< the step returns it
  MixesRows,  ///< an op that reads it combines rows
  NoDivisor,  ///< its rows do not fall into equal tiles
  NotReduced, ///< nothing small is made of it: it is no loss head
};

/// In words: continues "stay whole: ". `where` (may be null): the op that reads rows together.
std::string describeWhole(WholeReason reason, mlir::Operation *where);
/// What to do about it, in words; empty if nothing.
std::string adviseWhole(WholeReason reason, llvm::StringRef entry);

class RegionSearch;

/// The ops that `product` [rows, columns] = x [rows, features] · matrix brings with it.
class RowRegion {
public:
  /// Follows the rows from `product`, an op of two operands and one result, to the end of its block.
  static RowRegion find(mlir::Operation *product);

  WholeReason reason = WholeReason::None;
  /// Who reads rows together or returns them.
  mlir::Operation *where = nullptr;
  /// A loss (OpFamily::Loss) is among the ops.
  bool hasLoss = false;
  /// Something that all rows are needed for comes back to rows: the product is computed twice.
  bool isTwice = false;
  /// Rows as samples; knows the ops of the region and no others.
  BatchTracking tracking;

  /// Leaves the product whole and its rows to be read: what needs them twice need not compute them twice.
  void keep(mlir::Operation *product);

private:
  static RowRegion find(mlir::Operation *product, const RegionSearch &search);
};

} // namespace lowtide
