//===- PlanExport.cpp - plan dialect → runtime/plan.proto -----------------===//
//
// One message per op, in the order of the text.
//
//===----------------------------------------------------------------------===//
#include "ElementBytes.h"
#include "lowtide/Serialize/PlanProto.h"
#include "runtime/Verify.h"
#include "llvm/ADT/TypeSwitch.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

using namespace mlir;
using namespace lowtide;

plan::DType lowtide::getDType(Type type) {
  if (type.isF64())
    return plan::F64;
  if (type.isF32())
    return plan::F32;
  if (type.isF16())
    return plan::F16;
  if (type.isBF16())
    return plan::BF16;
  bool isUnsigned = type.isUnsignedInteger();
  if (auto integer = dyn_cast<IntegerType>(type))
    switch (integer.getWidth()) {
    case 64:
      return isUnsigned ? plan::U64 : plan::I64;
    case 32:
      return isUnsigned ? plan::U32 : plan::I32;
    case 16:
      return isUnsigned ? plan::U16 : plan::I16;
    case 8:
      return isUnsigned ? plan::U8 : plan::I8;
    case 1:
      return plan::BOOL;
    }
  return plan::DTYPE_UNSPECIFIED;
}

uint32_t lowtide::getPlanFormatVersion() { return rt::planFormatVersion; }

uint64_t lowtide::getElementBytes(Type type) { return (type.getIntOrFloatBitWidth() + 7) / 8; }

std::string lowtide::serializePlan(const plan::Plan &proto) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    proto.SerializeToCodedStream(&coded);
  }
  return bytes;
}

namespace {

/// Writes ops into messages; arenas and kernels become indices.
class Exporter {
public:
  Exporter(plan::ModuleOp module, plan::Plan &proto) : module(module), proto(proto) {}
  LogicalResult run();

private:
  void slice(plan::SliceAttr from, plan::Slice *to);
  template <typename Repeated> void slices(ArrayAttr from, Repeated *to) {
    for (auto attr : from.getAsRange<plan::SliceAttr>())
      slice(attr, to->Add());
  }
  void footprint(plan::FootprintAttr from, plan::Footprint &to);
  void source(plan::SourceOp op);
  LogicalResult adapter(DictionaryAttr fields);
  LogicalResult program(plan::ProgramOp op);
  LogicalResult binding(plan::BindingOp op, plan::Binding &to);
  LogicalResult instruction(Operation *op, plan::Instruction &to);
  LogicalResult call(plan::CallOp op, plan::Call &to);

  plan::ModuleOp module;
  plan::Plan &proto;
  llvm::StringMap<uint32_t> arenas, kernels;
};

} // namespace

void Exporter::slice(plan::SliceAttr from, plan::Slice *to) {
  to->set_arena(arenas.lookup(from.getArena().getValue()));
  to->set_offset(from.getOffset());
  to->set_bytes(from.getBytes());
  to->set_value(from.getValue());
}

void Exporter::source(plan::SourceOp op) {
  plan::ParameterSource &to = *proto.add_sources();
  DictionaryAttr fields = op.getFields();
  auto text = [&](StringRef name) {
    auto attr = fields.getAs<StringAttr>(name);
    return attr ? attr.str() : std::string();
  };
  auto number = [&](StringRef name) {
    auto attr = fields.getAs<IntegerAttr>(name);
    return attr ? attr.getInt() : 0;
  };
  auto list = [&](StringRef name) {
    auto attr = fields.getAs<DenseI64ArrayAttr>(name);
    return attr ? attr.asArrayRef() : ArrayRef<int64_t>();
  };
  to.set_name(op.getName().str());
  to.set_initializer(text("initializer"));
  to.set_module_path(text("module_path"));
  to.set_random_init(text("random_init"));
  for (int64_t dim : list("original_dims"))
    to.add_original_dims(dim);
  for (int64_t dim : list("permutation"))
    to.add_permutation(dim);
  auto names = [&](StringRef name, auto add) {
    if (auto list = fields.getAs<ArrayAttr>(name))
      for (auto element : list.getAsRange<StringAttr>())
        add(element.str());
  };
  names("tied_names", [&](std::string name) { to.add_tied_names(std::move(name)); });
  names("use_nodes", [&](std::string name) { to.add_use_nodes(std::move(name)); });
  for (int64_t operand : list("use_operands"))
    to.add_use_operands(operand);
  names("image_initializers", [&](std::string name) { to.add_image_initializers(std::move(name)); });
  to.set_slice_axis(number("slice_axis"));
  to.set_slice_start(number("slice_start"));
  to.set_slice_size(number("slice_size"));
  to.set_saved(fields.contains("saved"));
  to.set_codec(text("codec"));
  to.set_scales(text("scales"));
  for (int64_t dim : list("coded_dims"))
    to.add_coded_dims(dim);
  to.set_coded_transposed(fields.contains("coded_transposed"));
  to.set_keeps_original(fields.contains("keeps_original"));
  to.set_updates_per_step(number("updates_per_step"));
  if (auto value = fields.getAs<DenseElementsAttr>("value")) {
    to.set_value_dtype(getDType(value.getElementType()));
    to.clear_original_dims();
    for (int64_t dim : value.getType().getShape())
      to.add_original_dims(dim);
    *to.mutable_value() = getElementBytes(value);
  }
}

