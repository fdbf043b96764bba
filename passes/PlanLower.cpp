//===- PlanLower.cpp - steps on tensors become programs on bytes ----------===//
//
// 1. Lay out what all entries share (PlanLayout).
// 2. Per entry, decide which values share bytes (Analysis/StepStorage), asking
//    code generation which operands a kernel may overwrite.
// 3. Write the program: bindings, a buffer per transient storage, launches,
//    library calls and copies in textual order, a new value number per write.
//    A loop is a repeat, with the numbers of what it carries before and after a
//    round (EntryLowering).
//
//===----------------------------------------------------------------------===//
#include "PlanLower.h"
#include "EntryLowering.h"
#include "LibraryCalls.h"
#include "Offload.h"
#include "PlanLayout.h"
#include "StepPass.h"
#include "lowtide/Analysis/MemoryProfile.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Adapters.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/RuntimeQuery/LibraryQuery.h"
#include "lowtide/RuntimeQuery/PlanProof.h"
#include "lowtide/Serialize/PlanProto.h"
#include "lowtide/Support/OptionChoices.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_PLANLOWER
#include "Passes.h.inc"
} // namespace lowtide

/// The fields of `plan.source` for argument `i`, from what the importer noted; null if no file holds it, and nothing
/// says how it starts.
static DictionaryAttr getSourceFields(func::FuncOp entry, unsigned i, StringRef name) {
  Builder b(entry.getContext());
  if (auto init = entry.getArgAttrOfType<StringAttr>(i, train::initAttrName))
    return b.getDictionaryAttr(b.getNamedAttr("random_init", init));
  auto initializer = entry.getArgAttrOfType<StringAttr>(i, "onnx.initializer");
  if (!initializer)
    return {};
  NamedAttrList fields;
  fields.set("initializer", initializer);
  ArrayRef<int64_t> stored = cast<RankedTensorType>(entry.getArgumentTypes()[i]).getShape();
  SmallVector<int64_t> original(stored);
  if (auto permutation = entry.getArgAttrOfType<DenseI64ArrayAttr>(i, "onnx.transposed")) {
    fields.set("permutation", permutation);
    for (auto [to, from] : llvm::enumerate(permutation.asArrayRef()))
      if (from >= 0 && from < int64_t(original.size()) && to < stored.size())
        original[from] = stored[to];
  }
  if (auto shape = entry.getArgAttrOfType<DenseI64ArrayAttr>(i, "onnx.source_shape"))
    original = llvm::to_vector(shape.asArrayRef());
  fields.set("original_dims", b.getDenseI64ArrayAttr(original));
  if (auto rows = entry.getArgAttrOfType<DenseI64ArrayAttr>(i, "onnx.source_rows"); rows && rows.size() == 2) {
    fields.set("slice_axis", b.getI64IntegerAttr(0));
    fields.set("slice_start", b.getI64IntegerAttr(rows[0]));
    fields.set("slice_size", b.getI64IntegerAttr(rows[1] - rows[0]));
  }
  for (StringRef field : {"use_nodes", "use_operands", "image_initializers"})
    if (Attribute value = entry.getArgAttr(i, ("onnx." + field).str()))
      fields.set(field, value);
  if (auto coded = entry.getArgAttrOfType<DictionaryAttr>(i, train::codedAttrName))
    fields.append(coded.begin(), coded.end());
  if (auto tied = entry.getArgAttrOfType<ArrayAttr>(i, "onnx.tied")) {
    SmallVector<Attribute> others;
    for (auto other : tied.getAsRange<StringAttr>())
      if (other.getValue() != name)
        others.push_back(other);
    if (!others.empty())
      fields.set("tied_names", b.getArrayAttr(others));
  }
  return fields.getDictionary(entry.getContext());
}

