//===- PlanImport.cpp - runtime/plan.proto → plan dialect -----------------===//
//
// One op per message. The bytes may come from anywhere: indices are looked at
// before use, and the built module is verified.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Serialize/PlanProto.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace lowtide;

Type lowtide::getElementType(plan::DType dtype, MLIRContext *context) {
  OpBuilder b(context);
  auto unsignedType = [&](unsigned width) { return b.getIntegerType(width, /*isSigned=*/false); };
  switch (dtype) {
  case plan::F64:
    return b.getF64Type();
  case plan::F32:
    return b.getF32Type();
  case plan::F16:
    return b.getF16Type();
  case plan::BF16:
    return b.getBF16Type();
  case plan::I64:
    return b.getI64Type();
  case plan::I32:
    return b.getI32Type();
  case plan::I16:
    return b.getI16Type();
  case plan::I8:
    return b.getI8Type();
  case plan::U8:
    return unsignedType(8);
  case plan::U16:
    return unsignedType(16);
  case plan::U32:
    return unsignedType(32);
  case plan::U64:
    return unsignedType(64);
  case plan::BOOL:
    return b.getI1Type();
  default:
    return {};
  }
}

namespace {

/// Builds the ops of one plan.
class Importer {
public:
  Importer(const plan::Plan &proto, Location loc) : proto(proto), builder(loc.getContext()), loc(loc) {}
  OwningOpRef<plan::ModuleOp> run();

private:
  FailureOr<plan::SliceAttr> slice(const plan::Slice &from);
  template <typename Repeated> FailureOr<ArrayAttr> slices(const Repeated &from);
  template <typename Message> LogicalResult optionalSlice(bool present, const Message &from, plan::SliceAttr &to);
  DenseElementsAttr valueOf(const plan::ParameterSource &from);
  /// Flat tensor types; null where an element type or a size is unknown.
  template <typename Repeated> ArrayAttr tensors(const Repeated &from);
  DictionaryAttr sourceFields(const plan::ParameterSource &from);
  LogicalResult binding(const plan::Binding &from);
  LogicalResult instruction(const plan::Instruction &from, int depth);
  FailureOr<DictionaryAttr> callOptions(const plan::Call &from);
  LogicalResult refuse(const Twine &what) { return emitError(loc) << what; }

  NamedAttribute named(StringRef name, Attribute value) { return builder.getNamedAttr(name, value); }

  const plan::Plan &proto;
  OpBuilder builder;
  Location loc;
};

} // namespace

FailureOr<plan::SliceAttr> Importer::slice(const plan::Slice &from) {
  if (from.arena() >= uint32_t(proto.arenas_size()))
    return refuse("arena " + Twine(from.arena()) + " does not exist");
  return plan::SliceAttr::get(builder.getContext(),
                              FlatSymbolRefAttr::get(builder.getContext(), proto.arenas(from.arena()).name()),
                              from.offset(), from.bytes(), from.value());
}

template <typename Repeated> FailureOr<ArrayAttr> Importer::slices(const Repeated &from) {
  SmallVector<Attribute> list;
  for (const plan::Slice &one : from) {
    FailureOr<plan::SliceAttr> attr = slice(one);
    if (failed(attr))
      return failure();
    list.push_back(*attr);
  }
  return builder.getArrayAttr(list);
}

template <typename Message>
LogicalResult Importer::optionalSlice(bool present, const Message &from, plan::SliceAttr &to) {
  if (!present)
    return success();
  FailureOr<plan::SliceAttr> attr = slice(from);
  if (succeeded(attr))
    to = *attr;
  return attr;
}

