//===- FormBuilder.h - what an op's ONNX form writes with -------*- C++ -*-===//
//
// Builds `onnx.node` ops for one op of a step: operands as tensors of the model, nodes with their result types, and the
// nodes that every family needs.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include <functional>

namespace lowtide {
class FormBuilder;
}
#include "lowtide/Export/OnnxFormInterface.h.inc"

namespace lowtide {

/// Version of the standard operator set that forms are written in.
inline constexpr int64_t exportOpset = 20;
/// The first version in which all operators that forms use take bf16.
inline constexpr int64_t exportOpsetForBf16 = 22;
/// The first version that has BitCast.
inline constexpr int64_t exportOpsetForBits = 26;

/// The element type as ONNX numbers it (TensorProto.DataType): floats, booleans and integers of 8 to 64 bits.
int64_t getOnnxDataType(mlir::Type type);

/// The operands of one op as tensors of the model, and the results as its form sets them.
class FormBuilder {
public:
  /// `lookup` gives the model's tensor for a value of the step; a splat may be given as a tensor of rank 0.
  FormBuilder(mlir::OpBuilder &builder, mlir::Operation *op, std::function<mlir::Value(mlir::Value)> lookup)
      : builder(builder), op(op), lookup(std::move(lookup)), results(op->getNumResults()) {}

  mlir::OpBuilder &builder;
  mlir::Operation *op;
  /// Whether updates may be operators of ai.onnx.preview.training.
  bool previewOptimizers = false;

  unsigned size() const { return op->getNumOperands(); }
  mlir::RankedTensorType inType(unsigned i) const {
    return llvm::cast<mlir::RankedTensorType>(op->getOperand(i).getType());
  }
  mlir::RankedTensorType outType(unsigned i) const {
    return llvm::cast<mlir::RankedTensorType>(op->getResult(i).getType());
  }
  /// Operand `i` in its full shape.
  mlir::Value in(unsigned i);
  /// Operand `i`, of rank 0 where it is a splat: for operators that broadcast.
  mlir::Value compact(unsigned i) { return lookup(op->getOperand(i)); }
  void set(unsigned i, mlir::Value value) { results[i] = value; }
  llvm::MutableArrayRef<mlir::Value> getResults() { return results; }

  // Nodes. Attributes: i64, f32, string, arrays of i64 or f32, dense elements.
  mlir::NamedAttribute attr(llvm::StringRef name, int64_t value);
  mlir::NamedAttribute attr(llvm::StringRef name, llvm::ArrayRef<int64_t> value);
  mlir::NamedAttribute attr(llvm::StringRef name, llvm::StringRef value);
  mlir::NamedAttribute attrFloat(llvm::StringRef name, double value);
  mlir::ValueRange nodes(llvm::StringRef operatorName, mlir::ValueRange inputs, mlir::TypeRange results,
                         llvm::ArrayRef<mlir::NamedAttribute> attributes = {}, llvm::StringRef domain = "");
  mlir::Value node(llvm::StringRef operatorName, mlir::ValueRange inputs, mlir::Type result,
                   llvm::ArrayRef<mlir::NamedAttribute> attributes = {});
  /// A node whose inputs broadcast; `element` is the result's element type (null: the last input's).
  mlir::Value pointwise(llvm::StringRef operatorName, mlir::ValueRange inputs, mlir::Type element = {},
                        llvm::ArrayRef<mlir::NamedAttribute> attributes = {});

  // Constants.
  mlir::Value ints(llvm::ArrayRef<int64_t> values);
  mlir::Value dense(mlir::DenseElementsAttr values);
  /// Rank 0.
  mlir::Value scalar(mlir::Type element, double value);
  mlir::Value scalarInt(mlir::Type element, int64_t value);
  /// A full tensor of one value, made when the model runs.
  mlir::Value filled(mlir::RankedTensorType type, double value);

  // Frequent nodes; each is left out when it would change nothing.
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> permutation);
  mlir::Value expand(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value cast(mlir::Value x, mlir::Type element);
  mlir::Value slice(mlir::Value x, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> ends,
                    llvm::ArrayRef<int64_t> steps, llvm::ArrayRef<int64_t> shape);

private:
  std::function<mlir::Value(mlir::Value)> lookup;
  llvm::SmallVector<mlir::Value> results;
};

/// The type of a model's tensor.
inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

/// Writes an op by the element description that every emitter reads: its scalar code becomes nodes on whole tensors,
/// reads at computed places become gathers. Fails, without a diagnostic, where a loop is too long to be written out or
/// an operation has no ONNX operator; `reason` then says which.
llvm::LogicalResult writeByElements(FormBuilder &form, std::string &reason);

} // namespace lowtide
