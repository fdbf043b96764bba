//===- LegalizeContext.h - state of one legalization ------------*- C++ -*-===//
//
// What graph values have become so far, the function under construction, and the refusals collected on the way.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/Train/TrainOptions.h"
#include "lowtide/Legalize/NodeView.h"
#include "lowtide/Legalize/SelectedRows.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace lowtide {

/// A result of the function besides the graph's outputs: a running statistic.
struct StateUpdate {
  mlir::BlockArgument state;
  mlir::Value value;
  int64_t count = 1; ///< how many updates led to `value`
};

class LegalizeContext {
public:
  LegalizeContext(mlir::func::FuncOp function, const LegalizeOptions &options)
      : function(function), options(options), builder(mlir::OpBuilder::atBlockEnd(&function.getBody().front())) {}

  mlir::func::FuncOp function;
  const LegalizeOptions &options;
  mlir::OpBuilder builder;
  /// Values with rows of which data decide the number.
  SelectedRows selected;

  const Meaning &lookup(mlir::Value graphValue) const;
  void bind(mlir::Value graphValue, Meaning meaning) { values[graphValue] = std::move(meaning); }

  /// Legalizes all nodes of a block; results land in the map.
  void legalizeBlock(mlir::Block &block);
  /// Legalizes a node; failures are collected.
  void legalizeNode(onnx::NodeOp node);

  /// Legalizes `@model` of `body`, which defines `node`, on `operands`; returns what it returns. Bodies within bodies
  /// and their nodes are bounded; what is refused inside is collected under `node`.
  mlir::FailureOr<llvm::SmallVector<Meaning>> legalizeBody(onnx::NodeOp node, mlir::OwningOpRef<mlir::ModuleOp> body,
                                                           mlir::ValueRange operands);

  /// The step scalar `name` (seed, step, row), an argument of type tensor<i64> made on first request.
  mlir::Value scalar(llvm::StringRef name);
  /// The role that the importer gave the argument after `value` ("parameter" …), looking through casts and views;
  /// empty when it is none.
  llvm::StringRef roleOf(mlir::Value value) const;
  /// The argument itself.
  mlir::BlockArgument argumentOf(mlir::Value value) const;
  /// Counts as one more update of `state`.
  void updateState(mlir::BlockArgument state, mlir::Value value);
  /// The state with the updates so far: a layer that is called twice updates it twice.
  mlir::Value currentState(mlir::BlockArgument state) const;
  llvm::ArrayRef<StateUpdate> getUpdates() const { return updates; }
  /// A number for the next random op: its position in the model.
  int64_t nextRandomId() { return numRandom++; }

  /// Counts a dropout that draws, whatever its ratio.
  void noteDropout() { ++numDropouts; }
  int64_t getNumDropouts() const { return numDropouts; }
  /// Whether this is the first time that `what` is noted: what is said once, whatever the number of nodes.
  bool noteOnce(llvm::StringRef what) { return noted.insert(what).second; }

  /// Reads `options.frozenNorms`; emits an error where it is no list of patterns.
  mlir::LogicalResult readFrozenNorms();
  /// Whether one of them means a layer that goes by these names.
  bool isFrozenNorm(llvm::ArrayRef<std::string> names);
  /// Emits an error for each of them that meant no batch norm, with the names that there are.
  mlir::LogicalResult checkFrozenNorms() const;

  /// What legalizing a block for a try changes other than the ops that it makes, and how to go back to it.
  struct Mark {
    size_t failures;
    llvm::SmallVector<StateUpdate> updates;
    int64_t numRandom, numDropouts;
    SelectedRows selected;
  };
  Mark mark() const { return {failures.size(), updates, numRandom, numDropouts, selected}; }
  void rewind(const Mark &to);
  /// Whether nothing has been refused, drawn or updated since.
  bool isAt(const Mark &mark) const;

  void collect(onnx::NodeOp node, FailureKind kind, std::string reason);
  /// Prints what was collected, grouped. Returns the first kind.
  FailureKind report();
  bool failed() const { return !failures.empty(); }

  struct FailedNode {
    onnx::NodeOp node;
    FailureKind kind;
    std::string reason;
  };
  llvm::ArrayRef<FailedNode> getFailures() const { return failures; }
  /// Whether nothing that was collected contradicts the file.
  bool isOnlyUnsupported() const {
    return llvm::all_of(failures, [](const FailedNode &node) { return node.kind == FailureKind::Unsupported; });
  }

  /// The value of an nn value when it is a compile-time constant.
  static mlir::DenseElementsAttr constantOf(mlir::Value value);

private:
  /// Collects a node that is not looked at, if its operator is refused whatever its operands.
  void judgeByName(onnx::NodeOp node);
  /// Replaces ops from `first` on whose operands are all constants by their values; `results` follow.
  void foldFrom(mlir::Operation *before, llvm::MutableArrayRef<Meaning> results);

  llvm::DenseMap<mlir::Value, Meaning> values;
  /// Values of the graph whose stated shape is known to be wrong: what is stated of values made of them is no better.
  llvm::DenseSet<mlir::Value> misstated;
  llvm::SmallVector<StateUpdate> updates;
  llvm::MapVector<llvm::StringRef, mlir::Value> scalars;
  std::vector<FailedNode> failures;
  /// Alive as long as `values` knows their values.
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> bodies;
  unsigned bodyDepth = 0;
  uint64_t bodyNodes = 0;
  int64_t numRandom = 0;
  int64_t numDropouts = 0;
  llvm::StringSet<> noted;
  std::vector<NamePattern> frozenNorms;
  llvm::SmallVector<bool> metNorms;
  /// The batch norms of the model, by a name that means them.
  llvm::SmallVector<std::string> normNames;
};

} // namespace lowtide
