//===- Plan.cpp - syntax and invariants of the plan dialect ---------------===//
//
// Registration, the form of slices, verifiers of single ops. What a program
// reads and writes is proved by the plan verifier, not here.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Dialect/Plan/Plan.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::plan;

//===----------------------------------------------------------------------===//
// Slices: `@arena[offset + bytes] : value`
//===----------------------------------------------------------------------===//

static SliceAttr parseSliceBody(AsmParser &parser) {
  StringAttr arena;
  uint64_t offset, bytes, value;
  if (parser.parseSymbolName(arena) || parser.parseLSquare() || parser.parseInteger(offset) || parser.parsePlus() ||
      parser.parseInteger(bytes) || parser.parseRSquare() || parser.parseColon() || parser.parseInteger(value))
    return {};
  return SliceAttr::get(parser.getContext(), FlatSymbolRefAttr::get(arena), offset, bytes, value);
}

static void printSliceBody(AsmPrinter &printer, SliceAttr slice) {
  printer.printSymbolName(slice.getArena().getValue());
  printer << '[' << slice.getOffset() << " + " << slice.getBytes() << "] : " << slice.getValue();
}

Attribute SliceAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  SliceAttr slice = parseSliceBody(parser);
  return slice && succeeded(parser.parseGreater()) ? slice : SliceAttr();
}

void SliceAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printSliceBody(printer, *this);
  printer << '>';
}

Attribute CarryAttr::parse(AsmParser &parser, Type) {
  uint64_t next;
  if (parser.parseLess())
    return {};
  SliceAttr slice = parseSliceBody(parser);
  if (!slice || parser.parseArrow() || parser.parseInteger(next) || parser.parseGreater())
    return {};
  return CarryAttr::get(parser.getContext(), slice, next);
}

void CarryAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printSliceBody(printer, getSlice());
  printer << " -> " << getNext() << '>';
}

//===----------------------------------------------------------------------===//
// Footprints
//===----------------------------------------------------------------------===//

static ParseResult parseInPlace(AsmParser &parser, SmallVector<int64_t> &pairs) {
  return parser.parseCommaSeparatedList([&] {
    return failure(parser.parseInteger(pairs.emplace_back()) || parser.parseKeyword("on") ||
                   parser.parseInteger(pairs.emplace_back()));
  });
}

static void printInPlace(AsmPrinter &printer, ArrayRef<int64_t> pairs) {
  for (size_t i = 0; i + 1 < pairs.size(); i += 2)
    printer << (i ? ", " : "") << pairs[i] << " on " << pairs[i + 1];
}

FootprintAttr FootprintAttr::get(int64_t extent, int64_t grain, TypeRange reads, TypeRange writes,
                                 ArrayRef<int64_t> inPlace, MLIRContext *context) {
  auto flatten = [&](TypeRange types) {
    return ArrayAttr::get(context, llvm::map_to_vector(types, [](Type type) -> Attribute {
                            auto tensor = cast<RankedTensorType>(type);
                            return TypeAttr::get(
                                RankedTensorType::get({tensor.getNumElements()}, tensor.getElementType()));
                          }));
  };
  return get(context, extent, grain, flatten(reads), flatten(writes), inPlace);
}

void KernelOp::addFootprint(FootprintAttr footprint) {
  SmallVector<Attribute> all;
  if (std::optional<ArrayAttr> stated = getFootprints())
    all.append(stated->begin(), stated->end());
  if (llvm::is_contained(all, footprint))
    return;
  all.push_back(footprint);
  setFootprintsAttr(ArrayAttr::get(getContext(), all));
}

LogicalResult KernelOp::verify() {
  auto areFlat = [](ArrayAttr tensors) {
    return llvm::all_of(tensors, [](Attribute attr) {
      auto type = dyn_cast<TypeAttr>(attr);
      auto tensor = type ? dyn_cast<RankedTensorType>(type.getValue()) : RankedTensorType();
      return tensor && tensor.getRank() == 1 && tensor.hasStaticShape();
    });
  };
  for (FootprintAttr footprint :
       getFootprints().value_or(ArrayAttr::get(getContext(), {})).getAsRange<FootprintAttr>()) {
    if (footprint.getReads().size() != uint64_t(getReads()) || footprint.getWrites().size() != uint64_t(getWrites()))
      return emitOpError("has a footprint of ")
             << footprint.getReads().size() << " operands and " << footprint.getWrites().size()
             << " results; the kernel has " << getReads() << " and " << getWrites();
    if (!areFlat(footprint.getReads()) || !areFlat(footprint.getWrites()))
      return emitOpError("has a footprint of something else than static tensors of rank 1");
    for (auto [i, number] : llvm::enumerate(footprint.getInPlace()))
      if (number < 0 || number >= (i % 2 ? getReads() : getWrites()))
        return emitOpError("has a footprint in place of ")
               << (i % 2 ? "operand " : "result ") << number << ", which it does not have";
  }
  return success();
}

