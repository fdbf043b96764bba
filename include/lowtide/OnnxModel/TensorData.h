//===- TensorData.h - the numbers of a TensorProto
//--------------------------------===//
//
// Element types, checked sizes and bytes of tensors, wherever the file keeps
// them.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_ONNXMODEL_TENSORDATA_H
#define LOWTIDE_ONNXMODEL_TENSORDATA_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include "onnx/onnx_pb.h"

#include <optional>
#include <string>

namespace lowtide {

/// What we know of an ONNX element type.
struct ElementType {
  int32_t onnx;
  const char *name;
  /// Bytes per element as we hand them out; 0: not supported (strings, complex,
  /// below 8 bits).
  unsigned bytes;
};

/// Null for a number that no ONNX version assigns.
const ElementType *findElementType(int32_t onnxType);
/// `f32`, or `type 99`.
std::string elementTypeName(int32_t onnxType);
/// The MLIR type, or null where the type is not supported.
mlir::Type convertElementType(int32_t onnxType, mlir::MLIRContext *context);

bool isFloatType(int32_t onnxType);
bool isIntegerType(int32_t onnxType);

/// Product of dimensions; nullopt when one is negative or the product leaves 63
/// bits.
std::optional<int64_t> checkedElements(llvm::ArrayRef<int64_t> dims);
/// Bytes of `elements` elements; nullopt when that leaves 63 bits or the type
/// is not supported.
std::optional<uint64_t> checkedBytes(int64_t elements, int32_t onnxType);

/// How many bytes or field entries the file holds for `tensor`, as text for
/// messages; empty when the amount is right. External data are not looked at.
std::string findSizeMismatch(const ::onnx::TensorProto &tensor);

/// The bytes of embedded `tensor`, little-endian and dense. The tensor passed
/// `findSizeMismatch`.
std::string embeddedBytes(const ::onnx::TensorProto &tensor);

/// Whether all elements of `bytes`, of `width` bytes each, are equal; of none, too.
inline bool hasEqualElements(llvm::StringRef bytes, size_t width) {
  return bytes.size() <= width || bytes.drop_front(width) == bytes.drop_back(width);
}

/// `dense` elements of `bytes`.
mlir::DenseElementsAttr buildElements(llvm::ArrayRef<int64_t> dims, int32_t onnxType, llvm::ArrayRef<char> bytes,
                                      mlir::MLIRContext *context);

} // namespace lowtide

#endif // LOWTIDE_ONNXMODEL_TENSORDATA_H
