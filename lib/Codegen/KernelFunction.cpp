//===- KernelFunction.cpp - the function that a kernel becomes --*- C++ -*-===//
//
// Pointers, addresses, loops and local arrays.
//
//===----------------------------------------------------------------------===//

#include "KernelFunction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

Type codegen::scalarType(Type elementType) {
  if (elementType.isUnsignedInteger() || elementType.isSignedInteger())
    return IntegerType::get(elementType.getContext(), elementType.getIntOrFloatBitWidth());
  return elementType;
}

static Type memoryType(Type elementType) {
  Type scalar = scalarType(elementType);
  return scalar.isInteger(1) ? IntegerType::get(scalar.getContext(), 8) : scalar;
}

uint64_t codegen::elementBytes(Type elementType) { return memoryType(elementType).getIntOrFloatBitWidth() / 8; }

KernelFunction::KernelFunction(ModuleOp module, StringRef name, ArrayRef<bool> mayAlias, bool hasScratch)
    : builder(module.getContext()), loc(builder.getUnknownLoc()) {
  auto pointer = LLVM::LLVMPointerType::get(module.getContext());
  SmallVector<Type> types(mayAlias.size() + hasScratch, pointer);
  types.append(2, builder.getIndexType());
  builder.setInsertionPointToEnd(module.getBody());
  auto body = func::FuncOp::create(builder, loc, name, builder.getFunctionType(types, {}));
  body.setPrivate();
  // The entry point only unpacks: `noalias` holds for the arguments of a
  // function that stays one.
  body->setAttr("passthrough", builder.getArrayAttr({builder.getStringAttr("noinline")}));
  Block *entry = body.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  func::ReturnOp::create(builder, loc);
  function = body;
  start(mayAlias, hasScratch);
  begin = entry->getArgument(types.size() - 2);
  end = entry->getArgument(types.size() - 1);
}

KernelFunction::KernelFunction(gpu::GPUModuleOp module, StringRef name, ArrayRef<bool> mayAlias, bool hasScratch,
                               Grid grid)
    : builder(module.getContext()), loc(builder.getUnknownLoc()), grid(grid) {
  createKernel(module, name, mayAlias.size() + hasScratch);
  start(mayAlias, hasScratch);
  for (unsigned i = 0; i != getNumPointers(); ++i)
    function.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(), builder.getI64IntegerAttr(16));
  thread = gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x);
  block = gpu::BlockIdOp::create(builder, loc, gpu::Dimension::x);
}

KernelFunction::KernelFunction(gpu::GPUModuleOp module, StringRef name, unsigned numPointers, Grid grid)
    : builder(module.getContext()), loc(builder.getUnknownLoc()), grid(grid) {
  createKernel(module, name, /*numParameters=*/1);
  auto array = LLVM::LLVMArrayType::get(LLVM::LLVMPointerType::get(builder.getContext()), numPointers);
  function->setAttr(kPointerTableAttrName, builder.getUnitAttr());
  function.setArgAttr(0, LLVM::LLVMDialect::getByValAttrName(), TypeAttr::get(array));
  function.setArgAttr(0, LLVM::LLVMDialect::getAlignAttrName(), builder.getI64IntegerAttr(8));
  builder.setInsertionPointToStart(&function.getFunctionBody().front());
  thread = gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x);
  block = gpu::BlockIdOp::create(builder, loc, gpu::Dimension::x);
}

void KernelFunction::createKernel(gpu::GPUModuleOp module, StringRef name, unsigned numParameters) {
  SmallVector<Type> types(numParameters, LLVM::LLVMPointerType::get(module.getContext()));
  builder.setInsertionPointToEnd(module.getBody());
  auto kernel = gpu::GPUFuncOp::create(builder, loc, name, builder.getFunctionType(types, {}));
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  kernel.setKnownBlockSizeAttr(builder.getDenseI32ArrayAttr({static_cast<int32_t>(grid.threads), 1, 1}));
  builder.setInsertionPointToStart(&kernel.getBody().front());
  gpu::ReturnOp::create(builder, loc);
  function = kernel;
}

