//===- lowtide-translate.cpp - between files and IR
//------------------------------------===//
//
// MLIR's translation driver with ours: `--import-onnx`, `--import-onnx-text`,
// `--onnx-text-to-onnx`, `--export-plan`, `--import-plan`.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Import/Translations.h"
#include "lowtide/Serialize/Translations.h"

#include "mlir/Support/LogicalResult.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"

int main(int argc, char **argv) {
  lowtide::registerImportTranslations();
  lowtide::registerPlanTranslations();
  return mlir::failed(mlir::mlirTranslateMain(argc, argv, "Lowtide translation driver\n"));
}
