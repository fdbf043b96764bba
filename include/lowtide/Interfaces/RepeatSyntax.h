//===- RepeatSyntax.h - text and rules that loops share ---------*- C++ -*-===//
//
// Ops whose one block runs several times, on parts of dimension 0 of its first operands (RepeatInterface says how): how
// they are written, and what holds for all of them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpImplementation.h"

namespace lowtide {

/// Whether a loop walks from the end, which its attribute `reversed` says: round k sees and makes part rounds - 1 - k.
bool isReversed(mlir::Operation *loop);

/// The type of all rounds' parts one after another, and of one round's part.
mlir::RankedTensorType getWholeOfRounds(mlir::RankedTensorType part, int64_t rounds);
mlir::RankedTensorType getPartOfRounds(mlir::RankedTensorType whole, int64_t rounds);

/// `rounds [reversed] keyword(%argument = %operand, …)… : (types) -> (types) { … }`, a list for each keyword; operands
/// of the first are sliced. Sets the attributes `rounds`, `reversed` and `operandSegmentSizes`.
mlir::ParseResult parseRepeat(mlir::OpAsmParser &parser, mlir::OperationState &result,
                              llvm::ArrayRef<llvm::StringRef> keywords);
void printRepeat(mlir::OpAsmPrinter &p, mlir::Operation *op, llvm::ArrayRef<llvm::StringRef> keywords,
                 llvm::ArrayRef<unsigned> sizes);
/// Builds a loop's block with its arguments and no terminator; `rows`: types of one round's.
void buildRepeat(mlir::OpBuilder &builder, mlir::OperationState &state, int64_t rounds, bool reversed,
                 llvm::ArrayRef<mlir::ValueRange> lists, mlir::TypeRange rows);
llvm::LogicalResult verifyRepeat(mlir::Operation *op, int64_t rounds, unsigned numSliced);
/// `terminator`: what the block must end with.
llvm::LogicalResult verifyRounds(mlir::Operation *op, int64_t rounds, unsigned numSliced, unsigned numCarried,
                                 llvm::StringRef terminator);

} // namespace lowtide