static ParseResult parseCarries(OpAsmParser &parser, ArrayAttr &carries) {
  if (failed(parser.parseOptionalKeyword("carries")))
    return success();
  SmallVector<Attribute> list;
  auto parseOne = [&]() -> ParseResult {
    uint64_t next;
    SliceAttr slice = parseSliceBody(parser);
    if (!slice || parser.parseArrow() || parser.parseInteger(next))
      return failure();
    list.push_back(CarryAttr::get(parser.getContext(), slice, next));
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, parseOne))
    return failure();
  carries = parser.getBuilder().getArrayAttr(list);
  return success();
}

static void printCarries(OpAsmPrinter &printer, Operation *, ArrayAttr carries) {
  if (!carries)
    return;
  printer << "carries [";
  llvm::interleaveComma(carries.getAsRange<CarryAttr>(), printer, [&](CarryAttr carry) {
    printSliceBody(printer, carry.getSlice());
    printer << " -> " << carry.getNext();
  });
  printer << ']';
}

static ParseResult parseSlice(OpAsmParser &parser, SliceAttr &slice) {
  slice = parseSliceBody(parser);
  return success(static_cast<bool>(slice));
}

static void printSlice(OpAsmPrinter &printer, Operation *, SliceAttr slice) { printSliceBody(printer, slice); }

static ParseResult parseSlices(OpAsmParser &parser, ArrayAttr &slices) {
  SmallVector<Attribute> list;
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, [&] {
        list.push_back(parseSliceBody(parser));
        return success(static_cast<bool>(list.back()));
      }))
    return failure();
  slices = parser.getBuilder().getArrayAttr(list);
  return success();
}

static void printSlices(OpAsmPrinter &printer, Operation *, ArrayAttr slices) {
  printer << '[';
  llvm::interleaveComma(slices.getAsRange<SliceAttr>(), printer,
                        [&](SliceAttr slice) { printSliceBody(printer, slice); });
  printer << ']';
}

static ParseResult parseOptional(OpAsmParser &parser, StringRef keyword, SliceAttr &slice) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  return parseSlice(parser, slice);
}

static void printOptional(OpAsmPrinter &printer, StringRef keyword, SliceAttr slice) {
  if (!slice)
    return;
  printer << keyword << ' ';
  printSliceBody(printer, slice);
}

static ParseResult parseScratch(OpAsmParser &parser, SliceAttr &slice) {
  return parseOptional(parser, "scratch", slice);
}
static void printScratch(OpAsmPrinter &printer, Operation *, SliceAttr slice) {
  printOptional(printer, "scratch", slice);
}
static ParseResult parseWorkspace(OpAsmParser &parser, SliceAttr &slice) {
  return parseOptional(parser, "workspace", slice);
}
static void printWorkspace(OpAsmPrinter &printer, Operation *, SliceAttr slice) {
  printOptional(printer, "workspace", slice);
}

//===----------------------------------------------------------------------===//
// Walks
//===----------------------------------------------------------------------===//

void plan::forEachSlice(Operation *instruction, llvm::function_ref<void(Access, SliceAttr)> visit) {
  auto all = [&](Access access, ArrayAttr slices) {
    for (SliceAttr slice : slices.getAsRange<SliceAttr>())
      visit(access, slice);
  };
  auto workspace = [&](std::optional<SliceAttr> slice) {
    if (slice)
      visit(Access::Workspace, *slice);
  };
  llvm::TypeSwitch<Operation *>(instruction)
      .Case([&](LaunchOp op) {
        all(Access::Read, op.getReads());
        all(Access::Write, op.getWrites());
        workspace(op.getScratch());
      })
      .Case([&](CallOp op) {
        all(Access::Read, op.getReads());
        all(Access::Write, op.getWrites());
        workspace(op.getWorkspace());
      })
      .Case([&](CopyOp op) {
        visit(Access::Read, op.getSource());
        visit(Access::Write, op.getTarget());
      })
      .Case([&](FillOp op) { visit(Access::Write, op.getTarget()); })
      .Case([&](RepeatOp op) {
        if (std::optional<ArrayAttr> carries = op.getCarries())
          for (CarryAttr carry : carries->getAsRange<CarryAttr>())
            visit(Access::Read, carry.getSlice());
      });
}

