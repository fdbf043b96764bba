//===- Attributes.h - attributes of ONNX nodes as MLIR attributes
//---------------------===//

#ifndef LOWTIDE_LIB_IMPORT_ATTRIBUTES_H
#define LOWTIDE_LIB_IMPORT_ATTRIBUTES_H

#include "mlir/IR/Builders.h"

#include "onnx/onnx_pb.h"

namespace lowtide {

/// The value of `attribute`; null with `fault` set where it has no form here.
/// Graphs are not handled here.
mlir::Attribute convertAttribute(const ::onnx::AttributeProto &attribute, mlir::Builder &builder, std::string &fault);

/// The value of a tensor whose data are in the file; null with `fault` set.
mlir::DenseElementsAttr convertTensor(const ::onnx::TensorProto &tensor, mlir::MLIRContext *context,
                                      std::string &fault);

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_ATTRIBUTES_H
