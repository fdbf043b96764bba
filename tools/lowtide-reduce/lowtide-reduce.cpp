//===- lowtide-reduce.cpp - shrinks IR that shows a bug ---------*- C++ -*-===//
//
// MLIR's reducer with our dialects and passes, and one that shrinks what is inside a function.
//
//===----------------------------------------------------------------------===//

#include "ShrinkFunctions.h"
#include "lowtide/InitAll.h"
#include "lowtide/Support/TextPlaces.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "llvm/Support/MemoryBuffer.h"

/// Whether a file that the command line names is no text for MLIR's parser; the driver opens it by itself.
static bool refusesText(llvm::ArrayRef<char *> words) {
  for (llvm::StringRef word : words.drop_front()) {
    if (word.starts_with("-"))
      continue;
    if (auto file = llvm::MemoryBuffer::getFile(word); file && lowtide::printHugeResultNumber(**file))
      return true;
  }
  return false;
}

int main(int argc, char **argv) {
  if (refusesText({argv, size_t(argc)}))
    return 1;
  mlir::DialectRegistry registry;
  lowtide::registerAllDialects(registry);
  lowtide::registerAllPasses();
  lowtide::registerShrinkFunctions();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
}
