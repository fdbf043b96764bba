//===- ONNX.h - what the file said ---------------------------------------------===//
//
// The `onnx` dialect: one generic operation per node of an ONNX graph.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_DIALECT_ONNX_ONNX_H
#define LOWTIDE_DIALECT_ONNX_ONNX_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "lowtide/Dialect/ONNX/ONNXDialect.h.inc"
#define GET_TYPEDEF_CLASSES
#include "lowtide/Dialect/ONNX/ONNXTypes.h.inc"
#define GET_OP_CLASSES
#include "lowtide/Dialect/ONNX/ONNXOps.h.inc"

#endif // LOWTIDE_DIALECT_ONNX_ONNX_H
