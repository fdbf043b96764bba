//===- GpuBatch.cpp - the kernels that a batch holds ------------*- C++ -*-===//
//
// 1. Parts of the body that no value connects are items.
// 2. Items have one form: op for op the same, over the same operands; where position i depends on position i only,
// their
//    shapes may differ.
//
//===----------------------------------------------------------------------===//

#include "GpuBatch.h"
#include "lowtide/Codegen/KernelModule.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/IntEqClasses.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

/// Blocks of a kernel over columns that leave most of a GPU idle: more of them go alone.
static constexpr int64_t kFewBlocks = 128;

static RankedTensorType getType(Value tensor) { return cast<RankedTensorType>(tensor.getType()); }

/// What kernels of one batch have in common, as text: ops, attributes and types by position. Of a flat kernel types are
/// element types, "one" for single values, and what only spreads or regroups elements has no attributes.
static std::string describeForm(nn::KernelOp kernel) {
  const bool flat = isFlat(kernel);
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::DenseMap<Value, std::string> names;
  auto printType = [&](Value value) {
    if (!flat)
      os << value.getType();
    else
      os << getType(value).getElementType() << (getType(value).getNumElements() == 1 ? " one" : "");
  };
  os << stringifyEmitter(kernel.getEmitter()) << (flat ? " flat" : "");
  for (BlockArgument argument : kernel.getBlock()->getArguments()) {
    names[argument] = ("a" + Twine(argument.getArgNumber())).str();
    os << ' ';
    printType(argument);
  }
  unsigned number = 0;
  for (Operation &op : *kernel.getBlock()) {
    os << '\n' << op.getName();
    for (Value operand : op.getOperands())
      os << ' ' << names[operand];
    DenseElementsAttr constant;
    if (flat && matchPattern(&op, m_Constant(&constant)))
      os << ' ' << constant.getSplatValue<Attribute>();
    else if (!flat || op.hasTrait<OpTrait::Elementwise>())
      os << ' ' << op.getAttrDictionary();
    for (Value result : op.getResults()) {
      names[result] = ("v" + Twine(number++)).str();
      os << ' ';
      printType(result);
    }
  }
  return text;
}

/// Item numbers of the body's ops, in their order; nothing if something is not computed by an op.
static FailureOr<llvm::DenseMap<Operation *, unsigned>> findItems(nn::KernelOp kernel) {
  llvm::DenseMap<Operation *, unsigned> items;
  for (Operation &op : kernel.getBlock()->without_terminator())
    items[&op] = items.size();
  llvm::IntEqClasses classes(items.size());
  for (auto &[op, number] : items)
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        classes.join(number, items.lookup(producer));
  classes.compress();
  for (auto &[op, number] : items)
    number = classes[number];
  for (Value result : kernel.getYield().getOperands())
    if (!result.getDefiningOp())
      return failure();
  return items;
}

std::string codegen::getBatchForm(nn::KernelOp kernel) {
  auto isNumbers = [](Type type) { return isa<RankedTensorType>(type); };
  if (!llvm::all_of(kernel.getOperandTypes(), isNumbers))
    return "";
  if (kernel.getEmitter() == nn::Emitter::row || kernel.getEmitter() == nn::Emitter::column) {
    // What takes two kernels goes alone.
    FailureOr<StagedDomain> domain = StagedDomain::get(kernel);
    if (failed(domain) || getPartialBytes(kernel, *domain))
      return "";
    if (!domain->getShape().trailing && getGpuColumnGrid(*domain).blocks > kFewBlocks)
      return "";
  } else if (kernel.getEmitter() != nn::Emitter::loop) {
    return "";
  }
  // One kernel is one item: a batch tells its items apart by that.
  auto items = findItems(kernel);
  if (failed(items) || llvm::any_of(*items, [](auto &each) { return each.second != 0; }))
    return "";
  return describeForm(kernel);
}

