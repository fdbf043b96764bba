//===- FusionGroups.h - which ops become one kernel -------------*- C++ -*-===//
//
// Partitions the generated ops of a block into kernels: no cycles, no op computed twice, few passes over memory.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Analysis/ForwardPart.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Fusion/FusionSteps.h"
#include "lowtide/Solve/Algorithms/MergingGraph.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

#include <functional>
#include <optional>
#include <vector>

namespace lowtide {

/// Shape of a kernel's values and what its reductions reduce; dimensions of extent 1 are left out.
struct FusionDomain {
  llvm::SmallVector<int64_t> extents, reduced;

  llvm::SmallVector<int64_t> keptExtents() const;
  bool operator==(const FusionDomain &other) const = default;
};

/// 1. Movements that only repeat elements, and values made of constants, are cloned into each reader; what is cheaply
///    made of the batch into each reader after the loss.
/// 2. From the last op to the first: a group whose results are read by one other group joins it.
/// 3. From the first to the last: a group joins the earliest group that reads it.
/// 4. Reductions over the same dimensions that read the same value join: first those of one matrix, then those that
///    share less.
///
/// An update of a parameter or state comes after all that reads the old value, so that it may be written in place.
///
/// What only the backward pass reads is computed there: a kernel of the forward pass takes it in only where it hands on
/// less than half of the bytes that it is made of, or where nothing stands between the two.
///
/// For a GPU, rows that are picked by numbers take in what makes the numbers, whole sums of large tensors take in what
/// they add up, and those of one tensor join (FullReductions.h); a scatter computes also what makes its indices and the
/// sum that it is a term of.
///
/// On a CPU, what few cheap ops make of constants alone joins whatever reads it: it has no elements in memory. Ops that
/// go along a dimension inside an element, running sums among them, join elementwise ops only.
///
/// Two groups may join when their values have one shape (or the shape that is kept of it by reductions over one set of
/// dimensions), when every value passes between them position by position, and when no path leads from one to the other
/// through a third.
class FusionGroups {
public:
  FusionGroups(mlir::Block &block, std::function<bool(mlir::Operation *)> isGenerated, bool isGpu,
               const FusionSteps &steps);

  struct Group {
    llvm::SmallVector<mlir::Operation *> ops; // in textual order
    nn::Emitter emitter;
  };
  /// Reorders the block so that each group is contiguous; returns the groups in order.
  std::vector<Group> form();

private:
  struct Node {
    llvm::SmallVector<mlir::Operation *> ops;
    FusionDomain domain;
    unsigned first, last; // positions
    bool fusable;         // may be joined with others at all
    bool generated;
    bool forward = false;   // holds an op that the loss is made from
    bool waited = false;    // holds an op that an update comes after
    bool runsAlong = false; // holds an op whose elements go along a dimension
  };

  void buildNodes();
  void joinUpdatesOfScatters();
  bool canTakeUpdates(ScatterInterface scatter);
  bool isThereForScatters(mlir::Value value);
  void buildGraph();
  unsigned nodeOf(mlir::Operation *op);
  void findUpdates();
  llvm::SmallVector<unsigned> consumersOf(unsigned node);
  llvm::SmallVector<unsigned> successorsOf(unsigned node);
  /// Puts the ops of `gone` into `kept`.
  void merge(unsigned gone, unsigned kept);
  bool hasPathThroughOthers(unsigned from, unsigned to);
  bool waitsFor(unsigned reader, unsigned from, unsigned without);
  bool isReadLater(mlir::Value root, unsigned backward);
  uint64_t bytesToKeep(mlir::Value value, unsigned backward, llvm::SmallDenseSet<mlir::Value> &seen);
  bool keepsMore(unsigned forward, unsigned backward);
  bool passesPositionwise(mlir::Value value, mlir::Operation *consumer, const FusionDomain &domain);
  bool edgesAgree(unsigned producer, unsigned consumer, const FusionDomain &domain);
  /// The domain of the union, if there is one.
  std::optional<FusionDomain> unite(unsigned a, unsigned b);
  bool isWholeSum(const FusionDomain &domain, const llvm::SmallDenseSet<mlir::Value> &results);
  bool isLongColumns(const FusionDomain &domain);
  bool readsFrom(unsigned group, unsigned other);
  bool cutsForRepeats(unsigned producer, unsigned consumer);
  bool isOfConstants(unsigned producer, unsigned consumer);
  bool tryJoin(unsigned producer, unsigned consumer);
  void joinScatters();
  void joinSoleReaders();
  void joinEarliestReaders();
  void joinSiblingReductions();
  void reorder();

  mlir::Block &block;
  std::function<bool(mlir::Operation *)> isGenerated;
  bool isGpu;
  FusionSteps steps;
  /// Of the function around the block, if there is one.
  std::optional<ForwardPart> forwardPart;
  llvm::DenseMap<mlir::Operation *, unsigned> positions, owner;
  /// Ops whose results are what a parameter or state becomes.
  llvm::SmallPtrSet<mlir::Operation *, 16> updates;
  /// For each reader of a value that the step updates: the ops that update it.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Operation *, 1>> updatesAfter;
  /// For each root that was asked for: its readers, without some of those that are known to be in the forward pass.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Operation *, 1>> laterReaders;
  std::vector<Node> nodes;
  /// What comes after what: readers, and updates of what is read.
  std::optional<solve::MergingGraph> graph;
};

} // namespace lowtide