LogicalResult Exporter::adapter(DictionaryAttr fields) {
  plan::Adapter &to = *proto.add_adapters();
  auto text = [&](StringRef name) {
    auto attr = fields.getAs<StringAttr>(name);
    return attr ? attr.str() : std::string();
  };
  auto real = [&](StringRef name) {
    auto attr = fields.getAs<FloatAttr>(name);
    return attr ? attr.getValueAsDouble() : 0.0;
  };
  plan::Adapter::Kind kind;
  if (!plan::Adapter::Kind_Parse(StringRef(text("kind")).upper(), &kind))
    return module.emitError("adapter of '") << text("module") << "': kind '" << text("kind") << "' is unknown";
  to.set_module(text("module"));
  to.set_kind(kind);
  to.set_weight(text("weight"));
  to.set_a(text("a"));
  to.set_b(text("b"));
  to.set_alpha(real("alpha"));
  to.set_dropout(real("dropout"));
  to.set_rslora(fields.contains("rslora"));
  to.set_shares_weight(fields.contains("shares_weight"));
  to.set_magnitude(text("magnitude"));
  to.set_norm(text("norm"));
  to.set_norm_of(text("norm_of"));
  if (auto dim = fields.getAs<IntegerAttr>("input_dim"))
    to.set_input_dim(dim.getInt());
  return success();
}

LogicalResult Exporter::binding(plan::BindingOp op, plan::Binding &to) {
  auto type = cast<RankedTensorType>(op.getType());
  to.set_name(op.getName().str());
  to.set_kind(plan::Binding::Kind(op.getKind()));
  to.set_dtype(getDType(type.getElementType()));
  if (to.dtype() == plan::DTYPE_UNSPECIFIED)
    return op.emitError("elements of type ") << type.getElementType() << " cannot be bound";
  for (int64_t dim : type.getShape())
    to.add_dims(dim);
  slice(op.getSlice(), to.mutable_slice());
  to.set_final_value(op.getFinalValue());
  to.set_initial_value(op.getInitial().convertToDouble());
  to.set_from_image(op.getFromImage());
  to.set_batch_dim(op.getBatchDim());
  to.set_group(op.getGroup().str());
  to.set_pending(op.getPending());
  return success();
}

LogicalResult lowtide::exportCallOptions(DictionaryAttr options, plan::Call &call, Location loc) {
  for (NamedAttribute named : options) {
    plan::Attribute &attribute = *call.add_attributes();
    attribute.set_name(named.getName().str());
    Attribute value = named.getValue();
    if (auto integer = dyn_cast<IntegerAttr>(value))
      attribute.set_i(integer.getValue().getSExtValue());
    else if (auto real = dyn_cast<FloatAttr>(value))
      attribute.set_f(real.getValueAsDouble());
    else if (auto text = dyn_cast<StringAttr>(value))
      attribute.set_s(text.str());
    else if (auto list = dyn_cast<DenseI64ArrayAttr>(value))
      attribute.mutable_ints()->mutable_values()->Add(list.asArrayRef().begin(), list.asArrayRef().end());
    else
      return emitError(loc) << "call attribute '" << named.getName() << "' is not an i64, f64, string or i64 array";
  }
  return success();
}

LogicalResult Exporter::call(plan::CallOp op, plan::Call &to) {
  to.set_callee(op.getCallee().str());
  slices(op.getReads(), to.mutable_reads());
  slices(op.getWrites(), to.mutable_writes());
  if (op.getWorkspace())
    slice(*op.getWorkspace(), to.mutable_workspace());
  return exportCallOptions(op.getOptions(), to, op.getLoc());
}

