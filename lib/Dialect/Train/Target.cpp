//===- Target.cpp - the target of a module ----------------------*- C++ -*-===//
//
// The attribute `train.target`: its figures as plain structs and back, and what is wrong with them.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/Train/Target.h"
#include "TargetSyntax.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::train;

using EmitError = function_ref<InFlightDiagnostic()>;

FailureOr<TargetKind> FieldParser<TargetKind>::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  std::string name;
  // A keyword has no dashes: "cuda-emulated" is two.
  do {
    StringRef word;
    if (parser.parseKeyword(&word))
      return failure();
    name += (name.empty() ? "" : "-") + word.str();
  } while (succeeded(parser.parseOptionalMinus()));
  if (std::optional<TargetKind> kind = findTargetKind(name))
    return *kind;
  return parser.emitError(loc, "kind is '") << name << "'; there are cpu, cuda, cuda-emulated, reference";
}

AsmPrinter &lowtide::operator<<(AsmPrinter &printer, TargetKind kind) {
  printer.getStream() << getTargetKindName(kind);
  return printer;
}

namespace {

/// The fields of a dictionary, each of a known name and type.
class Fields {
public:
  Fields(EmitError emitError, StringRef of, DictionaryAttr dictionary)
      : emitError(emitError), of(of), dictionary(dictionary) {}

  /// Refuses other names than these.
  LogicalResult check(ArrayRef<StringRef> known) const {
    for (NamedAttribute field : dictionary)
      if (!llvm::is_contained(known, field.getName().getValue()))
        return emitError() << of << " has no field '" << field.getName().getValue() << "'; its fields are "
                           << llvm::join(known, ", ");
    return success();
  }

  LogicalResult read(StringRef name, double &value) const {
    Attribute found = dictionary.get(name);
    if (auto number = dyn_cast_or_null<FloatAttr>(found))
      value = number.getValueAsDouble();
    else if (auto number = dyn_cast_or_null<IntegerAttr>(found); number && number.getType().isSignlessInteger(64))
      value = double(number.getInt());
    else if (found)
      return emitError() << of << "." << name << " is " << found << "; it is a number";
    return success();
  }

  LogicalResult read(StringRef name, uint64_t &value) const {
    Attribute found = dictionary.get(name);
    auto number = dyn_cast_or_null<IntegerAttr>(found);
    if (found && (!number || !number.getType().isSignlessInteger(64) || number.getInt() < 0))
      return emitError() << of << "." << name << " is " << found << "; it is a number of bytes";
    if (found)
      value = uint64_t(number.getInt());
    return success();
  }

  LogicalResult read(StringRef name, std::string &value) const {
    Attribute found = dictionary.get(name);
    auto text = dyn_cast_or_null<StringAttr>(found);
    if (found && !text)
      return emitError() << of << "." << name << " is " << found << "; it is a name in quotes";
    if (found)
      value = text.str();
    return success();
  }

private:
  EmitError emitError;
  StringRef of;
  DictionaryAttr dictionary;
};

} // namespace

/// The dictionaries of a list; an error names the list.
static LogicalResult readList(EmitError emitError, StringRef name, ArrayAttr list,
                              function_ref<LogicalResult(DictionaryAttr)> read) {
  for (Attribute entry : list ? list.getValue() : ArrayRef<Attribute>()) {
    auto dictionary = dyn_cast<DictionaryAttr>(entry);
    if (!dictionary)
      return emitError() << name << " holds " << entry << "; its entries are {name = …, …}";
    if (failed(read(dictionary)))
      return failure();
  }
  return success();
}

static LogicalResult readFigures(EmitError emitError, DictionaryAttr estimates, DictionaryAttr rates, ArrayAttr memory,
                                 ArrayAttr links, ArrayAttr libraries, TargetInfo &target) {
  Fields planned(emitError, "estimates", estimates);
  if (failed(planned.check({"kernel_flops", "launch_seconds", "library_flops", "memory_bytes_per_second"})) ||
      failed(planned.read("kernel_flops", target.kernelFlops)) ||
      failed(planned.read("launch_seconds", target.launchSeconds)) ||
      failed(planned.read("library_flops", target.libraryFlops)) ||
      failed(planned.read("memory_bytes_per_second", target.bytesPerSecond)))
    return failure();
  if (rates)
    for (NamedAttribute rate : rates) {
      DTypeRate &to = target.rates.emplace_back(rate.getName().str());
      if (failed(Fields(emitError, "rates", rates).read(rate.getName(), to.flopsPerSecond)))
        return failure();
    }
  auto readSpace = [&](DictionaryAttr entry) -> LogicalResult {
    MemorySpace &space = target.memory.emplace_back();
    Fields fields(emitError, "memory", entry);
    return success(succeeded(fields.check({"name", "bytes", "reserved_bytes", "bytes_per_second"})) &&
                   succeeded(fields.read("name", space.name)) && succeeded(fields.read("bytes", space.bytes)) &&
                   succeeded(fields.read("reserved_bytes", space.reservedBytes)) &&
                   succeeded(fields.read("bytes_per_second", space.bytesPerSecond)));
  };
  auto readLink = [&](DictionaryAttr entry) -> LogicalResult {
    MemoryLink &link = target.links.emplace_back();
    Fields fields(emitError, "links", entry);
    return success(succeeded(fields.check({"from", "to", "bytes_per_second", "latency_seconds"})) &&
                   succeeded(fields.read("from", link.from)) && succeeded(fields.read("to", link.to)) &&
                   succeeded(fields.read("bytes_per_second", link.bytesPerSecond)) &&
                   succeeded(fields.read("latency_seconds", link.latencySeconds)));
  };
  if (failed(readList(emitError, "memory", memory, readSpace)) || failed(readList(emitError, "links", links, readLink)))
    return failure();
  for (Attribute library : libraries ? libraries.getValue() : ArrayRef<Attribute>()) {
    auto name = dyn_cast<StringAttr>(library);
    if (!name)
      return emitError() << "libraries holds " << library << "; its entries are names in quotes";
    target.libraries.push_back(name.str());
  }
  return success();
}

