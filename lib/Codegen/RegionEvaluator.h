//===- RegionEvaluator.h - elements of a kernel's values, on demand -*- C++
//-*-===//
//
// Emits the scalar code of one element of a tensor by asking its op, which
// pulls its operands' elements in turn. What is in memory is loaded; everything
// else is inlined, once per index.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "KernelFunction.h"
#include "lowtide/Interfaces/OpInterfaces.h"

#include <functional>
#include <map>

namespace lowtide::nn {
struct Pieces;
} // namespace lowtide::nn

namespace lowtide::codegen {

class RegionEvaluator {
public:
  /// Reads an element that is already there: a load, or a scalar.
  using Source = std::function<mlir::Value(mlir::ValueRange index)>;

  explicit RegionEvaluator(KernelFunction &function) : function(function) { scopes.emplace_back(); }

  KernelFunction &function;

  /// Element of `tensor` at `index`, one index per dimension.
  mlir::Value element(mlir::Value tensor, mlir::ValueRange index);

  /// From now on elements of `tensor` come from `source`. Null takes it back.
  void bind(mlir::Value tensor, Source source);
  /// As `bind`, reading a row-major array.
  void bindArray(mlir::Value tensor, mlir::Value pointer);

  /// Calls `body` with a builder whose operands are those of `op`.
  void withOperands(mlir::Operation *op, llvm::function_ref<void(ElementBuilder &)> body);

  /// Where the kernel's read-only copy of a table lies.
  mlir::Value tableOf(mlir::DenseElementsAttr values);

  /// Whether two indices are equal whenever they are executed, as far as their structure tells.
  bool isSameIndex(mlir::ValueRange a, mlir::ValueRange b);

  /// In flat mode every index is one linear position, the same for all tensors:
  /// the kernel has one shape and ops that pass indices through.
  bool flat = false;
  /// Pieces of a whole are looked up in a table: where a position's work is a whole row, that costs nothing.
  bool looksUpPieces = false;

  /// While it lives, newly emitted elements are known inside the current block
  /// only. Loops and branches need one.
  class Scope {
  public:
    explicit Scope(RegionEvaluator &evaluator) : evaluator(evaluator) { evaluator.scopes.emplace_back(); }
    ~Scope() { evaluator.scopes.pop_back(); }
    Scope(const Scope &) = delete;

  private:
    RegionEvaluator &evaluator;
  };

  /// KernelFunction::loop with a scope around the body.
  llvm::SmallVector<mlir::Value>
  loop(mlir::Value lower, mlir::Value upper, int64_t step, LoopKind kind, mlir::ValueRange initial,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value i, mlir::ValueRange accumulators)> body);
  void loop(mlir::Value lower, mlir::Value upper, int64_t step, LoopKind kind,
            llvm::function_ref<void(mlir::Value i)> body);
  /// Emits `body`, in a scope of its own, where `condition` holds; null: always, without one.
  void when(mlir::Value condition, llvm::function_ref<void()> body);

private:
  mlir::Value compute(mlir::Value tensor, mlir::ValueRange index);
  struct PlacedPiece {
    KernelFunction::Piece piece;
    /// Whether there is a piece at the position; null: there always is.
    mlir::Value inside;
  };
  mlir::Value arrayOf(mlir::Value tensor);
  mlir::Value loadFromPieces(mlir::Operation *op, mlir::ValueRange index);
  /// The piece that a position along the dimension of the pieces falls into.
  PlacedPiece selectPiece(mlir::Operation *whole, const nn::Pieces &pieces, mlir::Value position);
  /// Equal numbers, equal values: pure computations of indices are compared by
  /// structure.
  unsigned number(mlir::Value value);

  using Key = std::vector<uintptr_t>;
  llvm::DenseMap<mlir::Value, Source> sources;
  /// Where the tensors lie that are in memory, row by row.
  llvm::DenseMap<mlir::Value, mlir::Value> arrays;
  llvm::DenseMap<std::pair<mlir::Operation *, mlir::Value>, PlacedPiece> placedPieces;
  llvm::DenseMap<mlir::Attribute, mlir::Value> tables;
  llvm::SmallVector<std::map<Key, mlir::Value>> scopes;
  llvm::DenseMap<mlir::Value, unsigned> numbers;
  std::map<Key, unsigned> expressions;
};

} // namespace lowtide::codegen
