//===- PenaltyMeasures.h - how programs measure their weights ------------------------===//
//
// What a program adds to its loss for its weights is a sum of measures: of each parameter, of two, or of all as one.
// The notes name the operations of all together; how often they name each tells which measures it may be.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_PENALTYMEASURES_H
#define LOWTIDE_LIB_RECOVER_PENALTYMEASURES_H

#include "Expressions.h"

#include "onnx/onnx_pb.h"

#include <array>
#include <functional>

namespace lowtide::penalty {

enum Operation { Square, Sum, Mean, Absolute, Norm, Times, Minus, Product, Bound, Root, Part, NumCounts };
/// How often the notes name each.
using Counts = std::array<int, NumCounts>;

/// What is measured at a time: a parameter, two of them, or all, joined. `leaves` have dimensions alone: values are
/// read when they are measured, for those of all parameters take more memory than the largest of them.
struct Item {
  llvm::SmallVector<const ::onnx::TensorProto *, 2> tensors;
  std::vector<Numbers> leaves;
  bool isJoined = false;
};

/// Steps that make a number of an item; of `EyeLike`, the identity. The operations that they are.
struct Measure {
  std::function<llvm::SmallVector<Step, 8>(const Item &)> make;
  Counts operations;
};

/// Counts of operations; nullopt: something else is among them.
std::optional<Counts> countOperations(llvm::ArrayRef<llvm::StringRef> operations);

/// All measures of such items; those of two parameters and of products only where the counts have any.
std::vector<Measure> findMeasures(llvm::ArrayRef<Item> items, const Counts &counts);

/// The root of the squares of all parameters: the length of all, joined.
std::vector<Measure> findRoots(size_t numParameters);

/// Of means and what makes their deviations (itself, its exponential, that of its half, `softplus`): the divergence of
/// normal distributions from the standard one, whose operations programs write in many ways.
std::vector<Measure> findDivergences();
/// Of what makes distributions over the last dimension: how much they tell.
std::vector<Measure> findEntropies();

} // namespace lowtide::penalty

#endif // LOWTIDE_LIB_RECOVER_PENALTYMEASURES_H
