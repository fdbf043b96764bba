//===- FormEpilogue.cpp - what a product ends with --------------*- C++ -*-===//
//
// The bias or the other sum that is added to a product, and then ReLU, GELU or
// their derivatives, become the product's epilogue, as far as a library takes
// it. What a GELU was applied to stays available as a second result, where the
// GELU's own result has one reader. A derivative of ReLU reads bits that the
// product with the ReLU then writes as its second result. Derivatives bring
// the sums of their columns along: the gradient of the bias in front. So does
// the gradient of a weight those of the cotangent that it reads, where a
// library made that.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/ElementwiseGradients.h"
#include "lowtide/Dialect/NN/LibraryForms.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lowtide;

namespace {

/// What follows a product, as far as it can go along.
struct Chain {
  /// The product's elements at the end of the chain.
  Value value;
  Value addend, input;
  /// The product with the ReLU whose bits are the input.
  nn::DotEpilogueOp relu;
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

/// Follows casts to f32 and reshapes, as long as nothing else reads on the way.
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

/// The bias, one number per column, that `add` adds to `value`, which is `dot` under other shapes and types.
static Value findBias(nn::DotOp dot, nn::AddOp add, Value value) {
  ArrayRef<int64_t> matrix = getShape(dot.getY());
  Value other = add.getA() == value ? add.getB_() : add.getA();
  auto spread = other.getDefiningOp<nn::BroadcastOp>();
  int64_t rank = getShape(value).size();
  if (!spread || matrix.size() != 2 || getShape(value).back() != matrix[1] ||
      getShape(spread.getX()) != matrix.drop_front() || spread.getDims() != ArrayRef<int64_t>{rank - 1})
    return {};
  return spread.getX();
}

/// The bias that is added to `value`; moves on to the sum.
static Value takeBias(nn::DotOp dot, Value &value) {
  auto add = dyn_cast_or_null<nn::AddOp>(getOnlyUser(value));
  Value bias = add ? findBias(dot, add, value) : Value();
  Value sum = bias ? findRounded(add.getY(), getElement(dot.getY())) : Value();
  if (!sum)
    return {};
  value = sum;
  return bias;
}

/// The sum of the same shape to which `value` is added and that nothing else reads: what a loop carries, or another
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

/// The bias and the ReLU of their sum, which is rounded after it: ReLU of what was rounded is the same.
static bool takeBiasAndRelu(nn::DotOp dot, Chain &chain, Type type) {
  auto add = dyn_cast_or_null<nn::AddOp>(getOnlyUser(chain.value));
  auto relu = add ? dyn_cast_or_null<nn::ReluOp>(getOnlyUser(add.getY())) : nn::ReluOp();
  Value end = chain.value, result = relu ? findRounded(relu.getY(), type) : Value();
  if (!result || getElement(add.getY()) == type)
    return false;
  Value addend = findBias(dot, add, end);
  if (!addend)
    return false;
  chain.addend = addend;
  chain.epilogue = "relu";
  chain.value = result;
  return true;
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

/// The product with a ReLU whose result `value` is, under other shapes and types.
static nn::DotEpilogueOp findRelu(Value value) {
  while (isa_and_present<nn::ReshapeOp, nn::CastOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  auto relu = value.getDefiningOp<nn::DotEpilogueOp>();
  return relu && relu.getEpilogue() == "relu" && value == relu.getY() ? relu : nn::DotEpilogueOp();
}

/// What is left of the chain's end where a ReLU left its own input.
static bool takeReluGradient(nn::DotOp dot, Chain &chain, Type type) {
  auto choice = dyn_cast_or_null<nn::SelectOp>(getOnlyUser(chain.value));
  Value result = choice ? findRounded(choice.getY(), type) : Value();
  auto isZero = [](Value value) { return matchPattern(value, m_AnyZeroFloat()); };
  if (!result || choice.getA() != chain.value || !isZero(choice.getB_()))
    return false;
  auto test = choice.getC().getDefiningOp<nn::CompareOp>();
  if (!test || test.getPredicate() != nn::ComparePredicate::gt || !isZero(test.getB_()))
    return false;
  nn::DotEpilogueOp relu = findRelu(test.getA());
  if (!relu || relu.getY().getType() != dot.getY().getType() || relu->getBlock() != dot->getBlock() ||
      (relu.getZ() && relu.getZ().getType() == relu.getY().getType()))
    return false;
  chain.epilogue = "drelu";
  chain.relu = relu;
  chain.value = result;
  return true;
}

/// The same product with a ReLU, with its bits or without; null, with nothing changed, where it is not taken.
static nn::DotEpilogueOp keepBits(nn::DotEpilogueOp relu, bool keeps, IsTaken isTaken) {
  if (bool(relu.getZ()) == keeps)
    return relu;
  OpBuilder builder(relu);
  auto type = relu.getY().getType();
  auto fresh = nn::DotEpilogueOp::create(builder, relu.getLoc(), type, keeps ? Type(nn::getMaskType(type)) : Type(),
                                         relu.getA(), relu.getB(), relu.getAddend(), relu.getInput(),
                                         relu.getEpilogue(), relu.getTransposeA(), relu.getTransposeB());
  if (!isTaken(cast<LibraryCallInterface>(fresh.getOperation()))) {
    fresh.erase();
    return {};
  }
  relu.getY().replaceAllUsesWith(fresh.getY());
  relu.erase();
  return fresh;
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

/// Erases an op that nothing reads, and what only it read: dead readers would hide that a value has one reader. Other
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
  // After everything that it reads, and so before everything that reads what it replaces.
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
  Value addend = shaped(chain.addend, type), input = chain.relu ? chain.input : shaped(chain.input, type);
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

/// The same with the sums of one side, A or B.
static bool formSumsOf(nn::DotOp dot, bool isLeft, IsTaken isTaken) {
  Value side = isLeft ? dot.getA() : dot.getB(), other = isLeft ? dot.getB() : dot.getA();
  // What a kernel makes, it can add up on the way.
  Value cotangent = side;
  for (auto view = cotangent.getDefiningOp<nn::ReshapeOp>();
       view && !getShape(view.getX()).empty() && getShape(view.getX()).back() == getShape(cotangent).back();
       view = cotangent.getDefiningOp<nn::ReshapeOp>())
    cotangent = view.getX();
  Operation *maker = cotangent.getDefiningOp();
  Value sums = maker && isa<LibraryCallInterface>(maker) ? findColumnSums(cotangent) : Value();
  if (!sums)
    return false;
  // As soon as both operands are there; what reads the sums must come after.
  Operation *place = maker, *beside = other.getDefiningOp();
  if (maker->getBlock() != dot->getBlock())
    return false;
  if (beside && beside->getBlock() == dot->getBlock() && place->isBeforeInBlock(beside))
    place = beside;
  for (Operation *user : sums.getUsers()) {
    Operation *at = dot->getBlock()->findAncestorOpInBlock(*user);
    if (!at || !place->isBeforeInBlock(at))
      return false;
  }
  OpBuilder builder(dot.getContext());
  builder.setInsertionPointAfter(place);
  auto type = cast<RankedTensorType>(dot.getY().getType());
  Value read = cotangent;
  if (read.getType() != side.getType())
    read = nn::ReshapeOp::create(builder, dot.getLoc(), side.getType(), read);
  auto sumsShape = isLeft ? type.getShape().take_front(1) : type.getShape().take_back(1);
  auto fused = nn::DotEpilogueOp::create(
      builder, dot.getLoc(), type, RankedTensorType::get(sumsShape, type.getElementType()), isLeft ? read : other,
      isLeft ? other : read, Value(), Value(), isLeft ? "bgrad_a" : "bgrad", true, false);
  if (!isTaken(cast<LibraryCallInterface>(fused.getOperation())) || fused.getZ().getType() != sums.getType()) {
    fused.erase();
    if (read != cotangent)
      read.getDefiningOp()->erase();
    return false;
  }
  dot.getY().replaceAllUsesWith(fused.getY());
  sums.replaceAllUsesWith(fused.getZ());
  eraseDead(sums.getDefiningOp());
  dot.erase();
  return true;
}

bool nn::formOperandSums(Operation *op, IsTaken isTaken) {
  auto dot = dyn_cast<nn::DotOp>(op);
  if (!dot || !dot.getTransposeA() || dot.getTransposeB() || getShape(dot.getY()).size() != 2)
    return false;
  return formSumsOf(dot, /*isLeft=*/false, isTaken) || formSumsOf(dot, /*isLeft=*/true, isTaken);
}

bool nn::formEpilogue(Operation *op, IsTaken isTaken) {
  auto dot = dyn_cast<nn::DotOp>(op);
  if (!dot)
    return false;
  Type type = getElement(dot.getY());
  ArrayRef<int64_t> matrix = getShape(dot.getY());
  SmallVector<Chain, 4> chains;
  nn::DotEpilogueOp relu;
  Chain chain;
  chain.value = dot.getY();
  if (Value sum = takeSum(chain.value)) {
    chain.addend = sum;
    chains.push_back(chain);
  } else {
    chain.value = followViews(chain.value);
    Chain gradient = chain;
    if (takeGeluGradient(gradient, type) || takeReluGradient(dot, gradient, type)) {
      if (gradient.relu) {
        if (!(gradient.relu = relu = keepBits(gradient.relu, true, isTaken)))
          return false;
        gradient.input = relu.getZ();
      }
      chains.push_back(gradient);
      if ((type.isBF16() || type.isF32()) && matrix.size() == 2 && getShape(gradient.value).back() == matrix[1])
        if ((gradient.sums = findColumnSums(gradient.value)))
          chains.push_back(gradient);
    }
    if (takeBiasAndRelu(dot, chain, type)) {
      chains.push_back(chain);
    } else if (Value bias = takeBias(dot, chain.value)) {
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
  if (relu && relu.getZ().use_empty())
    keepBits(relu, false, isTaken);
  return false;
}
