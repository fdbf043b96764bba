//===- WriteArtifact.cpp - the plan of a step, and its artifact --*- C++ -*-===//
//
// Everything that an artifact says is taken from the plan's text, whoever wrote it; the weights alone are the file's.
//
//===----------------------------------------------------------------------===//

#include "Compile.h"
#include "OptionChecks.h"
#include "PlanLower.h"
#include "StepNotes.h"
#include "StepPass.h"
#include "StepSummary.h"
#include "lowtide/Codegen/Chips.h"
#include "lowtide/Target/Artifact.h"
#include "lowtide/Target/PlanProto.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::driver;

/// Takes the functions of a plan's kernels out of its module; empty where it has none.
static OwningOpRef<ModuleOp> takeKernels(ModuleOp module) {
  OwningOpRef<ModuleOp> functions = module.lookupSymbol<ModuleOp>(kernelsModuleName);
  if (functions) {
    (*functions)->remove();
    functions->setSymNameAttr({});
  }
  return functions;
}

/// The only plan of a module; null, with an error, where there is none or are several.
static plan::ModuleOp findPlan(ModuleOp module) {
  auto plans = module.getOps<plan::ModuleOp>();
  if (llvm::hasSingleElement(plans))
    return *plans.begin();
  module.emitError("expected one plan.module") << (plans.empty() ? "; there is none" : "; there are several");
  return {};
}

/// Refuses a plan that names kernels of which nothing can be made.
static LogicalResult checkKernels(plan::ModuleOp plan, ModuleOp functions) {
  llvm::StringSet<> known;
  if (functions)
    functions.walk([&](SymbolOpInterface symbol) { known.insert(symbol.getName()); });
  for (auto kernel : plan.getBlock().getOps<plan::KernelOp>())
    if (!known.contains(kernel.getSymName()))
      return kernel.emitError("no function @")
             << kernel.getSymName() << " in the module @" << kernelsModuleName << ", of which its code would be made";
  return success();
}

int Compilation::makePlan() {
  if (options.from == "plan") {
    plan::ModuleOp plan = findPlan(*module);
    if (!plan || failed(lowtide::checkTarget(plan, plan.getTarget())) ||
        failed(checkKernels(plan, module->lookupSymbol<ModuleOp>(kernelsModuleName))))
      return exitBadInput;
    return run("plan", buildProofStage, exitBadInput);
  }
  auto buildLaunches = [&](OpPassManager &passes) { buildLaunchStage(passes, fitStageOptions()); };
  if (int code = run("fitted", buildLaunches, exitInternal))
    return code;
  PlanStageOptions stage;
  stage.target = codegen::getFullTarget(options.target);
  stage.threadsMax = static_cast<unsigned>(options.threadsMax);
  stage.weights = options.weights;
  return run(
      "plan", [&](OpPassManager &passes) { buildPlanStage(passes, stage); },
      isText() ? exitBadInput : exitVerification);
}

int Compilation::checkWeightsKnown() const {
  const bool needsWeights =
      options.from == "plan"
          ? llvm::any_of((*module).getOps<plan::ModuleOp>(),
                         [](plan::ModuleOp plan) {
                           return llvm::any_of(plan.getBlock().getOps<plan::ArenaOp>(),
                                               [](plan::ArenaOp arena) { return arena.getImageBytes() != 0; });
                         })
          : options.weights;
  if (!isText() || options.emit != "artifact" || !needsWeights || !options.weightsFrom.empty())
    return exitOk;
  printError("an artifact needs the weights of the ONNX file, which --from=" + options.from + " does not have");
  printNote("--weights-from=model.onnx names it; or " +
            llvm::Twine(options.from == "plan" ? "make the plan with --no-weights" : "take --no-weights") +
            ", or stop at --emit=plan");
  return exitUsage;
}

int Compilation::planAndWrite() {
  if (int code = makePlan())
    return code;
  if (options.emit == "plan")
    return print();
  plan::ModuleOp plan = findPlan(*module);
  if (!plan)
    return exitInternal;
  const size_t numKernels = llvm::range_size(plan.getBlock().getOps<plan::KernelOp>());
  OwningOpRef<ModuleOp> functions = takeKernels(*module);
  if (!functions)
    functions = ModuleOp::create(UnknownLoc::get(&context));
  codegen::CodegenOptions codegenOptions = codegen::CodegenOptions::get(codegen::getMachine(plan.getTarget()));
  codegenOptions.cacheFolder = codegen::findKernelCache(options.kernelCache);
  codegen::KernelModule kernels(std::move(functions), numKernels, codegenOptions);
  if (options.emit != "artifact")
    return printKernels(kernels, plan.getTarget());
  if (int code = openWeights())
    return code;
  const ArtifactOptions artifactOptions{report::writeNotes(noteProgram(*module))};
  ArtifactSummary summary;
  auto reader = [&](StringRef name, llvm::function_ref<void(ArrayRef<char>)> sink) {
    return file->readInitializer(name, sink);
  };
  const config::Stopwatch watch;
  if (failed(writeArtifact(plan, kernels, reader, artifactOptions, options.output, &summary)))
    return file && file->getExitCode() ? file->getExitCode() : exitIo;
  options.log.info("artifact", options.output + ": written in " + watch.text() + ", code of " +
                                   std::to_string(summary.keptKernels) + " kernels kept from earlier compiles");
  if (options.verbosity >= 0 && options.command == Command::Compile) {
    llvm::errs() << "wrote " << options.output << ": " << kernels.getNumKernels() << " kernels, plan "
                 << summary.planBytes << " bytes, params " << summary.paramsBytes << " bytes, code "
                 << summary.codeBytes << " bytes\n";
    if (plan::Plan proto; succeeded(exportPlan(plan, proto)))
      printStepSummary(report::buildReport(proto, artifactOptions.meta, options.output), llvm::errs());
  }
  return exitOk;
}