Value KernelFunction::loadPointer(Value number) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Value at = LLVM::GEPOp::create(builder, loc, pointer, pointer, function.getArgument(0),
                                 arith::IndexCastOp::create(builder, loc, builder.getI64Type(), number).getResult());
  Value loaded = LLVM::LoadOp::create(builder, loc, pointer, at);
  Value yes = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true));
  Value alignment = arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(16));
  LLVM::AssumeOp::create(builder, loc, yes, LLVM::AssumeAlignTag(), loaded, alignment);
  return loaded;
}

void KernelFunction::start(ArrayRef<bool> mayAlias, bool hasScratch) {
  for (unsigned i = 0, n = mayAlias.size() + hasScratch; i != n; ++i)
    pointers.push_back(function.getArgument(i));
  for (unsigned i = 0, n = mayAlias.size() + hasScratch; i != n; ++i)
    if (i >= mayAlias.size() || !mayAlias[i])
      function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
  builder.setInsertionPointToStart(&function.getFunctionBody().front());
}

/// `offset` as a value and a constant that is not negative.
static std::pair<Value, int64_t> splitConstant(OpBuilder &builder, Location loc, Value offset) {
  if (auto constant = getConstantIntValue(offset); constant && *constant >= 0)
    return {Value(), *constant};
  auto sum = offset.getDefiningOp<arith::AddIOp>();
  if (!sum)
    return {offset, 0};
  auto [x, a] = splitConstant(builder, loc, sum.getLhs());
  auto [y, b] = splitConstant(builder, loc, sum.getRhs());
  if (!a && !b)
    return {offset, 0};
  return {x && y ? builder.createOrFold<arith::AddIOp>(loc, x, y) : x ? x : y, a + b};
}

Value KernelFunction::address(Value pointer, Type memoryType, Value offset) {
  auto move = [&](LLVM::GEPArg by, LLVM::GEPNoWrapFlags flags) {
    pointer =
        LLVM::GEPOp::create(builder, loc, pointer.getType(), memoryType, pointer, ArrayRef<LLVM::GEPArg>{by}, flags);
  };
  auto wide = [&](Value i) -> Value { return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), i); };
  if (!isGpu()) {
    move(wide(offset), LLVM::GEPNoWrapFlags::inbounds);
    return pointer;
  }
  // Neighbours are told by their constant distance: accesses to them become one of up to 16 bytes.
  auto [variable, constant] = splitConstant(builder, loc, offset);
  if (variable)
    move(wide(variable), LLVM::GEPNoWrapFlags::none);
  if (constant || !variable)
    move(static_cast<int32_t>(constant), LLVM::GEPNoWrapFlags::none);
  return pointer;
}

void KernelFunction::forEachTask(int64_t count, LoopKind kind, function_ref<void(Value)> body) {
  if (!isGpu())
    return loop(begin, end, 1, kind, body);
  Value first = add(mul(block, index(grid.threads)), thread);
  loop(first, index(count), grid.threads * grid.blocks, kind, body);
}

void KernelFunction::barrier() { gpu::BarrierOp::create(builder, loc); }