LogicalResult Exporter::instruction(Operation *op, plan::Instruction &to) {
  auto tail = [&](auto op) {
    to.set_stream(op.getStream());
    to.set_location(op.getWhere().str());
    to.set_flops(op.getFlops());
    return success();
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](plan::LaunchOp op) {
        plan::Launch &launch = *to.mutable_launch();
        launch.set_kernel(kernels.lookup(op.getKernel()));
        slices(op.getReads(), launch.mutable_reads());
        slices(op.getWrites(), launch.mutable_writes());
        launch.set_extent(op.getExtent());
        launch.set_grain(op.getGrain());
        if (op.getScratch())
          slice(*op.getScratch(), launch.mutable_scratch());
        return tail(op);
      })
      .Case([&](plan::CallOp op) {
        if (failed(call(op, *to.mutable_call())))
          return LogicalResult(failure());
        return tail(op);
      })
      .Case([&](plan::CopyOp op) {
        slice(op.getSource(), to.mutable_copy()->mutable_source());
        slice(op.getTarget(), to.mutable_copy()->mutable_target());
        to.mutable_copy()->set_source_step(op.getSourceStep());
        to.mutable_copy()->set_target_step(op.getTargetStep());
        return tail(op);
      })
      .Case([&](plan::FillOp op) {
        slice(op.getTarget(), to.mutable_fill()->mutable_target());
        to.mutable_fill()->set_pattern(op.getPattern());
        to.mutable_fill()->set_pattern_bytes(op.getPatternBytes());
        return tail(op);
      })
      .Case([&](plan::RecordOp op) {
        to.mutable_record()->set_event(op.getEvent());
        return tail(op);
      })
      .Case([&](plan::WaitOp op) {
        to.mutable_wait()->set_event(op.getEvent());
        return tail(op);
      })
      .Case([&](plan::RepeatOp op) -> LogicalResult {
        to.mutable_repeat()->set_count(op.getCount());
        if (std::optional<ArrayAttr> carries = op.getCarries())
          for (auto from : carries->getAsRange<plan::CarryAttr>()) {
            plan::Carry &carry = *to.mutable_repeat()->add_carries();
            slice(from.getSlice(), carry.mutable_slice());
            carry.set_next_value(from.getNext());
          }
        for (Operation &inner : op.getBody().front())
          if (failed(instruction(&inner, *to.mutable_repeat()->add_body())))
            return failure();
        return tail(op);
      })
      .Default([](Operation *op) { return op->emitError("is not an instruction of the plan format"); });
}

LogicalResult Exporter::program(plan::ProgramOp op) {
  plan::Entry &entry = *proto.add_entries();
  entry.set_name(op.getSymName().str());
  entry.set_batch(op.getBatch());
  entry.set_peak_live_bytes(op.getPeakLiveBytes());
  entry.set_streams(op.getStreams());
  entry.set_events(op.getEvents());
  for (Operation &inner : op.getBlock()) {
    if (isa<plan::BufferOp>(inner))
      return inner.emitError("has no address: run plan-place first");
    if (auto bound = dyn_cast<plan::BindingOp>(inner)) {
      if (failed(binding(bound, *entry.add_bindings())))
        return failure();
    } else if (failed(instruction(&inner, *entry.add_instructions()))) {
      return failure();
    }
  }
  return success();
}

void Exporter::footprint(plan::FootprintAttr from, plan::Footprint &to) {
  to.set_extent(from.getExtent());
  to.set_grain(from.getGrain());
  auto tensors = [](ArrayAttr types, auto &list) {
    for (Type type : types.getAsValueRange<TypeAttr>()) {
      plan::Footprint::Tensor &tensor = *list.Add();
      tensor.set_dtype(getDType(cast<RankedTensorType>(type).getElementType()));
      tensor.set_elements(cast<RankedTensorType>(type).getNumElements());
    }
  };
  tensors(from.getReads(), *to.mutable_reads());
  tensors(from.getWrites(), *to.mutable_writes());
  for (ArrayRef<int64_t> pairs = from.getInPlace(); pairs.size() > 1; pairs = pairs.drop_front(2)) {
    plan::Footprint::InPlace &pair = *to.add_in_place();
    pair.set_result(pairs[0]);
    pair.set_operand(pairs[1]);
  }
}

