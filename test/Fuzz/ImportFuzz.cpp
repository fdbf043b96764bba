//===- ImportFuzz.cpp - the importer against hostile models ----------------===//
//
// Well-formedness and limits, classification of initializers, IR. Messages are swallowed.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Import/Import.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static mlir::MLIRContext *context = [] {
    auto *made = new mlir::MLIRContext(mlir::MLIRContext::Threading::DISABLED);
    made->getDiagEngine().registerHandler([](mlir::Diagnostic &) { return mlir::success(); });
    return made;
  }();
  lowtide::OnnxFile file(*context, "model.onnx");
  if (mlir::failed(file.loadBytes({reinterpret_cast<const char *>(data), size})))
    return 0;
  lowtide::ImportOptions options;
  options.batch = 2;
  (void)lowtide::importOnnx(file, options);
  return 0;
}
