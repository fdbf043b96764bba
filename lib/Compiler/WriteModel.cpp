//===- WriteModel.cpp - a rewritten step as an ONNX model -------*- C++ -*-===//

#include "Compilation.h"
#include "lowtide/Export/Export.h"
#include "lowtide/Serialize/OnnxModel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lowtide;

Failure Compilation::exportModel() {
  // One graph, one entry: the training step if there is one.
  func::FuncOp step;
  for (StringRef name : {"train", "gradient", "forward", "eval"})
    if (!step && llvm::is_contained(options.entries, name == "forward" ? "train" : name))
      step = module->lookupSymbol<func::FuncOp>(name);
  if (!step)
    return refuse(FailureKind::Usage, "there is no entry to write: none of " + llvm::join(options.entries, ", "));
  if (step.getSymName() == "train" && options.updateTime != "now")
    return refuse(FailureKind::Usage, "--updates=deferred makes a step of two graphs, and a model is written as one",
                  {"leave out --updates=deferred"});
  ExportOptions exportOptions;
  exportOptions.previewOptimizers = options.onnxOptimizers == "preview";
  exportOptions.bf16AsCastPairs = options.onnxBf16 == "cast-pairs";
  if (options.onnxRounds != "auto")
    exportOptions.maxUnrolledRounds = options.onnxRounds == "loop" ? 0 : std::numeric_limits<int64_t>::max();
  FailureOr<func::FuncOp> made = exportStep(step, step.getSymName() == "step" ? "model" : "step", exportOptions);
  if (failed(made))
    return FailureKind::Unsupported;
  model = *made;
  modelOptions.weights = options.onnxWeights && file;
  modelOptions.trainingInfo = options.onnxForm == "training-info";
  if (modelOptions.trainingInfo && (!modelOptions.weights || step.getSymName() != "train"))
    return refuse(FailureKind::Usage,
                  "--onnx-form=training-info writes a training step whose parameters have values in the file",
                  {"leave out --onnx-form for one graph with inputs and outputs for all that is kept"});
  return {};
}

Failure Compilation::writeModel(const std::string &path, Written &written) {
  auto reader = [&](StringRef name, llvm::function_ref<void(ArrayRef<char>)> sink) { return readWeights(name, sink); };
  OnnxModelSummary summary;
  if (failed(writeOnnxModel(model, reader, modelOptions, path, &summary)))
    return file && file->getFailure() != FailureKind::None ? file->getFailure() : FailureKind::Io;
  written.nodes = summary.nodes;
  written.weightBytes = summary.weightBytes;
  written.isExternal = summary.external;
  return {};
}
