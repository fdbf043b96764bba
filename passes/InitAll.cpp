//===- InitAll.cpp - registers everything that Lowtide adds to MLIR -*- C++ -*-===//
//
// Dialects and passes of all rooms.
//
//===----------------------------------------------------------------------===//

#include "lowtide/InitAll.h"
#include "Passes.h"
#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/ONNX/ONNX.h"
#include "lowtide/Dialect/Plan/Plan.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Export/Export.h"
#include "lowtide/Pipeline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void lowtide::registerAllDialects(DialectRegistry &registry) {
  registry.insert<func::FuncDialect, nn::NNDialect, onnx::ONNXDialect, plan::PlanDialect, train::TrainDialect>();
  codegen::KernelModule::registerDialects(registry);
  registerOnnxForms(registry);
}

void lowtide::registerAllPasses() {
  registerLowtidePasses();
  registerStagePipelines();
  mlir::registerTransformsPasses();
}