void plan::mapSlices(Operation *op, llvm::function_ref<SliceAttr(SliceAttr)> map) {
  auto mapArray = [&](ArrayAttr slices) {
    SmallVector<Attribute> mapped;
    for (SliceAttr slice : slices.getAsRange<SliceAttr>())
      mapped.push_back(map(slice));
    return ArrayAttr::get(op->getContext(), mapped);
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](LaunchOp op) {
        op.setReadsAttr(mapArray(op.getReads()));
        op.setWritesAttr(mapArray(op.getWrites()));
        if (op.getScratch())
          op.setScratchAttr(map(*op.getScratch()));
      })
      .Case([&](CallOp op) {
        op.setReadsAttr(mapArray(op.getReads()));
        op.setWritesAttr(mapArray(op.getWrites()));
        if (op.getWorkspace())
          op.setWorkspaceAttr(map(*op.getWorkspace()));
      })
      .Case([&](CopyOp op) {
        op.setSourceAttr(map(op.getSource()));
        op.setTargetAttr(map(op.getTarget()));
      })
      .Case([&](FillOp op) { op.setTargetAttr(map(op.getTarget())); })
      .Case([&](RepeatOp op) {
        if (std::optional<ArrayAttr> carries = op.getCarries()) {
          SmallVector<Attribute> mapped;
          for (CarryAttr carry : carries->getAsRange<CarryAttr>())
            mapped.push_back(CarryAttr::get(op.getContext(), map(carry.getSlice()), carry.getNext()));
          op.setCarriesAttr(ArrayAttr::get(op.getContext(), mapped));
        }
      })
      .Case([&](BindingOp op) { op.setSliceAttr(map(op.getSlice())); });
}

bool plan::isInstruction(Operation *op) {
  return isa<LaunchOp, CallOp, CopyOp, FillOp, RecordOp, WaitOp, RepeatOp>(op);
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

/// Whether bindings lie in arenas of the role: the host sees what is in them.
static bool isBound(ArenaRole role) {
  return role == ArenaRole::Params || role == ArenaRole::State || role == ArenaRole::IO;
}

/// Of the runtime's own: no slice lies in arenas of the role.
static bool isOfRuntime(ArenaRole role) { return role > ArenaRole::IO; }

LogicalResult ArenaOp::verify() {
  uint64_t alignment = getAlignment();
  if (!llvm::isPowerOf2_64(alignment))
    return emitOpError("alignment ") << alignment << " is not a power of two";
  if (uint64_t(getImageBytes()) > uint64_t(getBytes()))
    return emitOpError("has an image of ") << getImageBytes() << " bytes in " << getBytes() << " bytes";
  const bool mayLieElsewhere = (getRole() == ArenaRole::Params || getRole() == ArenaRole::State) &&
                               (getSpace() == ArenaSpace::File || getSpace() == ArenaSpace::HostPinned);
  if (getSpace() != ArenaSpace::Device && isBound(getRole()) && !mayLieElsewhere)
    return emitOpError("for ")
           << stringifyArenaRole(getRole()) << " lies in space " << stringifyArenaSpace(getSpace())
           << "; what bindings lie in is in space device, but for parameters and optimizer state in "
              "a file or pinned memory of the host";
  return success();
}

LogicalResult SourceOp::verify() {
  for (NamedAttribute field : getFields()) {
    StringRef name = field.getName();
    bool known =
        llvm::StringSwitch<bool>(name)
            .Cases({"initializer", "module_path", "random_init", "codec", "scales"}, isa<StringAttr>(field.getValue()))
            .Cases({"original_dims", "permutation", "use_operands", "coded_dims"},
                   isa<DenseI64ArrayAttr>(field.getValue()))
            .Cases({"tied_names", "use_nodes", "image_initializers"}, isa<ArrayAttr>(field.getValue()))
            .Cases({"slice_axis", "slice_start", "slice_size", "updates_per_step"}, isa<IntegerAttr>(field.getValue()))
            .Cases({"saved", "coded_transposed", "keeps_original"}, isa<UnitAttr>(field.getValue()))
            .Case("value", isa<DenseElementsAttr>(field.getValue()))
            .Default(false);
    if (!known)
      return emitOpError("field '") << name << "' is unknown or of wrong type";
  }
  return success();
}

LogicalResult BindingOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (!type.hasStaticShape() || !type.getElementType().isIntOrFloat())
    return emitOpError("type ") << type << " is not a static tensor of numbers";
  return success();
}

LogicalResult CallOp::verify() {
  for (NamedAttribute attribute : getOptions())
    if (!isa<IntegerAttr, FloatAttr, StringAttr, DenseI64ArrayAttr>(attribute.getValue()))
      return emitOpError("attribute '") << attribute.getName() << "' is not an i64, f64, string or i64 array";
  return success();
}