Value KernelFunction::shuffle(Value value, gpu::ShuffleMode mode, Value operand) {
  Type type = value.getType(), i32 = builder.getI32Type(), i64 = builder.getI64Type();
  auto word = [&](Value x) -> Value {
    Value width = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(32));
    return gpu::ShuffleOp::create(builder, loc, x, operand, width, mode).getShuffleResult();
  };
  const unsigned bits = type.getIntOrFloatBitWidth();
  if (bits == 32)
    return word(value);
  if (bits < 32) {
    Type same = builder.getIntegerType(bits);
    Value small = isa<FloatType>(type) ? arith::BitcastOp::create(builder, loc, same, value).getResult() : value;
    Value back = arith::TruncIOp::create(builder, loc, same, word(arith::ExtUIOp::create(builder, loc, i32, small)));
    return isa<FloatType>(type) ? arith::BitcastOp::create(builder, loc, type, back).getResult() : back;
  }
  Value whole = isa<FloatType>(type) ? arith::BitcastOp::create(builder, loc, i64, value).getResult() : value;
  Value half = arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(32));
  Value low = word(arith::TruncIOp::create(builder, loc, i32, whole));
  Value high = word(arith::TruncIOp::create(builder, loc, i32, arith::ShRUIOp::create(builder, loc, whole, half)));
  Value back =
      arith::OrIOp::create(builder, loc, arith::ExtUIOp::create(builder, loc, i64, low),
                           arith::ShLIOp::create(builder, loc, arith::ExtUIOp::create(builder, loc, i64, high), half));
  return isa<FloatType>(type) ? arith::BitcastOp::create(builder, loc, type, back).getResult() : back;
}

Value KernelFunction::shared(Type elementType, int64_t count) {
  Type type = memoryType(elementType);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(function);
  std::string name = (function.getName() + "_shared" + Twine(numGlobals++)).str();
  auto array = LLVM::LLVMArrayType::get(type, count);
  auto global = LLVM::GlobalOp::create(builder, loc, array, /*isConstant=*/false, LLVM::Linkage::Internal, name,
                                       /*value=*/Attribute(), /*alignment=*/64,
                                       static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared));
  // Where it lies in the block's shared memory, for code of the host.
  global->setAttr(kSharedOffsetAttrName, builder.getI64IntegerAttr(sharedBytes));
  sharedBytes += llvm::alignTo(count * elementBytes(elementType), 64);
  builder.setInsertionPointToStart(&function.getFunctionBody().front());
  return LLVM::AddressOfOp::create(builder, loc, global);
}

Value KernelFunction::load(Value pointer, Type elementType, Value offset) {
  Type type = memoryType(elementType);
  auto load = LLVM::LoadOp::create(builder, loc, type, address(pointer, type, offset));
  if (accessGroup)
    load.setAccessGroupsAttr(accessGroup);
  if (!scalarType(elementType).isInteger(1))
    return load;
  Value zero = arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, 0));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, load, zero);
}

void KernelFunction::store(Value pointer, Type elementType, Value offset, Value scalar) {
  Type type = memoryType(elementType);
  if (scalar.getType() != type)
    scalar = arith::ExtUIOp::create(builder, loc, type, scalar);
  auto store = LLVM::StoreOp::create(builder, loc, scalar, address(pointer, type, offset));
  if (accessGroup)
    store.setAccessGroupsAttr(accessGroup);
}

Value KernelFunction::local(Type elementType, int64_t count) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&function.getFunctionBody().front());
  auto array = LLVM::LLVMArrayType::get(memoryType(elementType), count);
  Value one = arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(1));
  return LLVM::AllocaOp::create(builder, loc, LLVM::LLVMPointerType::get(builder.getContext()), array, one,
                                /*alignment=*/64);
}

Value KernelFunction::global(DenseElementsAttr elements) {
  Type type = memoryType(elements.getElementType());
  auto array = LLVM::LLVMArrayType::get(type, elements.getNumElements());
  // The constant as memory holds it: booleans as bytes, unsigned integers as
  // signless ones.
  auto flat = RankedTensorType::get({elements.getNumElements()}, type);
  SmallVector<Attribute> values;
  if (isa<FloatType>(type)) {
    for (APFloat value : elements.getValues<APFloat>())
      values.push_back(builder.getFloatAttr(type, value));
  } else {
    for (APInt value : elements.getValues<APInt>())
      values.push_back(builder.getIntegerAttr(type, value.zextOrTrunc(type.getIntOrFloatBitWidth())));
  }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(function);
  std::string name = (function.getName() + ".constant" + Twine(numGlobals++)).str();
  auto global = LLVM::GlobalOp::create(builder, loc, array, /*isConstant=*/true, LLVM::Linkage::Private, name,
                                       DenseElementsAttr::get(flat, values), /*alignment=*/64);
  builder.setInsertionPointToStart(&function.getFunctionBody().front());
  return LLVM::AddressOfOp::create(builder, loc, global);
}

