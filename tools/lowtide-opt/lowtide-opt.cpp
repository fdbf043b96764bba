//===- lowtide-opt.cpp - runs passes on textual IR --------------*- C++ -*-===//
//
// MLIR's optimizer driver with our dialects and passes.
//
//===----------------------------------------------------------------------===//

#include "lowtide/InitAll.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  lowtide::registerAllDialects(registry);
  lowtide::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Lowtide optimizer\n", registry));
}
