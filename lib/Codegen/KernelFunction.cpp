//===- KernelFunction.cpp - the function that a kernel becomes --*- C++ -*-===//
//
// Pointers, addresses, loops and local arrays.
//
//===----------------------------------------------------------------------===//

#include "KernelFunction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

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
    : builder(module.getContext()), loc(builder.getUnknownLoc()), module(module) {
  auto pointer = LLVM::LLVMPointerType::get(module.getContext());
  SmallVector<Type> types(mayAlias.size() + hasScratch, pointer);
  types.append(2, builder.getIndexType());
  builder.setInsertionPointToEnd(module.getBody());
  function = func::FuncOp::create(builder, loc, name, builder.getFunctionType(types, {}));
  function.setPrivate();
  // The entry point only unpacks: `noalias` holds for the arguments of a
  // function that stays one.
  function->setAttr("passthrough", builder.getArrayAttr({builder.getStringAttr("noinline")}));
  for (unsigned i = 0, n = mayAlias.size() + hasScratch; i != n; ++i)
    if (i >= mayAlias.size() || !mayAlias[i])
      function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
  Block *block = function.addEntryBlock();
  builder.setInsertionPointToStart(block);
  func::ReturnOp::create(builder, loc);
  builder.setInsertionPointToStart(block);
  begin = block->getArgument(types.size() - 2);
  end = block->getArgument(types.size() - 1);
}

Value KernelFunction::address(Value pointer, Type memoryType, Value offset) {
  Value i = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), offset);
  return LLVM::GEPOp::create(builder, loc, pointer.getType(), memoryType, pointer, ArrayRef<LLVM::GEPArg>{i},
                             LLVM::GEPNoWrapFlags::inbounds);
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
  builder.setInsertionPointToStart(&function.getBody().front());
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
  builder.setInsertionPointToStart(&function.getBody().front());
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

LLVM::LoopAnnotationAttr KernelFunction::annotation(LoopKind kind) {
  if (kind == LoopKind::Sequential)
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
  if (kind != LoopKind::Sequential) {
    auto group = LLVM::AccessGroupAttr::get(builder.getContext(), DistinctAttr::create(builder.getUnitAttr()));
    accessGroup = builder.getArrayAttr({group});
  }
  auto annotate = annotation(kind);
  auto loop = scf::ForOp::create(builder, loc, lower, upper, index(step), initial,
                                 [&](OpBuilder &, Location, Value i, ValueRange accumulators) {
                                   scf::YieldOp::create(builder, loc, body(i, accumulators));
                                 });
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

void codegen::addEntryPoint(ModuleOp module, StringRef symbol, func::FuncOp body, unsigned numPointers) {
  OpBuilder builder(module.getContext());
  Location loc = body.getLoc();
  builder.setInsertionPointToEnd(module.getBody());
  auto pointer = LLVM::LLVMPointerType::get(module.getContext());
  Type i64 = builder.getI64Type();
  auto entry = func::FuncOp::create(builder, loc, symbol, builder.getFunctionType({pointer, i64, i64}, {}));
  Block *block = entry.addEntryBlock();
  builder.setInsertionPointToStart(block);
  SmallVector<Value> arguments;
  for (unsigned i = 0; i != numPointers; ++i) {
    Value slot = LLVM::GEPOp::create(builder, loc, pointer, pointer, block->getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
    arguments.push_back(LLVM::LoadOp::create(builder, loc, pointer, slot));
  }
  for (unsigned i : {1, 2})
    arguments.push_back(arith::IndexCastOp::create(builder, loc, builder.getIndexType(), block->getArgument(i)));
  func::CallOp::create(builder, loc, body, arguments);
  func::ReturnOp::create(builder, loc);
}
