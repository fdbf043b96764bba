//===- TensorFlowNames.h - names in files that tf2onnx wrote ---------------------===//
//
// tf2onnx, through which Keras exports, too, calls nodes and initializers like the operations of the frozen TensorFlow
// graph: the bias of a layer is `net/dense_1/BiasAdd/ReadVariableOp:0`, and `net/dense_1/BiasAdd` adds it. What
// TensorFlow or tf2onnx evaluated goes by the last operation, `net/norm_1/Reshape:0`, or has a number,
// `const_fold_opt__7`.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_TENSORFLOWNAMES_H
#define LOWTIDE_LIB_RECOVER_TENSORFLOWNAMES_H

#include "llvm/ADT/StringRef.h"

#include "onnx/onnx_pb.h"

namespace lowtide {

bool isOfTensorFlow(const ::onnx::GraphProto &graph);

/// `net/dense_1` of node `net/dense_1/BiasAdd`.
llvm::StringRef scopeOf(llvm::StringRef name);

/// Whether `name` is a variable's value, as the program reads it.
bool isVariableRead(llvm::StringRef name);
/// Whether `name` is a variable's value in another shape, or with its dimensions in another order.
bool isMovedVariable(llvm::StringRef name);
/// Whether `name` was computed from the weights of a batch normalization and the layer in front of it.
bool isFoldedNorm(llvm::StringRef name);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_TENSORFLOWNAMES_H