LogicalResult Exporter::run() {
  proto.set_format_version(module.getFormatVersion());
  proto.set_producer(module.getProducer().str());
  proto.set_target(module.getTarget().str());
  proto.set_threads_max(module.getThreadsMax());
  proto.set_model_digest(module.getModelDigest().str());
  for (auto op : module.getBlock().getOps<plan::ArenaOp>()) {
    arenas[op.getSymName()] = proto.arenas_size();
    plan::Arena &arena = *proto.add_arenas();
    arena.set_name(op.getSymName().str());
    arena.set_role(plan::Arena::Role(op.getRole()));
    arena.set_space(plan::Arena::Space(op.getSpace()));
    arena.set_bytes(op.getBytes());
    arena.set_alignment(op.getAlignment());
    arena.set_image_bytes(op.getImageBytes());
  }
  for (auto op : module.getBlock().getOps<plan::KernelOp>()) {
    kernels[op.getSymName()] = proto.kernels_size();
    plan::Kernel &kernel = *proto.add_kernels();
    kernel.set_symbol(op.getSymName().str());
    kernel.set_reads(op.getReads());
    kernel.set_writes(op.getWrites());
    kernel.set_scratch_bytes(op.getScratchBytes());
    kernel.set_description(op.getDescription().str());
    kernel.set_threads_per_block(op.getThreads());
    kernel.set_shared_bytes(op.getShared());
    for (auto from :
         op.getFootprints().value_or(ArrayAttr::get(module.getContext(), {})).getAsRange<plan::FootprintAttr>())
      footprint(from, *kernel.add_footprints());
  }
  for (auto op : module.getBlock().getOps<plan::SourceOp>())
    source(op);
  if (std::optional<DictionaryAttr> schedule = module.getSchedule()) {
    plan::Schedule &to = *proto.mutable_schedule();
    auto real = [&](StringRef name) {
      auto attr = schedule->getAs<FloatAttr>(name);
      return attr ? attr.getValueAsDouble() : 0.0;
    };
    auto integer = [&](StringRef name) {
      auto attr = schedule->getAs<IntegerAttr>(name);
      return attr ? attr.getInt() : 0;
    };
    auto kindAttr = schedule->getAs<StringAttr>("kind");
    StringRef kind = kindAttr ? kindAttr.getValue() : "constant";
    std::string name = kind.upper();
    llvm::replace(name, '-', '_');
    plan::Schedule::Kind value;
    if (!plan::Schedule::Kind_Parse(name, &value))
      return module.emitError("schedule '") << kind << "' is unknown";
    to.set_kind(value);
    to.set_lr(real("lr"));
    to.set_warmup_steps(integer("warmup_steps"));
    to.set_total_steps(integer("total_steps"));
    to.set_min_lr(real("min_lr"));
    to.set_power(real("power"));
    to.set_gamma(real("gamma"));
    to.set_step_size(integer("step_size"));
    if (auto milestones = schedule->getAs<DenseI64ArrayAttr>("milestones"))
      to.mutable_milestones()->Assign(milestones.asArrayRef().begin(), milestones.asArrayRef().end());
    to.set_timescale(integer("timescale"));
    to.set_pct_start(real("pct_start"));
    to.set_div_factor(real("div_factor"));
    to.set_final_div_factor(real("final_div_factor"));
    auto curve = schedule->getAs<StringAttr>("curve");
    to.set_curve(curve && curve == "linear"   ? plan::Schedule::LINEAR_CURVE
                 : curve && curve == "1-sqrt" ? plan::Schedule::ONE_MINUS_SQRT_CURVE
                                              : plan::Schedule::COSINE_CURVE);
    to.set_restart_steps(integer("restart_steps"));
    to.set_restart_mult(integer("restart_mult"));
    to.set_decay_steps(integer("decay_steps"));
  }
  if (std::optional<DictionaryAttr> optimizer = module.getOptimizer()) {
    plan::Optimizer &to = *proto.mutable_optimizer();
    for (NamedAttribute option : *optimizer) {
      if (option.getName() == "kind")
        to.set_kind(cast<StringAttr>(option.getValue()).str());
      else if (option.getName() == "convention")
        to.set_convention(cast<StringAttr>(option.getValue()).str());
      else if (auto real = dyn_cast<FloatAttr>(option.getValue()))
        (*to.mutable_options())[option.getName().str()] = real.getValueAsDouble();
      else if (auto integer = dyn_cast<IntegerAttr>(option.getValue()))
        (*to.mutable_options())[option.getName().str()] = double(integer.getInt());
      else
        return module.emitError("optimizer option '") << option.getName() << "' is not a number";
    }
  }
  if (std::optional<ArrayAttr> adapters = module.getAdapters())
    for (auto fields : adapters->getAsRange<DictionaryAttr>())
      if (failed(adapter(fields)))
        return failure();
  for (auto op : module.getBlock().getOps<plan::ProgramOp>())
    if (failed(program(op)))
      return failure();
  return success();
}

LogicalResult lowtide::exportPlan(plan::ModuleOp module, plan::Plan &proto) { return Exporter(module, proto).run(); }
