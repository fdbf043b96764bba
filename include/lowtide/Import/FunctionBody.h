//===- FunctionBody.h - what the standard says an operator is -------------------===//
//
// ONNX defines some operators by a function of simpler ones, some of them
// depending on the types of operands. This asks ONNX's library for it.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_IMPORT_FUNCTIONBODY_H
#define LOWTIDE_IMPORT_FUNCTIONBODY_H

#include "lowtide/Dialect/ONNX/ONNX.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace lowtide {

/// Whether some version of the function exists, for operands of some types.
bool hasFunctionBody(llvm::StringRef domain, llvm::StringRef op, int64_t version);

/// The function body that the schema of `node`'s operator has, as `func @model`:
/// one argument for each operand that is there (of types `operandTypes`, null
/// where the operand is absent), one result for each of the node's results that
/// `wanted` names. All operations are located at the node. Null, without a word,
/// when the operator has no body, or none for these types.
mlir::OwningOpRef<mlir::ModuleOp> buildFunctionBody(onnx::NodeOp node, llvm::ArrayRef<mlir::Type> operandTypes,
                                                    llvm::ArrayRef<unsigned> wanted);

} // namespace lowtide

#endif // LOWTIDE_IMPORT_FUNCTIONBODY_H
