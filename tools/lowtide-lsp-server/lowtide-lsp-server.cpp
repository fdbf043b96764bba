//===- lowtide-lsp-server.cpp - editors understand our IR -------*- C++ -*-===//
//
// MLIR's language server with our dialects.
//
//===----------------------------------------------------------------------===//

#include "lowtide/InitAll.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  lowtide::registerAllDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