/// A `plan.source` for every argument that comes from an initializer or starts from random numbers, once per name, and
/// for what else the exporting module saves (lowtide/Recover/StateDictionary.h).
static void writeSources(ModuleOp module, ArrayRef<func::FuncOp> entries, OpBuilder &builder) {
  llvm::StringSet<> seen, saved;
  SmallVector<DictionaryAttr> values;
  if (auto list = module->getAttrOfType<ArrayAttr>("onnx.saved"))
    for (auto entry : list.getAsRange<DictionaryAttr>()) {
      if (entry.contains("value"))
        values.push_back(entry);
      else if (auto name = entry.getAs<StringAttr>("name"))
        saved.insert(name.getValue());
    }
  for (func::FuncOp entry : entries)
    for (unsigned i = 0; i < entry.getNumArguments(); ++i) {
      BindingFacts facts = *BindingFacts::get(entry.getArgAttr(i, train::bindingAttrName));
      DictionaryAttr fields = getSourceFields(entry, i, facts.name);
      if (!fields || !seen.insert(facts.name.getValue()).second)
        continue;
      if (saved.contains(facts.name.getValue())) {
        NamedAttrList more(fields);
        more.set("saved", builder.getUnitAttr());
        fields = more.getDictionary(builder.getContext());
      }
      plan::SourceOp::create(builder, entry.getLoc(), facts.name.getValue(), fields);
    }
  for (DictionaryAttr entry : values) {
    auto name = entry.getAs<StringAttr>("name");
    if (!name || !seen.insert(name.getValue()).second)
      continue;
    NamedAttrList fields;
    fields.set("saved", builder.getUnitAttr());
    fields.set("value", entry.get("value"));
    if (Attribute updates = entry.get("updates"))
      fields.set("updates_per_step", updates);
    plan::SourceOp::create(builder, module.getLoc(), name.getValue(), fields.getDictionary(builder.getContext()));
  }
}

/// Creates the arenas of the memories that values are moved to.
static void createOtherArenas(ArrayRef<func::FuncOp> entries, const TargetInfo &target,
                              llvm::function_ref<void(const PlanLayout::Arena &)> create) {
  LargestMoves largest;
  for (func::FuncOp entry : entries)
    for (auto [space, bytes] : findMoves(entry))
      largest[space] = std::max(largest[space], bytes);
  for (auto [space, bytes] : largest) {
    create({plan::ArenaRole::Transient, getSpaceName(space).str(), 0, 0, plan::ArenaSpace(space), getAlignment(space)});
    if (const uint64_t staging = countStagingBytes(target, {{space, bytes}}))
      create({plan::ArenaRole::Staging, "staging", staging, 0, plan::ArenaSpace::Device, getAlignment(space)});
  }
}

namespace {

class PlanLower : public StepPass<lowtide::impl::PlanLowerBase<PlanLower>> {
public:
  using StepPass::StepPass;
  PlanLower(codegen::KernelModule &kernels, PlanLowerSettings settings)
      : given(&kernels), settings(std::move(settings)) {}

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<plan::PlanDialect>();
    codegen::KernelModule::registerDialects(registry);
  }

  void runOnSteps() override {
    if (given)
      return failed(lower(*given)) ? signalPassFailure() : void();
    if (failed(checkOption(getOperation(), "weights", weights)))
      return signalPassFailure();
    settings = {"lowtide", isOn(weights)};
    codegen::KernelModule own(&getContext(), codegen::CodegenOptions::get(target));
    if (failed(lower(own)))
      return signalPassFailure();
    // The plan's text is all that an artifact is made of.
    if (!own.getNumKernels())
      return;
    ModuleOp functions = own.release().release();
    functions.setSymName(kernelsModuleName);
    getOperation().push_back(functions);
  }

private:
  LogicalResult lower(codegen::KernelModule &kernels);
  LogicalResult addKernels(func::FuncOp entry, codegen::KernelModule &kernels, OpBuilder &builder,
                           llvm::DenseMap<Operation *, codegen::KernelInfo> &infos, KernelDeclarations &declared);

  codegen::KernelModule *given = nullptr;
  PlanLowerSettings settings;
};

} // namespace