LogicalResult plan::ModuleOp::verifyRegions() {
  // Names of what a slice may lie in: arenas, and the program's own buffers.
  struct Place {
    uint64_t bytes;
    ArenaSpace space;
    bool isOfRuntime = false;
  };
  llvm::StringMap<Place> arenas;
  llvm::StringMap<KernelOp> kernels;
  for (Operation &op : getBlock()) {
    if (auto arena = dyn_cast<ArenaOp>(op))
      arenas[arena.getSymName()] = {uint64_t(arena.getBytes()), arena.getSpace(), isOfRuntime(arena.getRole())};
    else if (auto kernel = dyn_cast<KernelOp>(op))
      kernels[kernel.getSymName()] = kernel;
    else if (!isa<SourceOp, ProgramOp>(op))
      return op.emitOpError("does not belong into a plan");
  }
  for (auto program : getBlock().getOps<ProgramOp>()) {
    llvm::StringMap<Place> places = arenas;
    auto check = [&](Operation *op, SliceAttr slice) -> LogicalResult {
      auto it = places.find(slice.getArena().getValue());
      if (it == places.end())
        return op->emitOpError("names arena ") << slice.getArena() << ", which is not there";
      uint64_t end;
      if (__builtin_add_overflow(slice.getOffset(), slice.getBytes(), &end) || end > it->second.bytes)
        return op->emitOpError("slice of ")
               << slice.getBytes() << " bytes at " << slice.getOffset() << " ends beyond the " << it->second.bytes
               << " bytes of " << slice.getArena();
      if (it->second.isOfRuntime)
        return op->emitOpError("names arena ") << slice.getArena() << ", which is the runtime's own";
      const ArenaSpace space = it->second.space;
      // A repeat names what its rounds hand on, and touches none of it.
      if (space != ArenaSpace::Device && !isa<CopyOp, BindingOp, RepeatOp>(op))
        return op->emitOpError("names ") << slice.getArena() << " in space " << stringifyArenaSpace(space)
                                         << "; only copies reach other spaces than the device";
      return success();
    };
    for (auto buffer : program.getBlock().getOps<BufferOp>()) {
      auto arena = arenas.find(buffer.getArena());
      if (arena == arenas.end())
        return buffer.emitOpError("names an arena that is not there");
      if (!places.try_emplace(buffer.getName(), Place{uint64_t(buffer.getBytes()), arena->second.space}).second)
        return buffer.emitOpError("has a name that is taken");
    }
    WalkResult result = program.getBody().walk([&](Operation *op) {
      if (isa<BufferOp>(op))
        return WalkResult::advance();
      if (auto binding = dyn_cast<BindingOp>(op))
        return WalkResult(check(op, binding.getSlice()));
      if (!isInstruction(op))
        return WalkResult(op->emitOpError("is not an instruction"));
      LogicalResult slices = success();
      forEachSlice(op, [&](Access, SliceAttr slice) {
        if (succeeded(slices))
          slices = check(op, slice);
      });
      if (auto copy = dyn_cast<CopyOp>(op); copy && succeeded(slices)) {
        const ArenaSpace from = places.find(copy.getSource().getArena().getValue())->second.space,
                         to = places.find(copy.getTarget().getArena().getValue())->second.space;
        if (from != ArenaSpace::Device && to != ArenaSpace::Device)
          return WalkResult(op->emitOpError("copies from space ")
                            << stringifyArenaSpace(from) << " to space " << stringifyArenaSpace(to)
                            << "; it copies within the device, or between it and another memory");
      }
      auto launch = dyn_cast<LaunchOp>(op);
      if (failed(slices) || !launch)
        return WalkResult(slices);
      auto kernel = kernels.find(launch.getKernel());
      if (kernel == kernels.end())
        return WalkResult(op->emitOpError("names kernel '") << launch.getKernel() << "', which is not there");
      KernelOp callee = kernel->second;
      if (launch.getReads().size() != uint64_t(callee.getReads()) ||
          launch.getWrites().size() != uint64_t(callee.getWrites()))
        return WalkResult(op->emitOpError("passes ") << launch.getReads().size() << " + " << launch.getWrites().size()
                                                     << " slices to kernel '" << launch.getKernel() << "', which takes "
                                                     << callee.getReads() << " + " << callee.getWrites());
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/Plan/PlanDialect.cpp.inc"
#include "lowtide/Dialect/Plan/PlanEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "lowtide/Dialect/Plan/PlanAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "lowtide/Dialect/Plan/PlanOps.cpp.inc"

void PlanDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "lowtide/Dialect/Plan/PlanAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "lowtide/Dialect/Plan/PlanOps.cpp.inc"
      >();
}
