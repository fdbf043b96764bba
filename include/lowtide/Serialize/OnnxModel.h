//===- OnnxModel.h - writes a graph as an .onnx file ------------*- C++ -*-===//
//
// A function of `onnx` nodes becomes a model that other runtimes execute (docs/onnx-model.md).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lowtide {

/// Streams the data of an initializer of the model file in pieces: little endian, dense, row-major. Fails and says why.
using InitializerReader = llvm::function_ref<llvm::LogicalResult(llvm::StringRef initializer,
                                                                 llvm::function_ref<void(llvm::ArrayRef<char>)>)>;

struct OnnxModelOptions {
  /// Whether tensors of the model file become default values of their inputs; otherwise they must be fed.
  bool weights = true;
  /// Weights beyond this many bytes go into `<file>.data` beside the model.
  uint64_t embedLimit = uint64_t(1) << 30;
  /// Parts the step into inference graph and TrainingInfoProto; needs the weights.
  bool trainingInfo = false;
};

/// What went into a file.
struct OnnxModelSummary {
  uint64_t nodes = 0, weightBytes = 0;
  bool external = false;
};

/// Writes `model`, as `exportStep` makes it, to `path`. Every argument becomes a graph input of its binding's name;
/// one that the model file holds gets its data as initializer of that name, a default that feeding overrides. A result
/// that updates `NAME` is called `NAME.new`. Bindings are metadata of inputs and outputs; optimizer and schedule of the
/// module are metadata of the model. Fails with a diagnostic when a weight is missing or has another size, or when a
/// file cannot be written.
llvm::LogicalResult writeOnnxModel(mlir::func::FuncOp model, InitializerReader reader, const OnnxModelOptions &options,
                                   llvm::StringRef path, OnnxModelSummary *summary = nullptr);

} // namespace lowtide
