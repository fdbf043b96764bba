//===- FormEpilogue.cpp - what a product takes along ------------*- C++ -*-===//
//
// The bias or the other sum that is added to a product, and then ReLU, GELU or
// the derivative of a GELU, become the product's epilogue, as far as a library
// takes it. What a GELU was applied to stays available as a second result,
// where the GELU's own result has one reader. The derivative of a GELU brings
// the sums of its columns along: the gradient of the bias in front of it. So
// does the gradient of a weight those of the cotangent that it reads, where a
// library made that.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/ElementwiseGradients.h"
#include "lowtide/Dialect/NN/LibraryForms.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lowtide;

namespace {

/// What follows a product, as far as it can go along.
struct Chain {
  /// The product's elements at the end of the chain.
  Value value;
  Value addend, input;
  StringRef epilogue = "none";
  /// What the epilogue is applied to, if somebody else reads it too.
  Value kept;
  /// The sums of the columns of `value`.
  Value sums;
};

/// The one op that reads `value`; null if there are more.
static Operation *getOnlyUser(Value value) { return value.hasOneUse() ? *value.user_begin() : nullptr; }

static Type getElement(Value value) { return getElementTypeOrSelf(value.getType()); }

static ArrayRef<int64_t> getShape(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

/// Follows casts to f32 and reshapes, as long as nobody else reads on the way.
static Value followViews(Value value) {
  while (Operation *user = getOnlyUser(value)) {
    auto widening = dyn_cast<nn::CastOp>(user);
    if (!isa<nn::ReshapeOp>(user) && !(widening && getElement(widening.getY()).isF32()))
      break;
    value = user->getResult(0);
  }
  return value;
}

/// `value` as elements of type `type`: itself, or the one cast that alone reads it; null otherwise.
static Value findRounded(Value value, Type type) {
  if (getElement(value) == type)
    return value;
  auto rounding = dyn_cast_or_null<nn::CastOp>(getOnlyUser(value));
  return rounding && getElement(rounding.getY()) == type ? rounding.getY() : Value();
}

/// Whether two values are computed alike from the same values; sums and products in either order.
static bool isSame(Value a, Value b) {
  if (a == b)
    return true;
  Operation *left = a.getDefiningOp(), *right = b.getDefiningOp();
  if (!left || !right || left->getName() != right->getName() || left->getAttrs() != right->getAttrs() ||
      a.getType() != b.getType() || left->getNumOperands() != right->getNumOperands() || !isPure(left) ||
      left->getNumRegions())
    return false;
  auto agree = [&](bool swapped) {
    for (unsigned i = 0, n = left->getNumOperands(); i < n; ++i)
      if (!isSame(left->getOperand(i), right->getOperand(swapped ? n - 1 - i : i)))
        return false;
    return true;
  };
  return agree(false) || (isa<nn::AddOp, nn::MulOp>(left) && agree(true));
}

} // namespace

using IsTaken = llvm::function_ref<bool(LibraryCallInterface)>;

/// The bias that is added to `value`, which is `dot` under other shapes and types, one number per column; moves on to
/// the sum.
static Value takeBias(nn::DotOp dot, Value &value) {
  ArrayRef<int64_t> matrix = getShape(dot.getY());
  auto add = dyn_cast_or_null<nn::AddOp>(getOnlyUser(value));
  if (!add)
    return {};
  Value other = add.getA() == value ? add.getB_() : add.getA();
  auto spread = other.getDefiningOp<nn::BroadcastOp>();
  int64_t rank = getShape(value).size();
  if (!spread || matrix.size() != 2 || getShape(value).back() != matrix[1] ||
      getShape(spread.getX()) != matrix.drop_front() || spread.getDims() != ArrayRef<int64_t>{rank - 1})
    return {};
  Value sum = findRounded(add.getY(), getElement(dot.getY()));
  if (!sum)
    return {};
  value = sum;
  return spread.getX();
}

/// The sum of the same shape to which `value` is added and that nobody else reads: what a loop carries, or another
/// product. Moves on to the new sum.
static Value takeSum(Value &value) {
  auto add = dyn_cast_or_null<nn::AddOp>(getOnlyUser(value));
  if (!add)
    return {};
  Value other = add.getA() == value ? add.getB_() : add.getA();
  auto argument = dyn_cast<BlockArgument>(other);
  bool carried = argument && isa<RepeatInterface>(argument.getOwner()->getParentOp());
  bool product = other.getDefiningOp<nn::DotOp>() || other.getDefiningOp<nn::DotEpilogueOp>();
  if (other == value || !other.hasOneUse() || !(carried || product))
    return {};
  value = add.getY();
  return other;
}

/// Whether one op reads `value`, as it is or under another shape.
static bool hasOneReader(Value value) {
  while (auto view = dyn_cast_or_null<nn::ReshapeOp>(getOnlyUser(value)))
    value = view.getY();
  return value.hasOneUse();
}

/// Casts of `value` to f32, and itself.
static SmallVector<Value> findWide(Value value) {
  SmallVector<Value> found{value};
  for (Operation *user : value.getUsers())
    if (auto widening = dyn_cast<nn::CastOp>(user); widening && getElement(widening.getY()).isF32())
      found.push_back(widening.getY());
  return found;
}

/// ReLU or GELU of the chain's end.
static bool takeActivation(Chain &chain, Type type) {
  for (Value wide : findWide(chain.value))
    for (Operation *user : wide.getUsers()) {
      if (!isa<nn::ReluOp, nn::GeluTanhOp>(user))
        continue;
      Value result = findRounded(user->getResult(0), type);
      bool alone = wide.hasOneUse() && (wide == chain.value || chain.value.hasOneUse());
      // A result that the backward pass reads too would live as long as what it was made of, and could be computed
      // again by the whole product alone: there a kernel of its own is better.
      bool keepable = isa<nn::GeluTanhOp>(user) && getElement(chain.value) == type && result && hasOneReader(result);
      if (!result || !(alone || keepable))
        continue;
      chain.kept = alone ? Value() : chain.value;
      chain.epilogue = isa<nn::ReluOp>(user) ? "relu" : "gelu";
      chain.value = result;
      return true;
    }
  return false;
}

/// The derivative of a GELU, times the chain's end.
static bool takeGeluGradient(Chain &chain, Type type) {
  auto product = dyn_cast_or_null<nn::MulOp>(getOnlyUser(chain.value));
  Value result = product ? findRounded(product.getY(), type) : Value();
  if (!result)
    return false;
  Value factor = product.getA() == chain.value ? product.getB_() : product.getA();
  // The operand is where both halves of the sum come from: a candidate is whatever feeds the tanh.
  llvm::SetVector<Value> reached;
  reached.insert(factor);
  SmallVector<Value> candidates;
  for (unsigned i = 0; i < reached.size() && reached.size() < 32; ++i) {
    Operation *op = reached[i].getDefiningOp();
    if (op && isa<nn::AddOp, nn::SubOp, nn::MulOp, nn::TanhOp>(op))
      reached.insert(op->operand_begin(), op->operand_end());
    else if (!op || !op->hasTrait<OpTrait::ConstantLike>())
      candidates.push_back(reached[i]);
  }
  OpBuilder builder(product);
  for (Value x : candidates) {
    Value narrow = x;
    if (auto widening = x.getDefiningOp<nn::CastOp>())
      narrow = widening.getX();
    if (x.getType() != factor.getType() || getElement(narrow) != type)
      continue;
    auto before = product->getIterator();
    Operation *last = product->getPrevNode();
    nn::Expr dy(builder, product.getLoc(), chain.value);
    bool same = isSame(nn::geluTanhGradient(dy.with(x), dy), product.getY());
    // What was written to compare with goes again.
    while (&*std::prev(before) != last)
      std::prev(before)->erase();
    if (!same)
      continue;
    chain.epilogue = "dgelu";
    chain.input = narrow;
    chain.value = result;
    return true;
  }
  return false;
}

/// The sums of the columns of `value`, read in f32 and under any shape whose rows it keeps whole.
static Value findColumnSums(Value value) {
  const int64_t columns = getShape(value).back();
  for (Operation *user : value.getUsers()) {
    auto widening = dyn_cast<nn::CastOp>(user);
    if (isa<nn::ReshapeOp>(user) || (widening && getElement(widening.getY()).isF32())) {
      Value view = user->getResult(0);
      if (!getShape(view).empty() && getShape(view).back() == columns)
        if (Value sums = findColumnSums(view))
          return sums;
    } else if (auto sum = dyn_cast<nn::ReduceSumOp>(user)) {
      const size_t rank = getShape(value).size();
      if (getElement(value).isF32() && sum.getDims().size() + 1 == rank && !llvm::is_contained(sum.getDims(), rank - 1))
        return sum.getY();
    }
  }
  return {};
}

/// Erases an op that nobody reads, and what only it read: dead readers would hide that a value has one reader. Other
/// products stay, since they are still to be looked at.
static void eraseDead(Operation *op) {
  llvm::SetVector<Operation *> worklist;
  worklist.insert(op);
  while (!worklist.empty()) {
    Operation *next = worklist.pop_back_val();
    if (!next || !next->use_empty() || !isPure(next) || isa<LibraryCallInterface>(next))
      continue;
    for (Value operand : next->getOperands())
      worklist.insert(operand.getDefiningOp());
    next->erase();
  }
}

/// Puts `chain` in the place of `dot` if the library takes it so.
static bool replace(nn::DotOp dot, const Chain &chain, IsTaken isTaken) {
  Value y = dot.getY();
  auto type = cast<RankedTensorType>(y.getType());
  // Behind everything that it reads, and so before everything that reads what it replaces.
  Operation *place = dot;
  for (Value value : {chain.addend, chain.input})
    if (Operation *op = value ? value.getDefiningOp() : nullptr)
      if (op->getBlock() == dot->getBlock() && place->isBeforeInBlock(op))
        place = op;
  OpBuilder builder(dot.getContext());
  builder.setInsertionPointAfter(place);
  SmallVector<Operation *> made;
  auto shaped = [&](Value value, RankedTensorType to) -> Value {
    if (!value)
      return value;
    if (getElement(value) != to.getElementType()) {
      auto from = cast<RankedTensorType>(value.getType());
      value = nn::CastOp::create(builder, dot.getLoc(), from.clone(to.getElementType()), value);
      made.push_back(value.getDefiningOp());
    }
    if (value.getType() != to && getShape(value).size() != 1) {
      value = nn::ReshapeOp::create(builder, dot.getLoc(), to, value);
      made.push_back(value.getDefiningOp());
    }
    return value;
  };
  Value addend = shaped(chain.addend, type), input = shaped(chain.input, type);
  Type second = chain.kept   ? Type(type)
                : chain.sums ? Type(RankedTensorType::get(type.getShape().take_back(1), type.getElementType()))
                             : Type();
  auto fused = nn::DotEpilogueOp::create(builder, dot.getLoc(), type, second, dot.getA(), dot.getB(), addend, input,
                                         chain.epilogue, dot.getTransposeA(), dot.getTransposeB());
  made.push_back(fused);
  if (!isTaken(cast<LibraryCallInterface>(fused.getOperation()))) {
    for (Operation *op : llvm::reverse(made))
      op->erase();
    return false;
  }
  auto put = [&](Value old, Value now) {
    if (old.getType() != now.getType())
      now = nn::ReshapeOp::create(builder, dot.getLoc(), old.getType(), now);
    old.replaceAllUsesWith(now);
  };
  put(chain.value, fused.getY());
  if (chain.kept)
    put(chain.kept, fused.getZ());
  if (chain.sums) {
    Value wide = nn::CastOp::create(builder, dot.getLoc(), chain.sums.getType(), fused.getZ());
    Value sums = chain.sums;
    sums.replaceAllUsesWith(wide);
    eraseDead(sums.getDefiningOp());
  }
  eraseDead(chain.value.getDefiningOp());
  if (dot->use_empty())
    dot.erase();
  return true;
}

bool nn::formOperandSums(Operation *op, IsTaken isTaken) {
  auto dot = dyn_cast<nn::DotOp>(op);
  if (!dot || !dot.getTransposeA() || dot.getTransposeB() || getShape(dot.getY()).size() != 2)
    return false;
  // What a kernel makes, it can add up on the way.
  Value cotangent = dot.getB();
  for (auto view = cotangent.getDefiningOp<nn::ReshapeOp>();
       view && !getShape(view.getX()).empty() && getShape(view.getX()).back() == getShape(cotangent).back();
       view = cotangent.getDefiningOp<nn::ReshapeOp>())
    cotangent = view.getX();
  Operation *maker = cotangent.getDefiningOp();
  Value sums = maker && isa<LibraryCallInterface>(maker) ? findColumnSums(cotangent) : Value();
  if (!sums)
    return false;
  // As soon as both operands are there; what reads the sums must come behind.
  Operation *place = maker, *left = dot.getA().getDefiningOp();
  if (maker->getBlock() != dot->getBlock())
    return false;
  if (left && left->getBlock() == dot->getBlock() && place->isBeforeInBlock(left))
    place = left;
  for (Operation *user : sums.getUsers()) {
    Operation *at = dot->getBlock()->findAncestorOpInBlock(*user);
    if (!at || !place->isBeforeInBlock(at))
      return false;
  }
  OpBuilder builder(dot.getContext());
  builder.setInsertionPointAfter(place);
  auto type = cast<RankedTensorType>(dot.getY().getType());
  Value b = cotangent;
  if (b.getType() != dot.getB().getType())
    b = nn::ReshapeOp::create(builder, dot.getLoc(), dot.getB().getType(), b);
  auto fused = nn::DotEpilogueOp::create(builder, dot.getLoc(), type,
                                         RankedTensorType::get(type.getShape().take_back(1), type.getElementType()),
                                         dot.getA(), b, Value(), Value(), "bgrad", true, false);
  if (!isTaken(cast<LibraryCallInterface>(fused.getOperation())) || fused.getZ().getType() != sums.getType()) {
    fused.erase();
    if (b != cotangent)
      b.getDefiningOp()->erase();
    return false;
  }
  dot.getY().replaceAllUsesWith(fused.getY());
  sums.replaceAllUsesWith(fused.getZ());
  eraseDead(sums.getDefiningOp());
  dot.erase();
  return true;
}

bool nn::formEpilogue(Operation *op, IsTaken isTaken) {
  auto dot = dyn_cast<nn::DotOp>(op);
  if (!dot)
    return false;
  Type type = getElement(dot.getY());
  ArrayRef<int64_t> matrix = getShape(dot.getY());
  SmallVector<Chain, 4> chains;
  Chain chain;
  chain.value = dot.getY();
  if (Value sum = takeSum(chain.value)) {
    chain.addend = sum;
    chains.push_back(chain);
  } else {
    chain.value = followViews(chain.value);
    Chain gradient = chain;
    if (takeGeluGradient(gradient, type)) {
      chains.push_back(gradient);
      if (type.isBF16() && matrix.size() == 2 && getShape(gradient.value).back() == matrix[1])
        if ((gradient.sums = findColumnSums(gradient.value)))
          chains.push_back(gradient);
    }
    if (Value bias = takeBias(dot, chain.value)) {
      chain.addend = bias;
      chains.push_back(chain);
      if (takeActivation(chain, type))
        chains.push_back(chain);
    } else if (takeActivation(chain, type)) {
      chains.push_back(chain);
    }
  }
  // The longest that the library takes.
  for (const Chain &each : llvm::reverse(chains))
    if (replace(dot, each, isTaken))
      return true;
  return false;
}
