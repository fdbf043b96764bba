//===- WriteModel.cpp - a rewritten step as an ONNX model -------*- C++ -*-===//

#include "Compile.h"
#include "lowtide/Export/Export.h"
#include "lowtide/Target/OnnxModel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::driver;

int Compilation::writeModel() {
  // One graph, one entry: the training step if there is one.
  func::FuncOp step;
  for (StringRef name : {"train", "gradient", "forward", "eval"})
    if (!step && llvm::is_contained(options.entries, name == "forward" ? "train" : name))
      step = module->lookupSymbol<func::FuncOp>(name);
  if (!step) {
    printError("there is no entry to write: none of " + llvm::join(options.entries, ", "));
    return exitUsage;
  }
  ExportOptions exportOptions;
  exportOptions.previewOptimizers = options.onnxOptimizers == "preview";
  exportOptions.bf16AsCastPairs = options.onnxBf16 == "cast-pairs";
  if (options.onnxRounds != "auto")
    exportOptions.maxUnrolledRounds = options.onnxRounds == "loop" ? 0 : std::numeric_limits<int64_t>::max();
  FailureOr<func::FuncOp> model = exportStep(step, step.getSymName() == "step" ? "model" : "step", exportOptions);
  if (failed(model))
    return exitUnsupported;
  OnnxModelOptions modelOptions;
  modelOptions.weights = options.onnxWeights && file;
  modelOptions.trainingInfo = options.onnxForm == "training-info";
  if (modelOptions.trainingInfo && (!modelOptions.weights || step.getSymName() != "train")) {
    printError("--onnx-form=training-info writes a training step whose parameters have values in the file");
    printNote("leave out --onnx-form for one graph with inputs and outputs for all that is kept");
    return exitUsage;
  }
  auto reader = [&](StringRef name, llvm::function_ref<void(ArrayRef<char>)> sink) {
    return file->readInitializer(name, sink);
  };
  OnnxModelSummary summary;
  if (failed(writeOnnxModel(*model, reader, modelOptions, options.output, &summary)))
    return file && file->getExitCode() ? file->getExitCode() : exitIo;
  if (options.verbosity >= 0)
    llvm::errs() << "wrote " << options.output << ": " << summary.nodes << " nodes, weights " << summary.weightBytes
                 << " bytes" << (summary.external ? " beside it" : "") << "\n";
  return exitOk;
}