Value KernelFunction::index(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
Value KernelFunction::add(Value x, Value y) { return builder.createOrFold<arith::AddIOp>(loc, x, y); }
Value KernelFunction::mul(Value x, Value y) { return builder.createOrFold<arith::MulIOp>(loc, x, y); }
Value KernelFunction::min(Value x, Value y) { return builder.createOrFold<arith::MinSIOp>(loc, x, y); }

Value KernelFunction::linearize(ValueRange index, ArrayRef<int64_t> shape) {
  assert(index.size() == shape.size());
  SmallVector<Value> parts;
  SmallVector<int64_t> extents;
  for (auto [i, extent] : llvm::zip_equal(index, shape))
    if (extent != 1) {
      parts.push_back(i);
      extents.push_back(extent);
    }
  Value linear;
  for (size_t d = 0; d < parts.size();) {
    // A run of indices that came from one position goes back to it, without divisions.
    const Delinearized *whole = nullptr;
    for (const Delinearized &run : delinearized)
      if (size_t n = run.parts.size(); d + n <= parts.size() && ArrayRef(parts).slice(d, n) == ArrayRef(run.parts) &&
                                       ArrayRef(extents).slice(d, n) == ArrayRef(run.extents))
        whole = &run;
    size_t length = whole ? whole->parts.size() : 1;
    Value i = whole ? whole->linear : parts[d];
    int64_t extent = 1;
    for (int64_t e : ArrayRef(extents).slice(d, length))
      extent *= e;
    linear = linear ? add(mul(linear, this->index(extent)), i) : i;
    d += length;
  }
  return linear ? linear : this->index(0);
}

SmallVector<Value> KernelFunction::delinearize(Value linear, ArrayRef<int64_t> shape) {
  SmallVector<Value> result(shape.size());
  Delinearized run{linear, {}, {}};
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1) {
      result[d] = index(0);
      continue;
    }
    if (llvm::all_of(shape.take_front(d), [](int64_t extent) { return extent == 1; })) {
      result[d] = linear;
    } else {
      // Unsigned division is the cheaper one; indices are never negative.
      Value extent = index(shape[d]);
      result[d] = arith::RemUIOp::create(builder, loc, linear, extent);
      linear = arith::DivUIOp::create(builder, loc, linear, extent);
    }
    run.parts.insert(run.parts.begin(), result[d]);
    run.extents.insert(run.extents.begin(), shape[d]);
  }
  if (run.parts.size() > 1)
    delinearized.push_back(std::move(run));
  return result;
}

void KernelFunction::remember(Value linear, ValueRange parts, ArrayRef<int64_t> shape) {
  Delinearized run{linear, {}, {}};
  for (auto [part, extent] : llvm::zip_equal(parts, shape))
    if (extent != 1) {
      run.parts.push_back(part);
      run.extents.push_back(extent);
    }
  if (run.parts.size() > 1)
    delinearized.push_back(std::move(run));
}

