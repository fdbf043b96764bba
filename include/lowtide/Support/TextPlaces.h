//===- TextPlaces.h - places in a text, for messages about it ---*- C++ -*-===//
//
// Operations that a text gives locations of their own (`loc("encoder.0")`) have lost the line that they stand on.
// Messages should name both.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_SUPPORT_TEXTPLACES_H
#define LOWTIDE_SUPPORT_TEXTPLACES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/SourceMgr.h"

namespace lowtide {

/// The module that the main buffer of `sources` is, or that its operations are put into; not verified. Each
/// operation's location names where the text defines it: a name keeps the place as its child, an operation without a
/// location has the place alone. Null, with an error in the context, where the text cannot be read.
mlir::OwningOpRef<mlir::ModuleOp> parseWithPlaces(const llvm::SourceMgr &sources, mlir::MLIRContext &context);

/// Gives the operations of `root` the locations that `parseWithPlaces` gives those of the text which `root` was read
/// from. Does nothing where the two are not the same operations.
void addPlaces(mlir::Operation *root, const llvm::SourceMgr &sources);

/// Removes the places in the text of that name from every location below `root`.
void removePlaces(mlir::Operation *root, llvm::StringRef text);

/// Where a text asks for a result (`%0#4294967295`) of a number that no operation reaches; MLIR's parser would reserve
/// memory for as many results and end the process. Null if it does not.
const char *findHugeResultNumber(llvm::StringRef text);
/// What is wrong there.
inline constexpr llvm::StringLiteral hugeResultNumber = "no operation has as many results";
/// Prints that, with the line, for a tool whose driver parses `text` itself; whether it did.
bool printHugeResultNumber(llvm::MemoryBufferRef text);
/// Makes such numbers small enough for the parser to refuse, in as many digits: every place stays what it was.
void boundResultNumbers(std::string &text);

} // namespace lowtide

#endif // LOWTIDE_SUPPORT_TEXTPLACES_H
