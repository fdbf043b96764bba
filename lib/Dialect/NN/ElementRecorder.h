//===- ElementRecorder.h - an element description as code -------*- C++ -*-===//
//
// Records what an op's description does for an element at an index that is not known yet: scalar operations in blocks,
// and reads, loops and choices as markers among them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/OpInterfaces.h"
#include "lowtide/Interfaces/ScalarBuilder.h"
#include "llvm/ADT/DenseMap.h"

#include <deque>

namespace lowtide::nn {

/// The marker's operands are an index into `values`.
struct RecordedRead {
  mlir::DenseElementsAttr values;
};
/// The marker's operands are the initial accumulators, its results the final ones. The body's arguments are the
/// accumulators, then the position.
struct RecordedLoop {
  llvm::SmallVector<int64_t> extents;
  mlir::Block *body;
  llvm::SmallVector<mlir::Value> yields;
};
/// The marker's operand is the condition.
struct RecordedChoice {
  mlir::Block *then, *otherwise;
  mlir::Value thenValue, otherwiseValue;
};

struct RecorderStorage {
  explicit RecorderStorage(mlir::MLIRContext *context) : ownBuilder(context) {}
  mlir::OpBuilder ownBuilder;
  std::deque<mlir::Block> blocks;
};

/// What does not depend on the index folds while it is recorded: elements of splats are constants.
class ElementRecorder : private RecorderStorage, public ElementBuilder {
public:
  /// `operands` must outlive the recorder.
  ElementRecorder(ElementInterface op, llvm::ArrayRef<mlir::DenseElementsAttr> operands);
  ~ElementRecorder() override;
  ElementRecorder(const ElementRecorder &) = delete;

  /// The code of one element; its arguments are the index.
  mlir::Block &getEntry() { return blocks.front(); }
  /// Records the description of result `number`; returns the element.
  mlir::Value record(unsigned number);

  llvm::DenseMap<mlir::Operation *, RecordedRead> reads;
  llvm::DenseMap<mlir::Operation *, RecordedLoop> loops;
  llvm::DenseMap<mlir::Operation *, RecordedChoice> choices;

  mlir::Value operand(unsigned number, mlir::ValueRange index) override;
  mlir::Value table(mlir::DenseElementsAttr values, mlir::ValueRange index) override { return read(values, index); }
  llvm::SmallVector<mlir::Value>
  loop(llvm::ArrayRef<int64_t> extents, mlir::ValueRange initial,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(ElementBuilder &, mlir::ValueRange, mlir::ValueRange)> body)
      override;
  mlir::Value guarded(mlir::Value condition, mlir::Type type, llvm::function_ref<mlir::Value(ElementBuilder &)> then,
                      llvm::function_ref<mlir::Value(ElementBuilder &)> otherwise) override;

private:
  mlir::Value read(mlir::DenseElementsAttr values, mlir::ValueRange index);
  mlir::Operation *mark(mlir::TypeRange results, mlir::ValueRange operands);

  ElementInterface op;
  llvm::ArrayRef<mlir::DenseElementsAttr> operands;
};

} // namespace lowtide::nn
