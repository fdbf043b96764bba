//===- WellFormed.h - what every model must satisfy
//--------------------------------===//
//
// Our own checks; they run before ONNX's library or anything else walks the
// model.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_LIB_IMPORT_WELLFORMED_H
#define LOWTIDE_LIB_IMPORT_WELLFORMED_H

#include "lowtide/Import/Limits.h"
#include "lowtide/Recover/Report.h"

#include "llvm/Support/LogicalResult.h"

#include "onnx/onnx_pb.h"

namespace lowtide {

/// Versions, names, order, arity, sizes and attributes of the whole model;
/// every error is reported.
llvm::LogicalResult checkWellFormed(const ::onnx::ModelProto &model, const ImportLimits &limits, Report &report);

/// Local functions: distinct, no recursion, and bounded in what they expand to.
llvm::LogicalResult checkFunctions(const ::onnx::ModelProto &model, const ImportLimits &limits, Report &report);

/// One tensor: dimensions, type, size, external data entries.
llvm::LogicalResult checkTensor(const ::onnx::TensorProto &tensor, llvm::StringRef where, const ImportLimits &limits,
                                Report &report);

/// Nodes of a graph with those of its subgraphs; stops counting at `stop`.
uint64_t countNodes(const ::onnx::GraphProto &graph, uint64_t stop);

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_WELLFORMED_H