/// The values of an entry that no binding holds; null: it has none, or their bytes do not fit its shape.
DenseElementsAttr Importer::valueOf(const plan::ParameterSource &from) {
  Type element = getElementType(from.value_dtype(), builder.getContext());
  SmallVector<int64_t> dims(from.original_dims().begin(), from.original_dims().end());
  uint64_t count = element ? 1 : 0;
  for (int64_t dim : dims)
    if (dim < 0 || __builtin_mul_overflow(count, uint64_t(dim), &count))
      return {};
  if (!element || from.value().size() % getElementBytes(element) ||
      from.value().size() / getElementBytes(element) != count)
    return {};
  auto type = RankedTensorType::get(dims, element);
  if (element.isInteger(1)) {
    SmallVector<bool> values;
    for (char byte : from.value())
      values.push_back(byte != 0);
    return DenseElementsAttr::get(type, ArrayRef<bool>(values));
  }
  if (!count)
    return DenseElementsAttr::get(type, ArrayRef<Attribute>());
  return DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(from.value().data(), from.value().size()));
}

DictionaryAttr Importer::sourceFields(const plan::ParameterSource &from) {
  SmallVector<NamedAttribute> fields;
  auto text = [&](StringRef name, const std::string &value) {
    if (!value.empty())
      fields.push_back(named(name, builder.getStringAttr(value)));
  };
  auto list = [&](StringRef name, ArrayRef<int64_t> values) {
    if (!values.empty())
      fields.push_back(named(name, builder.getDenseI64ArrayAttr(values)));
  };
  auto number = [&](StringRef name, int64_t value) {
    if (value)
      fields.push_back(named(name, builder.getI64IntegerAttr(value)));
  };
  text("initializer", from.initializer());
  if (from.value_dtype() == plan::DTYPE_UNSPECIFIED)
    list("original_dims", {from.original_dims().data(), size_t(from.original_dims_size())});
  list("permutation", {from.permutation().data(), size_t(from.permutation_size())});
  auto names = [&](StringRef name, const auto &values) {
    SmallVector<Attribute> list;
    for (const std::string &value : values)
      list.push_back(builder.getStringAttr(value));
    if (!list.empty())
      fields.push_back(named(name, builder.getArrayAttr(list)));
  };
  names("tied_names", from.tied_names());
  names("use_nodes", from.use_nodes());
  list("use_operands", {from.use_operands().data(), size_t(from.use_operands_size())});
  names("image_initializers", from.image_initializers());
  text("codec", from.codec());
  text("scales", from.scales());
  list("coded_dims", {from.coded_dims().data(), size_t(from.coded_dims_size())});
  if (from.coded_transposed())
    fields.push_back(named("coded_transposed", builder.getUnitAttr()));
  if (from.keeps_original())
    fields.push_back(named("keeps_original", builder.getUnitAttr()));
  text("module_path", from.module_path());
  number("slice_axis", from.slice_axis());
  number("slice_start", from.slice_start());
  number("slice_size", from.slice_size());
  text("random_init", from.random_init());
  if (from.saved())
    fields.push_back(named("saved", builder.getUnitAttr()));
  number("updates_per_step", from.updates_per_step());
  if (Attribute value = valueOf(from))
    fields.push_back(named("value", value));
  return builder.getDictionaryAttr(fields);
}

template <typename Repeated> ArrayAttr Importer::tensors(const Repeated &from) {
  SmallVector<Attribute> types;
  for (const plan::Footprint::Tensor &tensor : from) {
    Type element = getElementType(tensor.dtype(), builder.getContext());
    if (!element || tensor.elements() > uint64_t(std::numeric_limits<int64_t>::max()))
      return {};
    types.push_back(TypeAttr::get(RankedTensorType::get({int64_t(tensor.elements())}, element)));
  }
  return builder.getArrayAttr(types);
}

LogicalResult Importer::binding(const plan::Binding &from) {
  Type element = getElementType(from.dtype(), builder.getContext());
  std::optional<plan::BindingKind> kind = plan::symbolizeBindingKind(from.kind());
  FailureOr<plan::SliceAttr> where = slice(from.slice());
  if (failed(where))
    return failure();
  if (!element || !kind)
    return refuse("binding '" + Twine(from.name()) + "' has unknown kind or type");
  for (int64_t dim : from.dims())
    if (dim < 0)
      return refuse("binding '" + Twine(from.name()) + "' has dimension " + Twine(dim));
  auto type = RankedTensorType::get({from.dims().data(), size_t(from.dims_size())}, element);
  plan::BindingOp::create(builder, loc, *kind, from.name(), type, *where, from.final_value(),
                          APFloat(from.initial_value()), from.from_image(), from.batch_dim(), from.group(),
                          from.pending());
  return success();
}