/// One item as a kernel op at the end of `block`.
static nn::KernelOp buildItem(nn::KernelOp kernel, ArrayRef<Operation *> ops, const Batch::Item &item, Block &block) {
  OpBuilder builder(kernel.getContext());
  SmallVector<Value> captures;
  for (unsigned number : item.operands) {
    BlockArgument argument = kernel.getBlock()->getArgument(number);
    captures.push_back(block.addArgument(argument.getType(), argument.getLoc()));
  }
  auto types = llvm::map_to_vector(item.results, [&](unsigned number) { return kernel.getResult(number).getType(); });
  builder.setInsertionPointToEnd(&block);
  const bool reduces = llvm::any_of(ops, [](Operation *op) { return isa<ReductionInterface>(op); });
  auto alone = nn::KernelOp::create(builder, kernel.getLoc(), reduces ? nn::Emitter::row : nn::Emitter::loop, captures,
                                    TypeRange(types));
  builder.setInsertionPointToEnd(alone.getBlock());
  IRMapping mapping;
  for (auto [number, argument] : llvm::zip_equal(item.operands, alone.getBlock()->getArguments()))
    mapping.map(kernel.getBlock()->getArgument(number), argument);
  for (Operation *op : ops)
    builder.clone(*op, mapping);
  nn::YieldOp::create(builder, kernel.getLoc(), llvm::map_to_vector(item.results, [&](unsigned number) {
                        return mapping.lookup(kernel.getYield().getOperand(number));
                      }));
  if (FailureOr<StagedDomain> domain = StagedDomain::get(alone); succeeded(domain) && !domain->getShape().trailing)
    alone.setEmitter(nn::Emitter::column);
  return alone;
}

FailureOr<Batch> Batch::get(nn::KernelOp kernel) {
  auto itemOf = findItems(kernel);
  if (failed(itemOf))
    return failure();
  Batch batch;
  batch.numOperands = kernel.getNumOperands();
  SmallVector<SmallVector<Operation *>> ops;
  for (Operation &op : kernel.getBlock()->without_terminator()) {
    unsigned number = itemOf->lookup(&op);
    ops.resize(std::max<size_t>(ops.size(), number + 1));
    batch.items.resize(ops.size());
    ops[number].push_back(&op);
    for (Value operand : op.getOperands())
      if (auto argument = dyn_cast<BlockArgument>(operand))
        if (SmallVector<unsigned> &known = batch.items[number].operands;
            !llvm::is_contained(known, argument.getArgNumber()))
          known.push_back(argument.getArgNumber());
  }
  for (auto [i, result] : llvm::enumerate(kernel.getYield().getOperands()))
    batch.items[itemOf->lookup(result.getDefiningOp())].results.push_back(i);
  batch.block = std::make_unique<Block>();
  std::string form;
  for (auto [item, own] : llvm::zip_equal(batch.items, ops)) {
    if (item.results.empty())
      return failure();
    item.count = getType(kernel.getResult(item.results.front())).getNumElements();
    batch.isRagged |= item.count != batch.items.front().count;
    Block trial;
    nn::KernelOp alone = buildItem(kernel, own, item, batch.first ? trial : *batch.block);
    std::string same = describeForm(alone);
    if (!batch.first) {
      batch.first = alone;
      form = std::move(same);
    } else if (same != form) {
      return failure();
    }
  }
  return batch;
}

SmallVector<SmallVector<int, 4>> Batch::findInPlace(nn::KernelOp kernel, bool staged) const {
  SmallVector<SmallVector<int, 4>> inPlace = codegen::findInPlace(kernel, staged);
  // Items run at the same time: what two of them read is overwritten by none.
  SmallVector<unsigned> readers(kernel.getNumOperands(), 0);
  for (const Item &item : items)
    for (unsigned operand : item.operands)
      ++readers[operand];
  for (SmallVector<int, 4> &operands : inPlace)
    llvm::erase_if(operands, [&](int operand) { return readers[operand] != 1; });
  return inPlace;
}
