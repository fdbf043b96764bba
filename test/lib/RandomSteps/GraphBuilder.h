//===- GraphBuilder.h - ops of a random graph, one call each ----*- C++ -*-===//
//
// Writes nn ops with their types into a StepGraph. Layers made of them are in RandomLayers.cpp.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "RandomGraph.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace lowtide::test {

using Dims = llvm::SmallVector<int64_t, 4>;

/// `[1, 2, 3]`.
std::string listText(llvm::ArrayRef<int64_t> numbers);

class GraphBuilder {
public:
  GraphBuilder(StepGraph &graph, RandomNumbers &random, int64_t batch) : graph(graph), random(random), batch(batch) {}

  // --- leaves ---

  /// A parameter with elements of about ±`size`; now and then one that is there already.
  Use param(Dims dims, double size);
  /// `size` of a matrix that keeps the size of what it is multiplied with.
  static double scaleFor(int64_t inputs);
  Use batchArray(Dims dims, llvm::StringRef element, double low, double high);
  /// seed, step or row.
  Use scalar(llvm::StringRef name);

  // --- ops ---

  /// `text` holds `$0`, `$1`, … for the operands.
  Use op(const std::string &text, llvm::ArrayRef<Use> operands, llvm::ArrayRef<TensorShape> results);
  Use unary(llvm::StringRef name, Use x, llvm::StringRef attributes = "");
  Use binary(llvm::StringRef name, Use a, Use b);
  Use constant(const TensorShape &shape, double value);
  /// x (op) a constant.
  Use withConstant(llvm::StringRef name, Use x, double value);
  Use compare(llvm::StringRef predicate, Use a, Use b);
  Use select(Use condition, Use a, Use b);
  Use cast(Use x, llvm::StringRef element);
  Use broadcast(Use x, Dims to, llvm::ArrayRef<int64_t> dims);
  Use reshape(Use x, Dims to);
  Use transpose(Use x, llvm::ArrayRef<int64_t> permutation);
  Use slice(Use x, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> strides, Dims to);
  Use concat(llvm::ArrayRef<Use> parts, int64_t dim);
  /// "reduce_sum", "reduce_max", …
  Use reduce(llvm::StringRef name, Use x, llvm::ArrayRef<int64_t> dims);
  Use dot(Use a, Use b, bool transposeA = false, bool transposeB = false);
  Use gather(Use x, Use indices, int64_t axis);

  const TensorShape &shape(Use use) const { return graph.shape(use); }
  int64_t dim(Use use, int64_t at) const { return shape(use).dims[at]; }
  int64_t rank(Use use) const { return shape(use).rank(); }

  StepGraph &graph;
  RandomNumbers &random;
  /// Samples; the first dimension of everything that is no parameter.
  int64_t batch;
  unsigned randomOps = 0;
};

/// A value that is computed from `x` by a random layer; `x` itself where the one that was drawn does not take it.
Use addRandomLayer(GraphBuilder &b, Use x, llvm::ArrayRef<Use> pool);
/// The same, with the shape of `x`.
Use addKeepingLayer(GraphBuilder &b, Use x, llvm::ArrayRef<Use> pool);
/// Linear layer over the last dimension.
Use addLinear(GraphBuilder &b, Use x, int64_t outputs);

} // namespace lowtide::test
