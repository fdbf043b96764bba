//===- Translations.cpp - plans as bytes, for lowtide-translate -----------===//
//
// `--export-plan` writes the `plan` section of an artifact, `--import-plan` reads one.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Serialize/Translations.h"
#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Serialize/PlanProto.h"
#include "lowtide/Support/TextPlaces.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "runtime/Artifact.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace lowtide;

static LogicalResult exportPlanBytes(ModuleOp module, llvm::raw_ostream &os) {
  auto plans = module.getOps<plan::ModuleOp>();
  if (!llvm::hasSingleElement(plans))
    return module.emitError("expected one plan.module");
  plan::Plan proto;
  if (failed(exportPlan(*plans.begin(), proto)))
    return failure();
  os << serializePlan(proto);
  return success();
}

static OwningOpRef<Operation *> importPlanBytes(llvm::SourceMgr &sources, MLIRContext *context) {
  const llvm::MemoryBuffer *buffer = sources.getMemoryBuffer(sources.getMainFileID());
  Location loc = FileLineColLoc::get(context, buffer->getBufferIdentifier(), 0, 0);
  auto proto = rt::parsePlan({buffer->getBufferStart(), buffer->getBufferSize()});
  if (!proto) {
    emitError(loc) << proto.status().str();
    return {};
  }
  OwningOpRef<plan::ModuleOp> plan = importPlan(*proto, loc);
  if (!plan)
    return {};
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  module->getBody()->push_back(plan.release());
  return OwningOpRef<Operation *>(module.release());
}

void lowtide::registerPlanTranslations() {
  // Not by TranslateFromMLIRRegistration, which reads a text before anyone has looked at it.
  static TranslateRegistration toBytes(
      "export-plan", "plan dialect to protobuf",
      [](const std::shared_ptr<llvm::SourceMgr> &sources, llvm::raw_ostream &os, MLIRContext *context) {
        DialectRegistry registry;
        registry.insert<plan::PlanDialect, func::FuncDialect>();
        codegen::KernelModule::registerDialects(registry); // the kernels next to the plan
        context->appendDialectRegistry(registry);
        if (printHugeResultNumber(*sources->getMemoryBuffer(sources->getMainFileID())))
          return failure();
        OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, context);
        return success(module && succeeded(exportPlanBytes(*module, os)));
      });
  static TranslateToMLIRRegistration fromBytes(
      "import-plan", "protobuf to plan dialect",
      [](llvm::SourceMgr &sources, MLIRContext *context) { return importPlanBytes(sources, context); },
      [](DialectRegistry &registry) { registry.insert<plan::PlanDialect>(); });
}
