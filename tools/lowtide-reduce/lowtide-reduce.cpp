//===- lowtide-reduce.cpp - shrinks IR that shows a bug ---------*- C++ -*-===//
//
// MLIR's reducer with our dialects and passes, and one that shrinks what is inside a function.
//
//===----------------------------------------------------------------------===//

#include "ShrinkFunctions.h"
#include "lowtide/InitAll.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  lowtide::registerAllDialects(registry);
  lowtide::registerAllPasses();
  lowtide::registerShrinkFunctions();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
}