LogicalResult PlanLower::addKernels(func::FuncOp entry, codegen::KernelModule &kernels, OpBuilder &builder,
                                    llvm::DenseMap<Operation *, codegen::KernelInfo> &infos,
                                    KernelDeclarations &declared) {
  auto result = entry.walk([&](nn::KernelOp kernel) {
    if (isLibraryCall(kernel) || kernel.isEmpty())
      return WalkResult::advance();
    FailureOr<codegen::KernelInfo> info = kernels.add(kernel);
    if (failed(info))
      return WalkResult::interrupt();
    LaunchTypes types(kernel, *info);
    if (info->partial) {
      LaunchTypes first(kernel, *info->partial, info->inPlace);
      first.writes.push_back(getSumsType(*info, builder));
      types.reads.push_back(getSumsType(*info, builder));
      declared.add(*info->partial, first, builder, kernel.getLoc());
    }
    declared.add(*info, types, builder, kernel.getLoc());
    infos[kernel] = *info;
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Says what a program does, and in how many bytes before they have addresses.
static void report(plan::ProgramOp program) {
  size_t launches = 0, calls = 0, copies = 0, buffers = 0;
  uint64_t bufferBytes = 0;
  program.walk([&](Operation *op) {
    launches += isa<plan::LaunchOp>(op);
    calls += isa<plan::CallOp>(op);
    copies += isa<plan::CopyOp>(op);
    if (auto buffer = dyn_cast<plan::BufferOp>(op)) {
      ++buffers;
      bufferBytes += buffer.getBytes();
    }
  });
  program.emitRemark("@") << program.getSymName() << ": " << launches << " launches, " << calls << " library calls, "
                          << copies << " copies, " << buffers << " buffers of " << formatBytes(bufferBytes)
                          << " in all";
}

LogicalResult PlanLower::lower(codegen::KernelModule &kernels) {
  auto entries = llvm::to_vector(getOperation().getOps<func::FuncOp>());
  if (entries.empty())
    return getOperation().emitError("has no step: expected a function @train, @eval or @gradient");
  FailureOr<PlanLayout> layout = PlanLayout::compute(entries, target);
  if (failed(layout))
    return failure();

  OpBuilder builder(&getContext());
  builder.setInsertionPointToEnd(getOperation().getBody());
  auto digest = getOperation()->getAttrOfType<StringAttr>(modelDigestAttrName);
  auto module = plan::ModuleOp::create(builder, getOperation().getLoc(), getPlanFormatVersion(), settings.producer,
                                       target.getArtifactTarget(), target.threadsMax, digest ? digest.getValue() : "",
                                       getOperation()->getAttrOfType<DictionaryAttr>(train::scheduleAttrName),
                                       getOperation()->getAttrOfType<DictionaryAttr>(train::optimizerAttrName),
                                       getOperation()->getAttrOfType<ArrayAttr>(train::adaptersAttrName));
  builder.createBlock(&module.getBody());
  auto create = [&](const PlanLayout::Arena &arena) {
    plan::ArenaOp::create(builder, module.getLoc(), arena.name, arena.role, arena.space, arena.bytes, arena.alignment,
                          settings.weights ? arena.imageBytes : 0);
  };
  llvm::for_each(layout->getBoundArenas(), create);
  create({plan::ArenaRole::Transient, "transient"});
  createOtherArenas(entries, target, create);
  llvm::for_each(layout->getRuntimeArenas(), create);

  llvm::DenseMap<Operation *, codegen::KernelInfo> infos;
  KernelDeclarations declared;
  for (func::FuncOp entry : entries)
    if (failed(addKernels(entry, kernels, builder, infos, declared)))
      return failure();
  writeSources(getOperation(), entries, builder);

  auto mayOverwrite = [&](Operation *op, unsigned result, unsigned operand) {
    auto info = infos.find(op);
    if (info == infos.end())
      return result == 0 && isLibraryCall(op) && getOverwritableOperand(cast<LibraryCallInterface>(op)) == int(operand);
    return llvm::is_contained(info->second.inPlace[result], int(operand));
  };
  for (func::FuncOp entry : entries) {
    FailureOr<StepStorage> storage = StepStorage::compute(entry, mayOverwrite);
    if (failed(storage) ||
        failed(EntryLowering(entry, *layout, module, kernels, infos, declared, std::move(*storage), settings.weights)
                   .run()))
      return failure();
  }
  for (func::FuncOp entry : entries)
    entry.erase();
  llvm::for_each(module.getBody().getOps<plan::ProgramOp>(), report);
  return success();
}

std::unique_ptr<Pass> lowtide::createPlanLower(codegen::KernelModule &kernels, PlanLowerSettings settings) {
  return std::make_unique<PlanLower>(kernels, std::move(settings));
}