LogicalResult TargetAttr::verify(EmitError emitError, StringAttr name, TargetKind kind, StringAttr chip, StringAttr,
                                 uint32_t processors, uint32_t vectorBits, uint32_t threadsMax,
                                 DictionaryAttr estimates, DictionaryAttr rates, ArrayAttr memory, ArrayAttr links,
                                 ArrayAttr libraries) {
  TargetInfo target;
  target.name = name.str(), target.kind = kind, target.chip = chip ? chip.str() : "";
  target.processors = processors, target.vectorBits = vectorBits, target.threadsMax = threadsMax;
  if (failed(readFigures(emitError, estimates, rates, memory, links, libraries, target)))
    return failure();
  if (std::optional<std::string> fault = target.findFault())
    return emitError() << "target '" << target.name << "': " << *fault;
  return success();
}

TargetInfo train::getTargetInfo(TargetAttr attribute) {
  TargetInfo target;
  target.name = attribute.getName().str(), target.kind = attribute.getKind();
  target.chip = attribute.getChip() ? attribute.getChip().str() : "";
  target.title = attribute.getTitle() ? attribute.getTitle().str() : "";
  target.processors = attribute.getProcessors(), target.vectorBits = attribute.getVectorBits();
  target.threadsMax = attribute.getThreadsMax();
  auto isRight =
      readFigures([&] { return emitError(UnknownLoc::get(attribute.getContext())); }, attribute.getEstimates(),
                  attribute.getRates(), attribute.getMemory(), attribute.getLinks(), attribute.getLibraries(), target);
  assert(succeeded(isRight) && "the attribute was verified");
  (void)isRight;
  return target;
}

TargetAttr train::makeTargetAttr(MLIRContext *context, const TargetInfo &target) {
  Builder b(context);
  auto text = [&](const std::string &value) { return value.empty() ? StringAttr() : b.getStringAttr(value); };
  NamedAttrList estimates, rates;
  estimates.set("kernel_flops", b.getF64FloatAttr(target.kernelFlops));
  estimates.set("launch_seconds", b.getF64FloatAttr(target.launchSeconds));
  estimates.set("library_flops", b.getF64FloatAttr(target.libraryFlops));
  estimates.set("memory_bytes_per_second", b.getF64FloatAttr(target.bytesPerSecond));
  for (const DTypeRate &rate : target.rates)
    rates.set(rate.dtype, b.getF64FloatAttr(rate.flopsPerSecond));
  SmallVector<Attribute> memory, links;
  for (const MemorySpace &space : target.memory) {
    NamedAttrList fields;
    fields.set("name", b.getStringAttr(space.name));
    if (space.bytes)
      fields.set("bytes", b.getI64IntegerAttr(int64_t(space.bytes)));
    if (space.reservedBytes)
      fields.set("reserved_bytes", b.getI64IntegerAttr(int64_t(space.reservedBytes)));
    if (space.bytesPerSecond != 0)
      fields.set("bytes_per_second", b.getF64FloatAttr(space.bytesPerSecond));
    memory.push_back(fields.getDictionary(context));
  }
  for (const MemoryLink &link : target.links) {
    NamedAttrList fields;
    fields.set("from", b.getStringAttr(link.from));
    fields.set("to", b.getStringAttr(link.to));
    fields.set("bytes_per_second", b.getF64FloatAttr(link.bytesPerSecond));
    if (link.latencySeconds != 0)
      fields.set("latency_seconds", b.getF64FloatAttr(link.latencySeconds));
    links.push_back(fields.getDictionary(context));
  }
  auto list = [&](ArrayRef<Attribute> entries) { return entries.empty() ? ArrayAttr() : b.getArrayAttr(entries); };
  SmallVector<Attribute> libraries;
  for (const std::string &library : target.libraries)
    libraries.push_back(b.getStringAttr(library));
  return TargetAttr::get(context, b.getStringAttr(target.name), target.kind, text(target.chip), text(target.title),
                         target.processors, target.vectorBits, target.threadsMax, estimates.getDictionary(context),
                         target.rates.empty() ? DictionaryAttr() : rates.getDictionary(context), list(memory),
                         list(links), list(libraries));
}

static TargetAttr findTargetAttr(Operation *op) {
  while (Operation *parent = op->getParentOp()) {
    if (op->hasAttr(targetAttrName))
      break;
    op = parent;
  }
  return op->getAttrOfType<TargetAttr>(targetAttrName);
}

TargetInfo train::getTarget(Operation *op) {
  TargetAttr attribute = findTargetAttr(op);
  return attribute ? getTargetInfo(attribute) : getDefaultTarget();
}

bool train::hasTarget(ModuleOp module) { return module->hasAttr(targetAttrName); }

void train::setTarget(ModuleOp module, const TargetInfo &target) {
  module->setAttr(targetAttrName, makeTargetAttr(module.getContext(), target));
}
