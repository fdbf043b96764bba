//===- lowtide-opt.cpp - runs passes on textual IR --------------*- C++ -*-===//
//
// MLIR's optimizer driver with our dialects and passes, and with messages that show the line of the text also where an
// operation's location is a layer of a model.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/Plan/Plan.h"
#include "lowtide/InitAll.h"
#include "lowtide/Support/TextPlaces.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

namespace {

/// Adds the text's lines to the operations' locations, and verifies what MLIR's driver has then left to us.
class AddPlaces : public PassWrapper<AddPlaces, OperationPass<>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AddPlaces)
  explicit AddPlaces(llvm::MemoryBufferRef text) : text(text) {}
  StringRef getArgument() const override { return "add-places"; }
  void runOnOperation() override {
    llvm::SourceMgr sources;
    sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(text), llvm::SMLoc());
    lowtide::addPlaces(getOperation(), sources);
    if (failed(verify(getOperation())))
      signalPassFailure();
  }

private:
  llvm::MemoryBufferRef text;
};

/// Removes those lines from what is printed.
class RemovePlaces : public PassWrapper<RemovePlaces, OperationPass<>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RemovePlaces)
  explicit RemovePlaces(llvm::MemoryBufferRef text) : text(text) {}
  StringRef getArgument() const override { return "remove-places"; }
  void runOnOperation() override { lowtide::removePlaces(getOperation(), text.getBufferIdentifier()); }

private:
  llvm::MemoryBufferRef text;
};

/// Says where passes on functions find none, because the module holds a plan: MLIR does not run them then, and they
/// cannot say so themselves.
class NoteMissingSteps : public PassInstrumentation {
public:
  void runBeforePass(Pass *pass, Operation *op) override {
    auto module = dyn_cast<ModuleOp>(op);
    // What runs passes on operations inside has no name.
    if (!module || !pass->getArgument().empty() || module.getOps<lowtide::plan::ModuleOp>().empty() ||
        !module.getOps<func::FuncOp>().empty())
      return;
    std::string text;
    llvm::raw_string_ostream stream(text);
    pass->printAsTextualPipeline(stream);
    StringRef passes = text;
    if (!passes.consume_front("func.func("))
      return;
    std::string names;
    int depth = 0;
    for (char c : passes.drop_back()) {
      depth += c == '{';
      if (depth == 0)
        names += c;
      depth -= c == '}';
    }
    for (StringRef name : llvm::split(names, ','))
      op->emitRemark() << name << " finds nothing to do: the module holds a plan, and no step";
  }
};

/// As MLIR's driver was asked to, around a text with locations: with its lines.
MlirOptMainConfig showLines(const MlirOptMainConfig &asked, llvm::MemoryBufferRef text) {
  MlirOptMainConfig config = asked;
  config.setPassPipelineSetupFn([asked](PassManager &manager) {
    manager.addInstrumentation(std::make_unique<NoteMissingSteps>());
    return asked.setupPassPipeline(manager);
  });
  // Parts of a split text are not ours to see.
  if (!text.getBuffer().contains("loc(") || !asked.inputSplitMarker().empty() || !asked.shouldVerifyOnParsing() ||
      asked.shouldUseExplicitModule())
    return config;
  config.verifyOnParsing(false);
  config.setPassPipelineSetupFn([asked, text](PassManager &manager) {
    manager.addInstrumentation(std::make_unique<NoteMissingSteps>());
    manager.addPass(std::make_unique<AddPlaces>(text));
    if (failed(asked.setupPassPipeline(manager)))
      return failure();
    manager.addPass(std::make_unique<RemovePlaces>(text));
    return success();
  });
  return config;
}

LogicalResult run(StringRef inputName, StringRef outputName, DialectRegistry &registry) {
  const auto config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldListPasses()) {
    printRegisteredPasses();
    return success();
  }
  if (config.shouldShowDialects()) {
    llvm::outs() << "Available Dialects: ";
    llvm::interleave(registry.getDialectNames(), llvm::outs(), ",");
    llvm::outs() << "\n";
    return success();
  }
  std::string message;
  auto input = openInputFile(inputName, &message);
  auto output = input ? openOutputFile(outputName, &message) : nullptr;
  if (!output) {
    llvm::errs() << message << "\n";
    return failure();
  }
  const llvm::MemoryBufferRef text = *input;
  if (lowtide::printHugeResultNumber(text))
    return failure();
  if (failed(MlirOptMain(output->os(), std::move(input), registry, showLines(config, text))))
    return failure();
  output->keep();
  return success();
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  DialectRegistry registry;
  lowtide::registerAllDialects(registry);
  lowtide::registerAllPasses();
  auto [input, output] = registerAndParseCLIOptions(argc, argv, "Lowtide optimizer\n", registry);
  // Most of our remarks are about a whole step: MLIR would print it after each of them, where nothing else is asked
  // for.
  constexpr StringLiteral printsOperation = "mlir-print-op-on-diagnostic";
  if (llvm::cl::Option *option = llvm::cl::getRegisteredOptions().lookup(printsOperation);
      option && option->getNumOccurrences() == 0)
    option->addOccurrence(/*pos=*/0, printsOperation, "false");
  return asMainReturnCode(run(input, output, registry));
}
