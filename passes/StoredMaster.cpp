//===- StoredMaster.cpp - parameters stored exactly, read rounded ---------===//

#include "StoredMaster.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Adapters.h"
#include "lowtide/Interfaces/OpInterfaces.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::train;

StoredMaster::StoredMaster(func::FuncOp step, const BindingIndex &index, SignatureGrowth &growth,
                           BlockArgument parameter, const CodecInfo &codec)
    : step(step), index(index), growth(growth), parameter(parameter), codec(codec),
      name(getBindingName(getArgBinding(step, parameter.getArgNumber()))), parts(codec.parts.size()),
      bindings(codec.parts.size()) {}

/// Whether `op` only rounds f32 to bf16.
static bool isRounding(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() && op->getNumOperands() == 1 &&
         getElementTypeOrSelf(op->getOperand(0)).isF32() && getElementTypeOrSelf(op->getResult(0)).isBF16();
}

/// Whether `op` shows the elements of its operand elsewhere and changes none.
static bool isMovement(Operation *op) {
  auto facts = dyn_cast<FactsInterface>(op);
  return facts && facts.getFacts().family == OpFamily::Movement && op->getNumOperands() == 1 &&
         op->getNumResults() == 1 && op->getNumRegions() == 0;
}

/// Whether something reads the result of a movement rounded.
static bool feedsRounding(Operation *op) {
  return isMovement(op) &&
         llvm::any_of(op->getUsers(), [](Operation *user) { return isRounding(user) || feedsRounding(user); });
}

/// What writes the parameter: its update, and what decides whether it is written.
static bool isWriter(Operation *op) { return isa<OptimizerInterface, CommitOp>(op); }

bool StoredMaster::isReadRounded(BlockArgument parameter) {
  const bool isNarrow = getElementTypeOrSelf(parameter.getType()).isBF16();
  return llvm::any_of(parameter.getUsers(), [&](Operation *user) {
    return !isWriter(user) && (isNarrow || isRounding(user) || feedsRounding(user));
  });
}

RankedTensorType StoredMaster::getPartType(const StoredPart &part) {
  Builder b(step.getContext());
  return cast<RankedTensorType>(parameter.getType()).clone(part.element(b));
}

Value StoredMaster::getPart(unsigned number) {
  if (parts[number])
    return parts[number];
  // Weights of the file come in all parts; what a run draws is no file's.
  const bool isDrawn = step.getArgAttr(parameter.getArgNumber(), initAttrName) != nullptr;
  auto partName = StringAttr::get(step.getContext(), name.getValue() + codec.parts[number].suffix);
  bindings[number] = StateAttr::get(step.getContext(), partName, FloatAttr(), !isDrawn);
  return parts[number] = growth.appendArg(getPartType(codec.parts[number]), bindings[number], parameter.getLoc());
}

Value StoredMaster::getNarrow() {
  if (narrow)
    return narrow;
  OpBuilder builder = OpBuilder::atBlockBegin(&step.getBody().front());
  if (codec.parts.front().element(builder).isBF16())
    return narrow = parameter;
  return narrow = nn::highHalf(nn::Expr(builder, parameter.getLoc(), parameter), builder.getBF16Type());
}

Value StoredMaster::getWide() {
  if (wide)
    return wide;
  SmallVector<Value> all;
  for (unsigned i = 0; i < parts.size(); ++i)
    all.push_back(getPart(i));
  if (all.size() == 1)
    return wide = all.front();
  OpBuilder builder = OpBuilder::atBlockBegin(&step.getBody().front());
  return wide = buildDecode(builder, parameter.getLoc(), codec, all, /*nonNegative=*/false);
}

/// Lets what rounds the operand read `narrow`, its rounded value; whether nothing is left that reads it wide.
bool StoredMaster::readRounded(OpOperand &use, Value narrow) {
  Operation *op = use.getOwner();
  if (isRounding(op)) {
    op->getResult(0).replaceAllUsesWith(narrow);
    op->erase();
    return true;
  }
  if (!feedsRounding(op))
    return false;
  OpBuilder builder(op);
  Operation *moved = builder.clone(*op);
  moved->setOperand(0, narrow);
  moved->getResult(0).setType(cast<RankedTensorType>(op->getResult(0).getType()).clone(builder.getBF16Type()));
  for (OpOperand &inner : llvm::make_early_inc_range(op->getResult(0).getUses()))
    readRounded(inner, moved->getResult(0));
  if (!op->use_empty())
    return false;
  op->erase();
  return true;
}

