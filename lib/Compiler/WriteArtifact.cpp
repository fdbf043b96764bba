//===- WriteArtifact.cpp - the plan of a step, and its artifact --*- C++ -*-===//
//
// Everything that an artifact says is taken from the plan's text, whoever wrote it; the weights alone are the file's.
//
//===----------------------------------------------------------------------===//

#include "Compilation.h"
#include "PlanLower.h"
#include "StepNotes.h"
#include "StepPass.h"
#include "Stopwatch.h"
#include "lowtide/Serialize/Artifact.h"
#include "lowtide/Serialize/PlanProto.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace lowtide;

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

Failure Compilation::makePlan() {
  if (options.from == "plan") {
    plan::ModuleOp plan = findPlan(*module);
    if (!plan || failed(lowtide::checkTarget(plan, plan.getTarget())) ||
        failed(checkKernels(plan, module->lookupSymbol<ModuleOp>(kernelsModuleName))))
      return FailureKind::BadInput;
    return run("plan", buildProofStage, FailureKind::BadInput);
  }
  auto buildLaunches = [&](OpPassManager &passes) { buildLaunchStage(passes, fitStageOptions()); };
  if (Failure failure = run("fitted", buildLaunches, FailureKind::Internal))
    return failure;
  return run(
      "plan", [&](OpPassManager &passes) { buildPlanStage(passes, options); },
      isText() ? FailureKind::BadInput : FailureKind::Verification);
}

Failure Compilation::checkWeightsKnown() {
  const bool needsWeights =
      options.from == "plan"
          ? llvm::any_of((*module).getOps<plan::ModuleOp>(),
                         [](plan::ModuleOp plan) {
                           return llvm::any_of(plan.getBlock().getOps<plan::ArenaOp>(),
                                               [](plan::ArenaOp arena) { return arena.getImageBytes() != 0; });
                         })
          : options.weights;
  if (!isText() || options.emit != "artifact" || !needsWeights || !sources.weights.empty() || sources.reader)
    return {};
  return refuse(FailureKind::Usage,
                "an artifact needs the weights of the ONNX file, which --from=" + options.from + " does not have",
                {std::string("--weights-from=model.onnx names it; or ") +
                 (options.from == "plan" ? "make the plan with --no-weights" : "take --no-weights") +
                 ", or stop at --emit=plan"});
}

Failure Compilation::openPlan() {
  plan = findPlan(*module);
  if (!plan)
    return FailureKind::Internal;
  const size_t numKernels = llvm::range_size(plan.getBlock().getOps<plan::KernelOp>());
  OwningOpRef<ModuleOp> functions = takeKernels(*module);
  if (!functions)
    functions = ModuleOp::create(UnknownLoc::get(&context));
  const std::optional<TargetInfo> machine = findTarget(plan.getTarget());
  if (!machine)
    return FailureKind::Internal;
  codegen::CodegenOptions codegenOptions = codegen::CodegenOptions::get(*machine);
  codegenOptions.cacheFolder = codegen::findKernelCache(options.kernelCache);
  kernels = std::make_unique<codegen::KernelModule>(std::move(functions), numKernels, codegenOptions);
  return options.emit == "artifact" ? openWeights() : checkPtx(*machine);
}

LogicalResult Compilation::readWeights(StringRef initializer, llvm::function_ref<void(ArrayRef<char>)> sink) {
  return sources.reader ? sources.reader(initializer, sink) : file->readInitializer(initializer, sink);
}

Failure Compilation::writeArtifact(const std::string &path, Written &written) {
  const ArtifactOptions artifactOptions{report::writeNotes(noteProgram(*module))};
  ArtifactSummary summary;
  auto reader = [&](StringRef name, llvm::function_ref<void(ArrayRef<char>)> sink) { return readWeights(name, sink); };
  const Stopwatch watch;
  if (failed(lowtide::writeArtifact(plan, *kernels, reader, artifactOptions, path, &summary)))
    return file && file->getFailure() != FailureKind::None ? file->getFailure() : FailureKind::Io;
  diagnostics.log(LogLevel::Info, "artifact",
                  path + ": written in " + watch.text() + ", code of " + llvm::Twine(summary.keptKernels) +
                      " kernels kept from earlier compiles");
  written.kernels = kernels->getNumKernels();
  written.planBytes = summary.planBytes;
  written.paramsBytes = summary.paramsBytes;
  written.codeBytes = summary.codeBytes;
  written.keptKernels = summary.keptKernels;
  return {};
}
