//===- Bindings.h - what a step's arguments and results are bound to -*- C++
//-*-===//
//
// Reads and writes the bindings of a step, and moves steps between modules as
// named entry points.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace lowtide::train {

/// Argument attribute of a parameter: name of its group, a string.
inline constexpr llvm::StringLiteral groupAttrName = "train.group";
/// Argument attribute of a parameter that the loss does not depend on: it gets
/// no update.
inline constexpr llvm::StringLiteral unreachedAttrName = "train.unreached";
/// Argument attribute of a constant that stands for frozen weights in other numbers than the file's: a dictionary with
/// the fields of `plan.source` that say so (codec, scales, coded_dims, coded_transposed of a matrix in few bits;
/// keeps_original of one in 16 bits whose f32 numbers the artifact has, too).
inline constexpr llvm::StringLiteral codedAttrName = "train.coded";
/// Metric of an evaluation: what its loss is a mean over.
inline constexpr llvm::StringLiteral lossWeightName = "loss_weight";
/// State that averages the parameter whose name stands before (passes/TrainAverageWeights.cpp), and how many updates it
/// has seen.
inline constexpr llvm::StringLiteral averageSuffix = ".ema";
inline constexpr llvm::StringLiteral averageCountName = "ema_updates";
/// Module attributes for the artifact.
inline constexpr llvm::StringLiteral optimizerAttrName = "train.optimizer";
inline constexpr llvm::StringLiteral scheduleAttrName = "train.schedule";

bool isBinding(mlir::Attribute attribute);
/// The name in any binding; null if `binding` is none.
mlir::StringAttr getBindingName(mlir::Attribute binding);

/// The name that argument `arg` is bound to, and the others that a tied parameter has in the exporting framework.
llvm::SmallVector<llvm::StringRef> listNames(mlir::FunctionOpInterface step, unsigned arg);

/// Null if the argument or result has none.
mlir::Attribute getArgBinding(mlir::FunctionOpInterface step, unsigned arg);
mlir::Attribute getResultBinding(mlir::FunctionOpInterface step, unsigned result);

/// The argument or result bound as a `Binding` of that name; nullopt if there
/// is none.
template <typename Binding> std::optional<unsigned> findArg(mlir::FunctionOpInterface step, llvm::StringRef name) {
  for (unsigned i = 0, e = step.getNumArguments(); i < e; ++i)
    if (auto binding = llvm::dyn_cast_or_null<Binding>(getArgBinding(step, i)); binding && binding.getName() == name)
      return i;
  return std::nullopt;
}
template <typename Binding> std::optional<unsigned> findResult(mlir::FunctionOpInterface step, llvm::StringRef name) {
  for (unsigned i = 0, e = step.getNumResults(); i < e; ++i)
    if (auto binding = llvm::dyn_cast_or_null<Binding>(getResultBinding(step, i)); binding && binding.getName() == name)
      return i;
  return std::nullopt;
}

/// A step's arguments and results by their bindings, for many look-ups: each `findArg` and `findResult` of the step
/// goes through all of them. It holds what the step had when it was built: appending moves nothing, and what was
/// appended is not found. Build a new one once something was erased, inserted before another, or bound to another name.
class BindingIndex {
public:
  explicit BindingIndex(mlir::FunctionOpInterface step);

  /// The argument or result bound as a `Binding` of that name, the first if there are several; nullopt if there is
  /// none.
  template <typename Binding> std::optional<unsigned> findArg(llvm::StringRef name) const {
    return find(args, {mlir::TypeID::get<Binding>(), name});
  }
  template <typename Binding> std::optional<unsigned> findResult(llvm::StringRef name) const {
    return find(results, {mlir::TypeID::get<Binding>(), name});
  }
  /// The result bound as the gradient of that parameter; nullopt if there is none.
  std::optional<unsigned> findGradient(mlir::StringAttr parameter) const;

private:
  /// The kind of a binding and its name, which the context keeps.
  using Numbers = llvm::DenseMap<std::pair<mlir::TypeID, llvm::StringRef>, unsigned>;
  static std::optional<unsigned> find(const Numbers &numbers, Numbers::key_type key);

  Numbers args, results;
};

/// Samples of a step's batch: the size of the first batch array's dimension that counts them; 0: none does.
int64_t countSamples(mlir::FunctionOpInterface step);

/// Appends an argument; returns its value.
mlir::Value appendArg(mlir::func::FuncOp step, mlir::Type type, mlir::Attribute binding, mlir::Location loc);
/// The argument bound to that scalar, appended if there is none.
mlir::Value getOrAppendScalar(mlir::func::FuncOp step, llvm::StringRef name, mlir::RankedTensorType type);
/// Appends an operand to the function's return and the result that it makes.
void appendResult(mlir::func::FuncOp step, mlir::Value value, mlir::Attribute binding);

/// Arguments, results and attributes of them that a step gets together: one by one, each would copy the lists of all
/// others. Until `finish` the function's type and attributes are what they were; its type then is that of its block.
class SignatureGrowth {
public:
  explicit SignatureGrowth(mlir::func::FuncOp step) : step(step) {}
  /// Appends an argument; returns its value.
  mlir::Value appendArg(mlir::Type type, mlir::Attribute binding, mlir::Location loc);
  /// Appends a result; the function returns it from `finish` on.
  void appendResult(mlir::Value value, mlir::Attribute binding);
  /// Replaces all uses of a value, also as a result that was appended.
  void replace(mlir::Value was, mlir::Value now);
  /// Sets an attribute of an argument or result, also of one that was appended; null takes it away.
  void setArgAttr(unsigned arg, llvm::StringRef name, mlir::Attribute value);
  void setResultAttr(unsigned result, llvm::StringRef name, mlir::Attribute value);
  void finish();

private:
  struct AttrChange {
    unsigned number; ///< of the argument or result
    mlir::StringAttr name;
    mlir::Attribute value;
  };

  mlir::func::FuncOp step;
  llvm::SmallVector<mlir::DictionaryAttr> argAttrs, resultAttrs;
  llvm::SmallVector<AttrChange> argChanges, resultChanges;
  llvm::SmallVector<mlir::Value> results;
};

/// Removes the results for which `drop` is true; what only they needed is left
/// to dead-code elimination.
void eraseResults(mlir::func::FuncOp step, llvm::function_ref<bool(mlir::Attribute binding)> drop);

/// Moves the function `name` of `from` into `into` as the entry point
/// `entryName` ("train", "eval", "gradient"). Fails with a diagnostic if there
/// is no such function or `into` already has that entry.
llvm::LogicalResult moveEntry(mlir::ModuleOp from, llvm::StringRef name, mlir::ModuleOp into,
                              llvm::StringRef entryName);

} // namespace lowtide::train