FailureOr<DictionaryAttr> Importer::callOptions(const plan::Call &from) {
  SmallVector<NamedAttribute> options;
  for (const plan::Attribute &attribute : from.attributes()) {
    Attribute value;
    switch (attribute.value_case()) {
    case plan::Attribute::kI:
      value = builder.getI64IntegerAttr(attribute.i());
      break;
    case plan::Attribute::kF:
      value = builder.getF64FloatAttr(attribute.f());
      break;
    case plan::Attribute::kS:
      value = builder.getStringAttr(attribute.s());
      break;
    case plan::Attribute::kInts:
      value = builder.getDenseI64ArrayAttr({attribute.ints().values().data(), size_t(attribute.ints().values_size())});
      break;
    default:
      return refuse("attribute '" + Twine(attribute.name()) + "' has no value");
    }
    if (attribute.name().empty())
      return refuse("a call has an attribute without a name");
    for (const NamedAttribute &other : options)
      if (other.getName() == attribute.name())
        return refuse("attribute '" + Twine(attribute.name()) + "' occurs twice");
    options.push_back(named(attribute.name(), value));
  }
  return builder.getDictionaryAttr(options);
}

LogicalResult Importer::instruction(const plan::Instruction &from, int depth) {
  if (depth > 4)
    return refuse("repeats are nested deeper than 4");
  Location here = from.location().empty() ? loc : NameLoc::get(builder.getStringAttr(from.location()), loc);
  int64_t stream = from.stream(), flops = from.flops();
  const std::string &where = from.location();
  switch (from.kind_case()) {
  case plan::Instruction::kLaunch: {
    const plan::Launch &launch = from.launch();
    if (launch.kernel() >= uint32_t(proto.kernels_size()))
      return refuse("kernel " + Twine(launch.kernel()) + " does not exist");
    FailureOr<ArrayAttr> reads = slices(launch.reads());
    FailureOr<ArrayAttr> writes = slices(launch.writes());
    plan::SliceAttr scratch;
    if (failed(reads) || failed(writes) || failed(optionalSlice(launch.has_scratch(), launch.scratch(), scratch)))
      return failure();
    plan::LaunchOp::create(builder, here, proto.kernels(launch.kernel()).symbol(), *reads, *writes, launch.extent(),
                           launch.grain(), scratch, stream, where, flops);
    return success();
  }
  case plan::Instruction::kCall: {
    const plan::Call &call = from.call();
    FailureOr<ArrayAttr> reads = slices(call.reads());
    FailureOr<ArrayAttr> writes = slices(call.writes());
    FailureOr<DictionaryAttr> options = callOptions(call);
    plan::SliceAttr workspace;
    if (failed(reads) || failed(writes) || failed(options) ||
        failed(optionalSlice(call.has_workspace(), call.workspace(), workspace)))
      return failure();
    plan::CallOp::create(builder, here, call.callee(), *options, *reads, *writes, workspace, stream, where, flops);
    return success();
  }
  case plan::Instruction::kCopy: {
    FailureOr<plan::SliceAttr> source = slice(from.copy().source());
    FailureOr<plan::SliceAttr> target = slice(from.copy().target());
    if (failed(source) || failed(target))
      return failure();
    plan::CopyOp::create(builder, here, *source, *target, from.copy().source_step(), from.copy().target_step(), stream,
                         where, flops);
    return success();
  }
  case plan::Instruction::kFill: {
    FailureOr<plan::SliceAttr> target = slice(from.fill().target());
    if (failed(target))
      return failure();
    plan::FillOp::create(builder, here, *target, from.fill().pattern(), from.fill().pattern_bytes(), stream, where,
                         flops);
    return success();
  }
  case plan::Instruction::kRecord:
    plan::RecordOp::create(builder, here, from.record().event(), stream, where, flops);
    return success();
  case plan::Instruction::kWait:
    plan::WaitOp::create(builder, here, from.wait().event(), stream, where, flops);
    return success();
  case plan::Instruction::kRepeat: {
    SmallVector<Attribute> carries;
    for (const plan::Carry &carry : from.repeat().carries()) {
      FailureOr<plan::SliceAttr> carried = slice(carry.slice());
      if (failed(carried))
        return failure();
      carries.push_back(plan::CarryAttr::get(builder.getContext(), *carried, carry.next_value()));
    }
    auto repeat =
        plan::RepeatOp::create(builder, here, from.repeat().count(),
                               carries.empty() ? ArrayAttr() : builder.getArrayAttr(carries), stream, where, flops);
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&repeat.getBody());
    for (const plan::Instruction &inner : from.repeat().body())
      if (failed(instruction(inner, depth + 1)))
        return failure();
    return success();
  }
  case plan::Instruction::KIND_NOT_SET:
    break;
  }
  return refuse("an instruction is of no known kind");
}

