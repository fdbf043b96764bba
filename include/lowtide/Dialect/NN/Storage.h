//===- Storage.h - numbers in fewer bits ------------------------*- C++ -*-===//
//
// The ops of Storage.td and the functions that build them. Few files need them, so NN.h leaves them out.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Interfaces/ScalarBuilder.h"

#include "lowtide/Dialect/NN/StorageEnums.h.inc"

#define GET_OP_CLASSES
#include "lowtide/Dialect/NN/Storage.h.inc"

namespace lowtide::nn {

/// nn.regroup; identity when nothing changes.
Expr regroup(Expr x, llvm::ArrayRef<int64_t> shape);
/// The bf16 half of f32 numbers, held in `type`, and what it leaves of them, in i16; both together, in `type`.
Expr highHalf(Expr x, mlir::Type type);
Expr lowHalf(Expr x);
Expr joinHalves(Expr high, Expr low, mlir::Type type);
/// Between a float and an integer type (`nn.bit_cast`).
Expr bitCast(Expr x, mlir::Type elementType);
/// bf16, held in `type`; `draw`: i32 numbers from [0, 2^16).
Expr stochasticHalf(Expr x, Expr draw, mlir::Type type);
/// ui8 of floats, and back to `type`.
Expr toCode(CodeMap map, Expr x);
Expr fromCode(CodeMap map, Expr code, mlir::Type type);

/// The 256 numbers that the codes of a map stand for; of nf4 16.
llvm::ArrayRef<float> getCodeNumbers(CodeMap map);

// Called by the records.

mlir::Value emitBitCast(ScalarBuilder &b, mlir::Value x, mlir::Type to);
mlir::Value emitHighHalf(ScalarBuilder &b, mlir::Value x);
mlir::Value emitLowHalf(ScalarBuilder &b, mlir::Value x);
mlir::Value emitJoinedHalves(ScalarBuilder &b, mlir::Value high, mlir::Value low);
mlir::Value emitStochasticHalf(ScalarBuilder &b, mlir::Value x, mlir::Value draw);
mlir::Value emitCode(ElementBuilder &b, CodeMap map, mlir::Value x);
mlir::Value emitCodeNumber(ElementBuilder &b, CodeMap map, mlir::Value code);

} // namespace lowtide::nn
