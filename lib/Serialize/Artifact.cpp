//===- Artifact.cpp - writes a `.tide` file -------------------------------===//
//
// Sections in their order: plan, params (by address, gaps are zeros), originals, code (or cubin and ptx), meta.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Serialize/Artifact.h"
#include "WeightConversion.h"
#include "lowtide/Serialize/PlanProto.h"
#include "runtime/ArtifactWriter.h"
#include "runtime/Element.h"
#include "runtime/Halves.h"
#include "runtime/KernelStatements.h"
#include "runtime/OriginalNumbers.h"

#include "llvm/ADT/StringSet.h"
#include <map>

using namespace mlir;
using namespace lowtide;

namespace {

/// A tensor of the image.
struct ImageTensor {
  plan::BindingOp binding;
  uint64_t bytes;
};

/// Writes one artifact; remembers the first failure of the writer.
class ArtifactExport {
public:
  ArtifactExport(plan::ModuleOp module, ParameterReader reader, rt::ArtifactWriter &writer)
      : module(module), reader(reader), writer(writer) {}

  /// Streams the image of all PARAMS arenas.
  LogicalResult writeImage();
  /// Streams the f32 numbers of weights that `plan`, which is this module's, holds in 16 bits.
  LogicalResult writeOriginals(const plan::Plan &plan);
  /// A diagnostic if `status` is a failure.
  LogicalResult check(const rt::Status &status) {
    if (status.isOk())
      return success();
    return module.emitError(status.str());
  }

private:
  LogicalResult writeTensor(ImageTensor tensor);
  LogicalResult writeOriginal(const plan::Binding &binding);

  plan::ModuleOp module;
  ParameterReader reader;
  rt::ArtifactWriter &writer;
  /// Fields of `plan.source` by name, of those that lead to an initializer.
  llvm::StringMap<DictionaryAttr> sources;
  llvm::StringSet<> lows; ///< states that hold lower halves
};

} // namespace

LogicalResult ArtifactExport::writeTensor(ImageTensor tensor) {
  StringRef name = tensor.binding.getName();
  const StringRef lowHalfSuffix(rt::lowHalfSuffix);
  const bool isLow = tensor.binding.getKind() == plan::BindingKind::State && name.ends_with(lowHalfSuffix);
  const DictionaryAttr source = sources.lookup(isLow ? name.drop_back(lowHalfSuffix.size()) : name);
  if (!source)
    return tensor.binding.emitError("'") << name << "' starts from the model file, but no initializer is known for it";
  // A tensor that may be f32 in the file alone is collected, all others pass through.
  const StringRef initializer = source.getAs<StringAttr>("initializer").getValue();
  const WeightConversion conversion(cast<RankedTensorType>(tensor.binding.getType()).getElementType(), source,
                                    isLow || lows.contains((name + lowHalfSuffix).str()));
  std::string collected;
  rt::Status status;
  uint64_t bytes = 0;
  LogicalResult read = reader(initializer, [&](ArrayRef<char> piece) {
    bytes += piece.size();
    if (conversion)
      collected.append(piece.begin(), piece.end());
    else if (status.isOk() && bytes <= tensor.bytes)
      status = writer.append(piece.data(), piece.size());
  });
  if (failed(read))
    return failure();
  if (conversion) {
    if (std::string fault = conversion.apply(collected, tensor.bytes); !fault.empty())
      return tensor.binding.emitError("initializer '") << initializer << "' " << fault;
    bytes = collected.size();
    if (bytes == tensor.bytes)
      status = writer.append(collected.data(), collected.size());
  }
  if (bytes != tensor.bytes)
    return tensor.binding.emitError("initializer '")
           << initializer << "' has " << bytes << " bytes; '" << name << "' needs " << tensor.bytes;
  return check(status);
}

