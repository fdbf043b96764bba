//===- StepGraph.h - a forward graph that can be cut smaller ----*- C++ -*-===//
//
// A model for tests as plain data: nodes in order, what they read, how they are written as nn text. Nodes can be taken
// out again, which is how a failing graph becomes a small one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lowtide::test {

/// Shape and element type ("f32", "i64", "i1", …) of a tensor.
struct TensorShape {
  llvm::SmallVector<int64_t, 4> dims;
  std::string element = "f32";

  bool operator==(const TensorShape &other) const { return dims == other.dims && element == other.element; }
  int64_t elements() const;
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  bool isFloat() const { return element[0] == 'f' || element[0] == 'b'; }
  /// `tensor<2x3xf32>`.
  std::string text() const;
};

/// Result `result` of node `node`.
struct Use {
  unsigned node = 0, result = 0;
  bool operator==(const Use &other) const { return node == other.node && result == other.result; }
};

struct Node {
  enum class Kind { Op, Param, Batch, State, Scalar };
  Kind kind = Kind::Op;
  /// An op: its line from the mnemonic on, `$i` where operand i stands. A scalar: its name.
  std::string text;
  llvm::SmallVector<Use, 4> operands;
  llvm::SmallVector<TensorShape, 3> results;
  /// Of a batch array: elements lie in [low, high). A parameter starts there too.
  double low = -1, high = 1;
};

/// How the step is made of the graph and compiled; texts are those of the flags.
struct StepSettings {
  std::string optimizer = "sgd", lr = "0.05";
  std::string precision; ///< empty: as the graph says
  std::string lossScale = "none";
  double clipNorm = 0;
  int64_t microBatches = 1;
  bool lossHead = false; ///< linear + cross-entropy in chunks
  uint64_t seed = 0;     ///< of parameters, batches and random numbers
};

class StepGraph {
public:
  /// Adds a node after all others; returns its number.
  unsigned add(Node node) {
    nodes.push_back(std::move(node));
    return static_cast<unsigned>(nodes.size()) - 1;
  }
  const TensorShape &shape(Use use) const { return nodes[use.node].results[use.result]; }
  bool isUsed(unsigned node) const;
  /// Removes what neither the loss nor a kept result needs, unless `keepDead`.
  void removeDead();
  unsigned countOps() const;

  /// The module with @forward, settings and ranges included: all that a replay needs.
  std::string text(const StepSettings &settings) const;

  std::vector<Node> nodes;
  /// The loss, one number; other results of the step; the new values of states.
  Use loss;
  std::vector<Use> outputs;
  std::vector<std::pair<unsigned, Use>> updates;
};

/// Name of a leaf, as the step binds it: "p3", "x0", "s7".
std::string leafName(const StepGraph &graph, unsigned node);

} // namespace lowtide::test