LLVM::LoopAnnotationAttr KernelFunction::annotation(LoopKind kind) {
  if (kind == LoopKind::Sequential || isGpu())
    return {};
  MLIRContext *context = builder.getContext();
  auto no = builder.getBoolAttr(false), yes = builder.getBoolAttr(true);
  LLVM::LoopVectorizeAttr vectorize;
  LLVM::LoopUnrollAttr unroll;
  LLVM::LoopInterleaveAttr interleave;
  if (kind == LoopKind::Lanes) {
    vectorize =
        LLVM::LoopVectorizeAttr::get(context, /*disable=*/no, {}, {}, builder.getI32IntegerAttr(16), {}, {}, {});
    interleave = LLVM::LoopInterleaveAttr::get(context, builder.getI32IntegerAttr(1));
    unroll = LLVM::LoopUnrollAttr::get(context, /*disable=*/yes, {}, {}, {}, {}, {}, {});
  }
  SmallVector<LLVM::AccessGroupAttr> groups;
  if (accessGroup)
    groups.push_back(cast<LLVM::AccessGroupAttr>(accessGroup[0]));
  return LLVM::LoopAnnotationAttr::get(context, {}, vectorize, interleave, unroll, {}, {}, {}, {}, {}, {}, {}, {}, {},
                                       {}, groups);
}

static LLVM::LoopAnnotationAttr annotateUnroll(LLVM::LoopUnrollAttr unroll) {
  return LLVM::LoopAnnotationAttr::get(unroll.getContext(), {}, {}, {}, unroll, {}, {}, {}, {}, {}, {}, {}, {}, {}, {},
                                       {});
}

/// Rounds with barriers stay a loop. Written out, nothing of a round can move over its barriers but sums, and those do
/// move after all of them, to the one branch that needs the total: until then what they add fills the registers.
LLVM::LoopAnnotationAttr KernelFunction::keepRolled() {
  return annotateUnroll(
      LLVM::LoopUnrollAttr::get(builder.getContext(), /*disable=*/builder.getBoolAttr(true), {}, {}, {}, {}, {}, {}));
}

LLVM::LoopAnnotationAttr KernelFunction::unrollTo(int64_t rounds) {
  return annotateUnroll(LLVM::LoopUnrollAttr::get(builder.getContext(), /*disable=*/{},
                                                  /*count=*/builder.getI32IntegerAttr(static_cast<int32_t>(rounds)), {},
                                                  {}, {}, {}, {}));
}

SmallVector<Value> KernelFunction::loop(Value lower, Value upper, int64_t step, LoopKind kind, ValueRange initial,
                                        function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto constant = [](Value x) { return getConstantIntValue(x); };
  if (auto from = constant(lower), to = constant(upper); from && to) {
    if (*from >= *to)
      return SmallVector<Value>(initial);
    if (*to - *from <= step)
      return body(lower, initial);
  }
  ArrayAttr outer = accessGroup;
  // Independence is a statement about one loop: accesses belong to the
  // innermost.
  accessGroup = {};
  if (kind != LoopKind::Sequential && !isGpu()) {
    auto group = LLVM::AccessGroupAttr::get(builder.getContext(), DistinctAttr::create(builder.getUnitAttr()));
    accessGroup = builder.getArrayAttr({group});
  }
  auto annotate = annotation(kind);
  aroundLoops.push_back(builder.getInsertionBlock());
  auto loop = scf::ForOp::create(builder, loc, lower, upper, index(step), initial,
                                 [&](OpBuilder &, Location, Value i, ValueRange accumulators) {
                                   scf::YieldOp::create(builder, loc, body(i, accumulators));
                                 });
  aroundLoops.pop_back();
  if (isGpu() && loop->walk([](gpu::BarrierOp) { return WalkResult::interrupt(); }).wasInterrupted())
    annotate = keepRolled();
  else if (isGpu() && maxRounds)
    annotate = unrollTo(maxRounds);
  if (annotate)
    loop->setAttr("llvm.loop_annotation", annotate);
  accessGroup = outer;
  return SmallVector<Value>(loop.getResults());
}

void KernelFunction::loop(Value lower, Value upper, int64_t step, LoopKind kind, function_ref<void(Value)> body) {
  loop(lower, upper, step, kind, ValueRange(), [&](Value i, ValueRange) -> SmallVector<Value> {
    body(i);
    return {};
  });
}
