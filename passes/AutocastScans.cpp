//===- AutocastScans.cpp - what the rounds of a scan keep in 16 bits ------===//
//
// A round hands on, for the backward pass, what it read and made. In 16 bits, with the same losses and gradients: rows
// that all readers round, and rows that are 16-bit values widened. An input product of a whole segment of steps is
// rounded with its bias, as a linear layer's result is.
//
//===----------------------------------------------------------------------===//

#include "Autocast.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Scan.h"

using namespace mlir;
using namespace lowtide;

static bool isMovement(Operation *op) {
  auto facts = dyn_cast_or_null<FactsInterface>(op);
  return facts && op->getNumResults() == 1 && op->getNumRegions() == 0 && !op->hasTrait<OpTrait::Elementwise>() &&
         (facts.getFacts().family == OpFamily::Movement || facts.getFacts().aliasing == Aliasing::View);
}

static RankedTensorType withElement(Value value, Type element) {
  return RankedTensorType::get(cast<RankedTensorType>(value.getType()).getShape(), element);
}

/// A cast between two types of floats: no other elementwise op of one operand changes the type.
static bool isFloatCast(Operation *op) {
  return op && op->hasTrait<OpTrait::Elementwise>() && op->getNumOperands() == 1 &&
         isa<FloatType>(getElementTypeOrSelf(op->getOperand(0))) &&
         isa<FloatType>(getElementTypeOrSelf(op->getResult(0))) &&
         op->getOperand(0).getType() != op->getResult(0).getType();
}

static bool isOfType(Value value, Type element) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getElementType() == element;
}

/// The result that row `operand` of a round's end becomes; null where the next round is handed it.
static Value getRowResult(OpOperand &operand) {
  Operation *next = operand.getOwner();
  auto scan = next->hasTrait<OpTrait::IsTerminator>() ? dyn_cast<nn::ScanOp>(next->getParentOp()) : nn::ScanOp();
  if (!scan || operand.getOperandNumber() < scan.getNumCarried())
    return {};
  return scan->getResult(operand.getOperandNumber());
}

/// What a scan's body has of its operand; null for what it carries.
static Value getSeen(OpOperand &operand) {
  auto scan = dyn_cast<nn::ScanOp>(operand.getOwner());
  const unsigned number = operand.getOperandNumber();
  if (!scan || (number >= scan.getNumSliced() && number < scan.getNumSliced() + scan.getNumCarried()))
    return {};
  return scan.getBlock()->getArgument(number);
}

namespace lowtide {
class ScanNarrower {
public:
  explicit ScanNarrower(Autocast &cast) : cast(cast), narrow(cast.narrow), wide(cast.wide) {}

  void run() {
    for (nn::ScanOp scan : cast.block.getOps<nn::ScanOp>())
      if (cast.isForward(scan))
        roundProducts(*scan.getBlock());
    narrowRows(cast.block);
  }

private:
  /// What a cast from 16 bits to f32 widens; null where `value` is of no such cast.
  Value getWidened(Value value) const {
    Operation *op = value.getDefiningOp();
    return isFloatCast(op) && isOfType(op->getOperand(0), narrow) && isOfType(value, wide) ? op->getOperand(0)
                                                                                           : Value();
  }

  /// A product of 16-bit operands, with a bias or without; an override may keep its operands in f32.
  bool isProduct(Value value) const {
    Operation *op = value.getDefiningOp();
    auto facts = dyn_cast_or_null<FactsInterface>(op);
    if (!facts)
      return false;
    if (facts.getFacts().family == OpFamily::Contraction)
      return isOfType(op->getOperand(0), narrow);
    if (op->hasTrait<OpTrait::Elementwise>() && op->getNumOperands() == 2)
      for (unsigned i : {0, 1})
        if (isProduct(op->getOperand(i)))
          return isMovement(op->getOperand(1 - i).getDefiningOp()) && !isProduct(op->getOperand(1 - i));
    return isMovement(op) && op->getNumOperands() == 1 && isProduct(op->getOperand(0));
  }

