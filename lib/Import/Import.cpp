//===- Import.cpp - from a model file to the `onnx` dialect
//-----------------------===//

#include "lowtide/Import/Import.h"

#include "FixedInputs.h"
#include "GraphImporter.h"
#include "StepSignature.h"

#include "lowtide/Recover/StateDictionary.h"

#include "lowtide/Dialect/ONNX/ONNX.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lowtide;

FailureOr<OwningOpRef<ModuleOp>> lowtide::importOnnx(OnnxFile &file, ArrayRef<InitializerInfo> infos,
                                                     const ImportOptions &options) {
  MLIRContext &context = file.getContext();
  context.loadDialect<onnx::ONNXDialect, func::FuncDialect>();
  DimBinding dims(file, options);
  if (!dims.isValid() || failed(checkFixedInputs(file, options)))
    return failure();
  if (std::vector<std::string> unbound = dims.findUnbound(); !unbound.empty()) {
    file.getReport().error(FailureKind::Usage, "the model has dimensions without a size",
                           "type: " + llvm::join(unbound, " "));
    return failure();
  }
  if (!isStep(file.getModel()))
    dims.reportAssumedBatch();
  FailureOr<OwningOpRef<ModuleOp>> module = GraphImporter(file, infos, dims, options).run();
  if (failed(module) || file.getReport().hasErrors())
    return failure();
  if (isStep(file.getModel()))
    annotateStep(file.getModel(), *(*module)->getBody()->getOps<func::FuncOp>().begin());
  else if (ArrayAttr saved = listSavedConstants(file, infos, &context); !saved.empty())
    (**module)->setAttr(savedAttrName, saved);
  if (failed(verify(**module)))
    return failure();
  return module;
}

FailureOr<OwningOpRef<ModuleOp>> lowtide::importOnnx(OnnxFile &file, const ImportOptions &options) {
  FailureOr<std::vector<InitializerInfo>> infos = classifyInitializers(file, options);
  if (failed(infos))
    return failure();
  return importOnnx(file, *infos, options);
}