OwningOpRef<plan::ModuleOp> Importer::run() {
  DictionaryAttr schedule, optimizer;
  if (proto.has_schedule()) {
    const plan::Schedule &from = proto.schedule();
    std::string kind = StringRef(plan::Schedule::Kind_Name(from.kind())).lower();
    llvm::replace(kind, '_', '-');
    SmallVector<NamedAttribute> fields{named("kind", builder.getStringAttr(kind)),
                                       named("lr", builder.getF64FloatAttr(from.lr())),
                                       named("warmup_steps", builder.getI64IntegerAttr(from.warmup_steps())),
                                       named("total_steps", builder.getI64IntegerAttr(from.total_steps())),
                                       named("min_lr", builder.getF64FloatAttr(from.min_lr()))};
    const std::pair<StringRef, double> reals[] = {{"power", from.power()},
                                                  {"gamma", from.gamma()},
                                                  {"pct_start", from.pct_start()},
                                                  {"div_factor", from.div_factor()},
                                                  {"final_div_factor", from.final_div_factor()}};
    for (auto [name, value] : reals)
      if (value != 0.0)
        fields.push_back(named(name, builder.getF64FloatAttr(value)));
    const std::pair<StringRef, int64_t> counts[] = {{"step_size", from.step_size()},
                                                    {"timescale", from.timescale()},
                                                    {"restart_steps", from.restart_steps()},
                                                    {"restart_mult", from.restart_mult()},
                                                    {"decay_steps", from.decay_steps()}};
    for (auto [name, value] : counts)
      if (value != 0)
        fields.push_back(named(name, builder.getI64IntegerAttr(value)));
    if (from.milestones_size() != 0)
      fields.push_back(named("milestones",
                             builder.getDenseI64ArrayAttr({from.milestones().data(), size_t(from.milestones_size())})));
    if (from.kind() == plan::Schedule::ONE_CYCLE || from.kind() == plan::Schedule::WSD)
      fields.push_back(
          named("curve", builder.getStringAttr(from.curve() == plan::Schedule::LINEAR_CURVE           ? "linear"
                                               : from.curve() == plan::Schedule::ONE_MINUS_SQRT_CURVE ? "1-sqrt"
                                                                                                      : "cosine")));
    schedule = builder.getDictionaryAttr(fields);
  }
  if (proto.has_optimizer()) {
    SmallVector<NamedAttribute> options{named("kind", builder.getStringAttr(proto.optimizer().kind()))};
    if (!proto.optimizer().convention().empty())
      options.push_back(named("convention", builder.getStringAttr(proto.optimizer().convention())));
    for (const auto &[name, value] : proto.optimizer().options())
      if (!name.empty() && name != "kind" && name != "convention")
        options.push_back(named(name, builder.getF64FloatAttr(value)));
    optimizer = builder.getDictionaryAttr(options);
  }
  SmallVector<Attribute> adapters;
  for (const plan::Adapter &from : proto.adapters()) {
    SmallVector<NamedAttribute> fields{
        named("module", builder.getStringAttr(from.module())),
        named("kind", builder.getStringAttr(StringRef(plan::Adapter::Kind_Name(from.kind())).lower())),
        named("weight", builder.getStringAttr(from.weight())),
        named("a", builder.getStringAttr(from.a())),
        named("b", builder.getStringAttr(from.b())),
        named("alpha", builder.getF64FloatAttr(from.alpha())),
        named("dropout", builder.getF64FloatAttr(from.dropout())),
        named("input_dim", builder.getI64IntegerAttr(from.input_dim()))};
    if (from.rslora())
      fields.push_back(named("rslora", builder.getUnitAttr()));
    if (from.shares_weight())
      fields.push_back(named("shares_weight", builder.getUnitAttr()));
    for (auto [name, text] : {std::pair("magnitude", &from.magnitude()), std::pair("norm", &from.norm()),
                              std::pair("norm_of", &from.norm_of())})
      if (!text->empty())
        fields.push_back(named(name, builder.getStringAttr(*text)));
    adapters.push_back(builder.getDictionaryAttr(fields));
  }
  OwningOpRef<plan::ModuleOp> module = plan::ModuleOp::create(
      builder, loc, proto.format_version(), proto.producer(), proto.target(), proto.threads_max(), proto.model_digest(),
      schedule, optimizer, adapters.empty() ? ArrayAttr() : builder.getArrayAttr(adapters));
  builder.createBlock(&module->getBody());
  for (const plan::Arena &arena : proto.arenas()) {
    std::optional<plan::ArenaRole> role = plan::symbolizeArenaRole(arena.role());
    std::optional<plan::ArenaSpace> space = plan::symbolizeArenaSpace(arena.space());
    if (!role || !space || arena.name().empty()) {
      (void)refuse("arena '" + Twine(arena.name()) + "' has no name, role or space");
      return {};
    }
    plan::ArenaOp::create(builder, loc, arena.name(), *role, *space, arena.bytes(), arena.alignment(),
                          arena.image_bytes());
  }
  for (const plan::Kernel &kernel : proto.kernels()) {
    if (kernel.symbol().empty()) {
      (void)refuse("a kernel has no symbol");
      return {};
    }
    auto op = plan::KernelOp::create(builder, loc, kernel.symbol(), kernel.reads(), kernel.writes(),
                                     kernel.scratch_bytes(), kernel.description(), kernel.threads_per_block(),
                                     kernel.shared_bytes(), /*footprints=*/ArrayAttr());
    SmallVector<Attribute> footprints;
    for (const plan::Footprint &stated : kernel.footprints()) {
      ArrayAttr reads = tensors(stated.reads()), writes = tensors(stated.writes());
      if (!reads || !writes) {
        (void)refuse("kernel '" + Twine(kernel.symbol()) + "' has a footprint of an unknown element type or size");
        return {};
      }
      SmallVector<int64_t> inPlace;
      for (const plan::Footprint::InPlace &pair : stated.in_place())
        llvm::append_values(inPlace, pair.result(), pair.operand());
      footprints.push_back(
          plan::FootprintAttr::get(op.getContext(), stated.extent(), stated.grain(), reads, writes, inPlace));
    }
    if (!footprints.empty())
      op.setFootprintsAttr(builder.getArrayAttr(footprints));
  }
  for (const plan::ParameterSource &source : proto.sources())
    plan::SourceOp::create(builder, loc, source.name(), sourceFields(source));
  for (const plan::Entry &entry : proto.entries()) {
    if (entry.name().empty()) {
      (void)refuse("an entry has no name");
      return {};
    }
    auto program = plan::ProgramOp::create(builder, loc, entry.name(), entry.batch(), entry.peak_live_bytes(),
                                           entry.streams(), entry.events());
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&program.getBody());
    for (const plan::Binding &bound : entry.bindings())
      if (failed(binding(bound)))
        return {};
    for (const plan::Instruction &one : entry.instructions())
      if (failed(instruction(one, 0)))
        return {};
  }
  if (failed(verify(*module)))
    return {};
  return module;
}

OwningOpRef<plan::ModuleOp> lowtide::importPlan(const plan::Plan &proto, Location loc) {
  loc.getContext()->getOrLoadDialect<plan::PlanDialect>();
  return Importer(proto, loc).run();
}