  /// Of the scans in a round. At the top of a function, storage is decided where it is for all products.
  void roundProducts(Block &body) {
    for (nn::ScanOp scan : llvm::make_early_inc_range(body.getOps<nn::ScanOp>())) {
      roundProducts(*scan.getBlock());
      for (Value sliced : scan.getSliced())
        roundProduct(sliced);
    }
  }

  void roundProduct(Value value) {
    if (!isOfType(value, wide) || !isProduct(value))
      return;
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    Value rounded = nn::CastOp::create(builder, value.getLoc(), withElement(value, narrow), value);
    Value widened = nn::CastOp::create(builder, value.getLoc(), withElement(value, wide), rounded);
    value.replaceAllUsesExcept(widened, rounded.getDefiningOp());
  }

  bool isOnlyRounded(Value value) const {
    return !value.use_empty() && llvm::all_of(value.getUses(), [&](OpOperand &use) {
      Operation *user = use.getOwner();
      if (Value row = getRowResult(use))
        return isOnlyRounded(row);
      if (Value seen = getSeen(use))
        return isOnlyRounded(seen);
      return isFloatCast(user) ? isOfType(user->getResult(0), narrow)
                               : isMovement(user) && isOnlyRounded(user->getResult(0));
    });
  }

  /// Inner scans first: their rows are rows of a round.
  void narrowRows(Block &block) {
    for (nn::ScanOp scan : llvm::make_early_inc_range(block.getOps<nn::ScanOp>())) {
      narrowRows(*scan.getBlock());
      narrowRows(scan);
    }
  }

  void narrowRows(nn::ScanOp scan) {
    nn::NextOp next = scan.getNext();
    for (OpOperand &row : next.getRowsMutable()) {
      Value result = getRowResult(row);
      if (!isOfType(row.get(), wide) || result.use_empty())
        continue;
      Value kept = getWidened(row.get());
      if (!kept) {
        if (!isOnlyRounded(result))
          continue;
        OpBuilder builder(next);
        kept = nn::CastOp::create(builder, row.get().getLoc(), withElement(row.get(), narrow), row.get());
      }
      row.set(kept);
      narrowAndWiden(result);
    }
  }

  /// Gives a value the 16-bit type, and its readers what they had: as far down as it can be kept in 16 bits.
  void narrowAndWiden(Value value) {
    value.setType(withElement(value, narrow));
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    auto widened = nn::CastOp::create(builder, value.getLoc(), withElement(value, wide), value);
    value.replaceAllUsesExcept(widened, widened);
    if (Operation *producer = value.getDefiningOp(); producer && cast.isForward(producer)) {
      cast.forward.insert(widened);
      if (cast.fromData.contains(value))
        cast.fromData.insert(widened);
    }
    sink(widened);
  }

  void sink(nn::CastOp widened) {
    Value kept = widened->getOperand(0);
    auto readers = llvm::map_to_vector(widened->getUses(), [](OpOperand &use) { return &use; });
    for (OpOperand *use : readers) {
      Operation *user = use->getOwner();
      if (use->get() != widened.getResult())
        continue; // another way led here
      if (Value seen = getSeen(*use)) {
        use->set(kept);
        narrowAndWiden(seen);
      } else if (isFloatCast(user) && isOfType(user->getResult(0), narrow)) {
        user->getResult(0).replaceAllUsesWith(kept);
      } else if (isMovement(user) && llvm::all_of(user->getOperands(), [&](Value operand) {
                   return !isa<FloatType>(getElementTypeOrSelf(operand)) || getWidened(operand);
                 })) {
        for (OpOperand &operand : user->getOpOperands())
          if (Value source = getWidened(operand.get()))
            operand.set(source);
        narrowAndWiden(user->getResult(0));
      }
    }
  }

  Autocast &cast;
  FloatType narrow, wide;
};
} // namespace lowtide

void Autocast::narrowScans() { ScanNarrower(*this).run(); }