LogicalResult ArtifactExport::writeImage() {
  for (auto source : module.getBlock().getOps<plan::SourceOp>())
    if (source.getFields().getAs<StringAttr>("initializer"))
      sources[source.getName()] = source.getFields();
  for (auto program : module.getBlock().getOps<plan::ProgramOp>())
    for (auto binding : program.getBlock().getOps<plan::BindingOp>())
      if (binding.getKind() == plan::BindingKind::State && binding.getName().ends_with(StringRef(rt::lowHalfSuffix)))
        lows.insert(binding.getName());
  // By address; entries share tensors.
  std::map<std::pair<StringRef, uint64_t>, ImageTensor> tensors;
  for (auto program : module.getBlock().getOps<plan::ProgramOp>())
    for (auto binding : program.getBlock().getOps<plan::BindingOp>())
      if (binding.getFromImage() && binding.getSlice().getBytes())
        tensors.try_emplace({binding.getSlice().getArena().getValue(), binding.getSlice().getOffset()},
                            ImageTensor{binding, binding.getSlice().getBytes()});
  for (auto arena : module.getBlock().getOps<plan::ArenaOp>()) {
    uint64_t position = 0;
    for (auto &[address, tensor] : tensors) {
      if (address.first != arena.getSymName())
        continue;
      if (address.second < position || address.second + tensor.bytes > uint64_t(arena.getImageBytes()))
        return tensor.binding.emitError("does not fit into the image of its arena");
      if (failed(check(writer.appendZeros(address.second - position))) || failed(writeTensor(tensor)))
        return failure();
      position = address.second + tensor.bytes;
    }
    if (failed(check(writer.appendZeros(arena.getImageBytes() - position))))
      return failure();
  }
  return success();
}

LogicalResult ArtifactExport::writeOriginal(const plan::Binding &binding) {
  const StringRef initializer = sources.lookup(binding.name()).getAs<StringAttr>("initializer").getValue();
  std::string numbers;
  if (failed(reader(initializer, [&](ArrayRef<char> piece) { numbers.append(piece.begin(), piece.end()); })))
    return failure();
  const uint64_t expected = rt::originalBytes(binding), narrowBytes = binding.slice().bytes();
  // A file may have some of its weights in 16 bits: they are what f32 numbers round to.
  if (numbers.size() == narrowBytes) {
    std::string wide(expected, '\0');
    const uint64_t element = narrowBytes * sizeof(float) / expected;
    for (uint64_t i = 0; i < narrowBytes / element; ++i)
      rt::storeElement(plan::F32, wide.data() + i * sizeof(float),
                       rt::loadElement(binding.dtype(), numbers.data() + i * element));
    numbers = std::move(wide);
  }
  if (numbers.size() != expected)
    return module.emitError("initializer '") << initializer << "' has " << numbers.size() << " bytes; '"
                                             << binding.name() << "' has " << expected << " bytes of f32 numbers";
  return check(writer.append(numbers.data(), numbers.size()));
}

LogicalResult ArtifactExport::writeOriginals(const plan::Plan &plan) {
  auto kept = rt::findKeptOriginals(plan);
  if (!kept)
    return check(kept.takeStatus());
  llvm::erase_if(*kept, [](const plan::Binding *binding) { return !binding->from_image(); });
  if (kept->empty())
    return success();
  if (failed(check(writer.begin("originals"))))
    return failure();
  for (const plan::Binding *binding : *kept)
    if (failed(writeOriginal(*binding)))
      return failure();
  return check(writer.end());
}

LogicalResult lowtide::writeArtifact(plan::ModuleOp module, codegen::KernelModule &kernels, ParameterReader reader,
                                     const ArtifactOptions &options, StringRef path, ArtifactSummary *summary) {
  plan::Plan proto;
  if (failed(exportPlan(module, proto)))
    return failure();
  std::string plan = serializePlan(proto);
  codegen::KernelCode code;
  if (kernels.getNumKernels()) {
    FailureOr<codegen::KernelCode> linked = kernels.link(rt::stateKernels(proto));
    if (failed(linked))
      return failure();
    code = std::move(*linked);
  }

  auto writer = rt::ArtifactWriter::create(path.str());
  if (!writer)
    return module.emitError(writer.status().str());
  ArtifactExport output(module, reader, **writer);
  if (failed(output.check((*writer)->add("plan", plan))) || failed(output.check((*writer)->begin("params"))) ||
      failed(output.writeImage()))
    return failure();
  uint64_t paramsBytes = (*writer)->sectionBytes();
  if (failed(output.check((*writer)->end())) || failed(output.writeOriginals(proto)))
    return failure();
  const std::pair<const char *, std::string_view> sections[] = {{"code", {code.object.data(), code.object.size()}},
                                                                {"cubin", {code.cubin.data(), code.cubin.size()}},
                                                                {"ptx", code.ptx}};
  uint64_t codeBytes = 0;
  for (auto [name, bytes] : sections) {
    codeBytes += bytes.size();
    if (!bytes.empty() && failed(output.check((*writer)->add(name, bytes))))
      return failure();
  }
  if (!options.meta.empty() && failed(output.check((*writer)->add("meta", options.meta))))
    return failure();
  if (summary)
    *summary = {plan.size(), paramsBytes, codeBytes, code.numKept};
  return output.check((*writer)->finish());
}
