//===- ScalarProgram.h - recorded scalar code, executed ---------*- C++ -*-===//
//
// A register machine for the scalar vocabulary: what was recorded once for an element runs for every element.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "ElementRecorder.h"

namespace lowtide::nn {

/// One number: floats of every type as f64, integers sign-extended (i1: 0 or 1).
union ScalarRegister {
  double real;
  int64_t integer;
};

class ScalarProgram {
public:
  /// Translates what `recorder` holds. `isComplete` says whether every operation is known.
  ScalarProgram(ElementRecorder &recorder, mlir::Value result);

  bool isComplete() const { return complete; }
  /// Whether elements differ at all.
  bool dependsOnIndex() const { return dependent[resultRegister]; }

  /// The elements at all indices of `shape` in row-major order, or one element when none depends on the index. Empty
  /// when some element has no value (division by zero, a read outside) or `stepLimit` operations do not suffice.
  std::vector<ScalarRegister> run(llvm::ArrayRef<int64_t> shape, int64_t stepLimit);

private:
  enum class Code : uint8_t;
  struct Instruction {
    Code code;
    uint8_t type; ///< of what is computed: a width for integers, a float kind
    uint8_t from; ///< width of what is converted
    uint32_t to, a, b, c;
  };
  using Body = std::vector<Instruction>;
  struct Read {
    std::shared_ptr<std::vector<ScalarRegister>> values;
    llvm::SmallVector<int64_t> shape;
    llvm::SmallVector<unsigned> index;
  };
  struct Loop {
    llvm::SmallVector<int64_t> extents;
    llvm::SmallVector<unsigned> initial, accumulators, position, yields, results;
    unsigned body;
  };
  struct Choice {
    unsigned condition, result, then, otherwise, thenValue, otherwiseValue;
  };

  unsigned registerOf(mlir::Value value);
  llvm::SmallVector<unsigned> registersOf(mlir::ValueRange values);
  /// Returns the number of the body.
  unsigned translate(mlir::Block &block);
  bool translate(mlir::Operation &op, Body &body);
  bool translateScalar(mlir::Operation &op, Body &body);
  bool anyDependent(llvm::ArrayRef<unsigned> list) const;
  bool bodyDepends(unsigned body) const;

  bool execute(unsigned body);
  bool executeLoop(const Loop &loop);
  bool executeRead(const Read &read, ScalarRegister &to);

  ElementRecorder &recorder;
  llvm::DenseMap<mlir::Value, unsigned> numbers;
  llvm::DenseMap<mlir::Attribute, std::shared_ptr<std::vector<ScalarRegister>>> tables;
  std::vector<ScalarRegister> registers;
  std::vector<bool> dependent;
  std::vector<Body> bodies;
  std::vector<Read> reads;
  std::vector<Loop> loops;
  std::vector<Choice> choices;
  llvm::SmallVector<unsigned> indexRegisters;
  unsigned entry = 0, resultRegister = 0;
  int64_t steps = 0;
  bool complete = true;
};

/// The elements of a constant, each as a register; one for a splat.
std::vector<ScalarRegister> decodeElements(mlir::DenseElementsAttr values);
/// The inverse; one register makes a splat.
mlir::DenseElementsAttr encodeElements(mlir::RankedTensorType type, llvm::ArrayRef<ScalarRegister> values);

} // namespace lowtide::nn
