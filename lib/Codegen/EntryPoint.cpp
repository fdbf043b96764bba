//===- EntryPoint.cpp - what a kernel's entry point hands to its body --*- C++ -*-===//
//
// Pointers one by one, and tables of those whose number is no part of the body's code.
//
//===----------------------------------------------------------------------===//

#include "KernelFunction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

static constexpr StringLiteral numbersName = "pointers", startsName = "starts";

/// Vector code for a few rounds, or copies of them, would be more code and no faster.
static LLVM::LoopAnnotationAttr keepAsIs(OpBuilder &builder) {
  MLIRContext *context = builder.getContext();
  auto yes = builder.getBoolAttr(true);
  return LLVM::LoopAnnotationAttr::get(context, {},
                                       LLVM::LoopVectorizeAttr::get(context, /*disable=*/yes, {}, {}, {}, {}, {}, {}),
                                       {}, LLVM::LoopUnrollAttr::get(context, /*disable=*/yes, {}, {}, {}, {}, {}, {}),
                                       {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {});
}

KernelFunction::Piece KernelFunction::lookUpPiece(ArrayRef<Value> arrays, ArrayRef<int64_t> starts, Value position) {
  assert(!isGpu() && arrays.size() + 1 == starts.size());
  SmallVector<int64_t> numbers;
  for (Value array : arrays)
    numbers.push_back(llvm::find(pointers, array) - pointers.begin());
  tables.push_back(builder.getDictionaryAttr({builder.getNamedAttr(numbersName, builder.getDenseI64ArrayAttr(numbers)),
                                              builder.getNamedAttr(startsName, builder.getDenseI64ArrayAttr(starts))}));
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Type i64 = builder.getI64Type();
  SmallVector<Value, 3> arguments; // their pointers, their starts, how many they are
  for (Type type : {Type(pointer), Type(pointer), Type(builder.getIndexType())}) {
    const unsigned at = 3 * (tables.size() - 1) + arguments.size();
    (void)function.insertArgument(at, type, DictionaryAttr(), loc);
    arguments.push_back(function.getArgument(at));
  }
  auto loadFrom = [&](Value table, Type type, Value at) -> Value {
    Value wide = arith::IndexCastOp::create(builder, loc, i64, at);
    return LLVM::LoadOp::create(
        builder, loc, type,
        LLVM::GEPOp::create(builder, loc, pointer, type, table, ArrayRef<LLVM::GEPArg>{wide}).getResult());
  };
  auto start = [&](Value at) -> Value {
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), loadFrom(arguments[1], i64, at));
  };
  auto search = scf::ForOp::create(builder, loc, index(1), arguments[2], index(1), ValueRange{index(0)},
                                   [&](OpBuilder &, Location, Value at, ValueRange found) {
                                     Value isLater = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge,
                                                                           position, start(at));
                                     Value last = arith::SelectOp::create(builder, loc, isLater, at, found.front());
                                     scf::YieldOp::create(builder, loc, last);
                                   });
  search->setAttr("llvm.loop_annotation", keepAsIs(builder));
  Value number = search.getResult(0), first = start(number);
  Value extent = arith::SubIOp::create(builder, loc, start(add(number, index(1))), first);
  return {loadFrom(arguments[0], pointer, number), first, extent};
}

void KernelFunction::finishTables() {
  if (tables.empty())
    return;
  const unsigned numTableArguments = 3 * tables.size();
  SmallVector<int64_t> left;
  for (unsigned i = pointers.size(); i-- > 0;)
    if (pointers[i].use_empty())
      (void)function.eraseArgument(numTableArguments + i);
    else
      left.insert(left.begin(), i);
  function->setAttr(kTablesAttrName, builder.getArrayAttr(tables));
  function->setAttr(kPointersAttrName, builder.getDenseI64ArrayAttr(left));
}

/// An array on the stack of an entry point.
static Value fill(OpBuilder &builder, Location loc, Type type, ArrayRef<Value> values) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Value one = arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(1));
  Value array = LLVM::AllocaOp::create(builder, loc, pointer, LLVM::LLVMArrayType::get(type, values.size()), one);
  for (auto [i, value] : llvm::enumerate(values))
    LLVM::StoreOp::create(
        builder, loc, value,
        LLVM::GEPOp::create(builder, loc, pointer, type, array, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)})
            .getResult());
  return array;
}

void codegen::addEntryPoint(ModuleOp module, StringRef symbol, func::FuncOp body, unsigned numPointers) {
  OpBuilder builder(module.getContext());
  Location loc = body.getLoc();
  auto tables = body->getAttrOfType<ArrayAttr>(kTablesAttrName);
  SmallVector<int64_t> direct = llvm::to_vector(llvm::seq<int64_t>(0, numPointers));
  if (tables)
    direct = llvm::to_vector(body->getAttrOfType<DenseI64ArrayAttr>(kPointersAttrName).asArrayRef());
  body->removeAttr(kTablesAttrName);
  body->removeAttr(kPointersAttrName);
  builder.setInsertionPointToEnd(module.getBody());
  auto pointer = LLVM::LLVMPointerType::get(module.getContext());
  Type i64 = builder.getI64Type();
  SmallVector<Type> types{pointer};
  for (Type type : body.getArgumentTypes().drop_front((tables ? 3 * tables.size() : 0) + direct.size()))
    types.push_back(type.isIndex() ? i64 : type);
  auto entry = func::FuncOp::create(builder, loc, symbol, builder.getFunctionType(types, {}));
  Block *block = entry.addEntryBlock();
  builder.setInsertionPointToStart(block);
  SmallVector<Value> pointers, arguments;
  for (unsigned i = 0; i != numPointers; ++i) {
    Value slot = LLVM::GEPOp::create(builder, loc, pointer, pointer, block->getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
    pointers.push_back(LLVM::LoadOp::create(builder, loc, pointer, slot));
  }
  if (tables)
    for (auto table : tables.getAsRange<DictionaryAttr>()) {
      SmallVector<Value> own, starts;
      for (int64_t number : table.getAs<DenseI64ArrayAttr>(numbersName).asArrayRef())
        own.push_back(pointers[number]);
      for (int64_t start : table.getAs<DenseI64ArrayAttr>(startsName).asArrayRef())
        starts.push_back(arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(start)));
      arguments.push_back(fill(builder, loc, pointer, own));
      arguments.push_back(fill(builder, loc, i64, starts));
      arguments.push_back(arith::ConstantIndexOp::create(builder, loc, own.size()));
    }
  for (int64_t number : direct)
    arguments.push_back(pointers[number]);
  for (Value argument : block->getArguments().drop_front())
    arguments.push_back(argument.getType() == i64
                            ? arith::IndexCastOp::create(builder, loc, builder.getIndexType(), argument).getResult()
                            : argument);
  func::CallOp::create(builder, loc, body, arguments);
  func::ReturnOp::create(builder, loc);
}