/// Rows of a table: each part's, put together.
bool StoredMaster::readRows(OpOperand &use) {
  auto gather = dyn_cast<nn::GatherOp>(use.getOwner());
  if (!gather || use.getOperandNumber() != 0 || parts.size() == 1)
    return false;
  OpBuilder builder(gather);
  SmallVector<Value> rows;
  for (unsigned i = 0; i < parts.size(); ++i) {
    Operation *picked = builder.clone(*gather);
    picked->setOperand(0, getPart(i));
    Type element = getElementTypeOrSelf(getPart(i).getType());
    picked->getResult(0).setType(cast<RankedTensorType>(gather.getType()).clone(element));
    rows.push_back(picked->getResult(0));
  }
  // Written out: rows are of samples, of which codecs know nothing.
  Operation *decode = buildDecode(builder, gather.getLoc(), codec, rows, /*nonNegative=*/false).getDefiningOp();
  gather.replaceAllUsesWith(cast<DecomposableInterface>(decode).decompose(builder)->front());
  gather.erase();
  decode->erase();
  return true;
}

void StoredMaster::storeArgument() {
  const bool wasNarrow = getElementTypeOrSelf(parameter.getType()).isBF16();
  SmallVector<OpOperand *> reads;
  for (OpOperand &use : parameter.getUses())
    if (!isWriter(use.getOwner()))
      reads.push_back(&use);
  parts.front() = parameter;
  if (!wasNarrow)
    llvm::erase_if(reads, [&](OpOperand *use) { return readRounded(*use, getNarrow()); });
  parameter.setType(getPartType(codec.parts.front()));
  for (OpOperand *use : reads) {
    if (wasNarrow)
      use->set(getNarrow());
    else if (!readRows(*use))
      use->set(getWide());
  }
}

Operation *StoredMaster::findLastReader() {
  Operation *last = nullptr;
  SmallVector<Value> names;
  for (Value part : parts)
    names.push_back(part);
  while (!names.empty())
    for (Operation *user : names.pop_back_val().getUsers()) {
      Operation *reader = step.getBody().front().findAncestorOpInBlock(*user);
      if (isWriter(user) || user->hasTrait<OpTrait::IsTerminator>())
        continue;
      if (!last || last->isBeforeInBlock(reader))
        last = reader;
      // What moves elements may become part of what reads them moved.
      if (isMovement(user))
        names.append(user->result_begin(), user->result_end());
    }
  return last;
}

OptimizerInterface StoredMaster::storeUpdate(OptimizerInterface update) {
  for (unsigned i = 0; i < parts.size(); ++i)
    getPart(i);
  Operation *lastReader = findLastReader();
  OpBuilder builder(update);
  if (lastReader && update->isBeforeInBlock(lastReader))
    builder.setInsertionPointAfter(lastReader);
  const Location loc = update.getLoc();
  Operation *updated = builder.clone(*update);
  builder.setInsertionPoint(updated);
  updated->setOperand(0, buildDecode(builder, loc, codec, parts, /*nonNegative=*/false));
  updated->getResult(0).setType(updated->getOperand(0).getType());
  builder.setInsertionPointAfter(updated);
  SmallVector<Value> encoded = buildEncode(builder, loc, codec, updated->getResult(0), /*nonNegative=*/false);

  Operation *terminator = step.getBody().front().getTerminator();
  const unsigned result = *index.findResult<ParamAttr>(name);
  auto commit = terminator->getOperand(result).getDefiningOp<CommitOp>();
  auto keep = [&](Value value, Value before) -> Value {
    return commit ? CommitOp::create(builder, loc, value.getType(), commit.getFinite(), value, before) : value;
  };
  terminator->setOperand(result, keep(encoded.front(), parts.front()));
  for (unsigned i = 1; i < parts.size(); ++i)
    growth.appendResult(keep(encoded[i], parts[i]), bindings[i]);
  if (commit)
    commit->erase();
  for (OpResult state : llvm::drop_begin(update->getResults()))
    for (OpOperand &use : llvm::make_early_inc_range(state.getUses())) {
      use.set(updated->getResult(state.getResultNumber()));
      if (isWriter(use.getOwner()))
        use.getOwner()->moveAfter(encoded.front().getDefiningOp());
    }
  update->erase();
  return cast<OptimizerInterface>(updated);
}
