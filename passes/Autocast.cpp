//===- Autocast.cpp - which values of a function are kept in 16 bits ------===//
//
// Demands backwards, types forwards, storage last.
//
//===----------------------------------------------------------------------===//

#include "Autocast.h"
#include "lowtide/Dialect/NN/NN.h"

using namespace mlir;
using namespace lowtide;

/// What is made a second time on purpose is not the same as the first, for CSE.
void Autocast::markAgain(Operation *op) { op->setAttr("train.again", UnitAttr::get(op->getContext())); }

static FloatType getFloat(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? dyn_cast<FloatType>(type.getElementType()) : FloatType();
}

static int64_t countElements(Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); }

static RankedTensorType withElement(Value value, Type element) {
  return RankedTensorType::get(cast<RankedTensorType>(value.getType()).getShape(), element);
}

static const OpFacts *getFacts(Operation *op) {
  auto facts = dyn_cast_or_null<FactsInterface>(op);
  return facts ? &facts.getFacts() : nullptr;
}

/// A cast between float types, which no one need keep: no other elementwise op changes the type.
static bool isFloatCast(Operation *op) {
  // By its record, not by its types alone: an operand's type may have changed already.
  if (!op || !op->hasTrait<OpTrait::Elementwise>() || op->hasTrait<OpTrait::SameOperandsAndResultType>() ||
      op->getNumOperands() != 1)
    return false;
  FloatType from = getFloat(op->getOperand(0)), to = getFloat(op->getResult(0));
  return from && to && from != to;
}

static BindingInterface getBinding(func::FuncOp step, unsigned argument) {
  return step.getArgAttrOfType<BindingInterface>(argument, bindingAttrName);
}

Autocast::Autocast(func::FuncOp step, FloatType narrow, bool pure,
                   std::function<PrecisionOverride(Operation *)> overrideOf)
    : step(step), block(step.getBody().front()), narrow(narrow), wide(Float32Type::get(step.getContext())), pure(pure),
      overrideOf(std::move(overrideOf)) {}

bool Autocast::isWide(Value value) const { return getFloat(value) == wide; }
bool Autocast::isNarrow(Value value) const { return getFloat(value) == narrow; }

/// What a contraction reads or makes in f32 next to its 16-bit operands, such as the logarithms of attention's sums,
/// stays so whatever the user says of the layer.
static bool isWideInContraction(FactsInterface op, PrecisionPolicy policy) {
  return op.getFacts().precision == PrecisionPolicy::Low && policy == PrecisionPolicy::High;
}

PrecisionPolicy Autocast::getOperandPolicy(OpOperand &operand) const {
  auto facts = dyn_cast<FactsInterface>(operand.getOwner());
  if (!facts)
    return PrecisionPolicy::High;
  switch (overrideOf(operand.getOwner())) {
  case PrecisionOverride::Wide:
    return PrecisionPolicy::High;
  case PrecisionOverride::Narrow:
    return isWideInContraction(facts, facts.getOperandPrecision(operand.getOperandNumber())) ? PrecisionPolicy::High
                                                                                             : PrecisionPolicy::Low;
  case PrecisionOverride::None:
    return facts.getOperandPrecision(operand.getOperandNumber());
  }
  return PrecisionPolicy::High;
}

bool Autocast::mayStoreNarrow(OpResult result) const {
  Operation *op = result.getOwner();
  auto facts = dyn_cast<FactsInterface>(op);
  if (!facts || op->hasTrait<OpTrait::ConstantLike>() || isFloatCast(op))
    return false;
  switch (overrideOf(op)) {
  case PrecisionOverride::Wide:
    return false;
  case PrecisionOverride::Narrow:
    return !isWideInContraction(facts, facts.getResultPrecision(result.getResultNumber()));
  case PrecisionOverride::None:
    return facts.getResultPrecision(result.getResultNumber()) != PrecisionPolicy::High;
  }
  return false;
}

bool Autocast::passesOn(Operation *op) const {
  const OpFacts *facts = getFacts(op);
  if (!facts || facts->precision != PrecisionPolicy::Follow || op->hasTrait<OpTrait::Elementwise>() ||
      op->hasTrait<OpTrait::ConstantLike>() || overrideOf(op) == PrecisionOverride::Wide)
    return false;
  // An op may compute with some of its operands, such as products of values that meet.
  return llvm::none_of(op->getOpOperands(), [&](OpOperand &operand) {
    return getFloat(operand.get()) &&
           cast<FactsInterface>(op).getOperandPrecision(operand.getOperandNumber()) == PrecisionPolicy::High;
  });
}

//===-- what is known before anything changes -----------------------------===//

/// The forward pass is what metrics and outputs need; gradients come out of the backward pass.
void Autocast::findForward() {
  SmallVector<Value> worklist;
  Operation *terminator = block.getTerminator();
  for (unsigned i = 0; i < terminator->getNumOperands(); ++i) {
    auto binding = step.getResultAttrOfType<BindingInterface>(i, bindingAttrName);
    if (binding && isResult(binding.getBindingKind()) && binding.getBindingKind() != BindingKind::Gradient)
      worklist.push_back(terminator->getOperand(i));
  }
  if (worklist.empty())
    llvm::append_range(worklist, terminator->getOperands());
  while (!worklist.empty())
    if (Operation *op = worklist.pop_back_val().getDefiningOp(); op && forward.insert(op).second)
      llvm::append_range(worklist, op->getOperands());
}

void Autocast::findDemands() {
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    bool isDemanded = llvm::any_of(op.getResults(), [&](Value result) { return demanded.contains(result); });
    for (OpOperand &operand : op.getOpOperands())
      if (getFloat(operand.get()) &&
          (getOperandPolicy(operand) == PrecisionPolicy::Low || (isDemanded && passesOn(&op))))
        demanded.insert(operand.get());
  }
}

/// After a difference that cancels, as in log(1 − a²), the rounding of a value is all that such a function would see.
void Autocast::findUnbounded() {
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    auto facts = dyn_cast<FactsInterface>(op);
    if (facts && op.hasTrait<OpTrait::Elementwise>() && !isFloatCast(&op) && getFloat(op.getResult(0)) &&
        (facts.getResultPrecision(0) == PrecisionPolicy::High || unbounded.contains(op.getResult(0))))
      unbounded.insert(op.operand_begin(), op.operand_end());
  }
}

void Autocast::findActivations() {
  for (BlockArgument argument : block.getArguments()) {
    BindingInterface binding = getBinding(step, argument.getArgNumber());
    if (!binding || !isPersistent(binding.getBindingKind()))
      fromData.insert(argument);
  }
  for (Operation &op : block.without_terminator()) {
    const OpFacts *facts = getFacts(&op);
    if (llvm::any_of(op.getOperands(), [&](Value operand) { return fromData.contains(operand); }) ||
        (facts && facts->family == OpFamily::Random))
      fromData.insert(op.result_begin(), op.result_end());
    // A sum over many elements, and what is computed from such sums alone; a product of means is an activation again.
    int64_t largest = 0;
    const bool isContraction = facts && facts->precision == PrecisionPolicy::Low;
    bool fromStatistics = op.getNumOperands() > 0;
    for (Value operand : op.getOperands()) {
      largest = std::max(largest, isa<RankedTensorType>(operand.getType()) ? countElements(operand) : int64_t(0));
      fromStatistics &= statistics.contains(operand) || !fromData.contains(operand);
    }
    for (Value result : op.getResults())
      if (isa<RankedTensorType>(result.getType()) && fromData.contains(result) && countElements(result) <= largest &&
          !isContraction &&
          (fromStatistics || ((!passesOn(&op) || isa<ReductionInterface>(op)) && countElements(result) * 2 <= largest &&
                              facts && facts->precision == PrecisionPolicy::High)))
        statistics.insert(result);
  }
}

bool Autocast::endsWide(Value value) {
  if (auto known = endsWideMemo.find(value); known != endsWideMemo.end())
    return known->second;
  bool ends = llvm::all_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    const OpFacts *facts = getFacts(user);
    if (user->hasTrait<OpTrait::IsTerminator>() || !facts || facts->family == OpFamily::Optimizer)
      return true;
    return getOperandPolicy(use) != PrecisionPolicy::Low &&
           llvm::all_of(user->getResults(), [&](Value result) { return endsWide(result); });
  });
  return endsWideMemo[value] = ends;
}

//===-- casts -------------------------------------------------------------===//

static Value castAfter(Value value, Type element) {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  return nn::CastOp::create(builder, value.getLoc(), withElement(value, element), value);
}

/// The batch array that `value` shows through views and a cast of the forward pass; null if it is none.
Value Autocast::findShownData(Value value) const {
  while (Operation *producer = value.getDefiningOp()) {
    const OpFacts *facts = getFacts(producer);
    bool isView = facts && facts->aliasing == Aliasing::View;
    bool rounds = isFloatCast(producer) && isWide(producer->getOperand(0)) && isNarrow(value);
    if (!isView && !rounds)
      return {};
    value = producer->getOperand(0);
  }
  return value;
}

/// The same view of data that are cast a second time; null if `value` is no view of data.
Value Autocast::getNarrowView(Value value, Operation *user) {
  Value data = findShownData(value);
  if (!data || data == value || !isWide(data) || !fromData.contains(data) || isForward(user))
    return {};
  Value &again = narrowAgain[value];
  if (!again) {
    Value cast = getNarrow(data, user);
    OpBuilder builder(user);
    again = nn::ReshapeOp::create(builder, value.getLoc(), withElement(value, narrow), cast);
  }
  return again;
}

Value Autocast::getNarrow(Value value, Operation *user) {
  if (Value view = user ? getNarrowView(value, user) : Value())
    return view;
  if (!isWide(value))
    return value;
  if (user && isa<BlockArgument>(value) && fromData.contains(value) && !isForward(user)) {
    // Data lie there all step long: a second cast is cheaper than keeping the first one.
    Value &again = narrowAgain[value];
    if (!again) {
      OpBuilder builder(user);
      auto cast = nn::CastOp::create(builder, value.getLoc(), withElement(value, narrow), value);
      markAgain(cast);
      again = cast;
      ++numNarrowed;
    }
    return again;
  }
  if (isFloatCast(value.getDefiningOp()) && isNarrow(value.getDefiningOp()->getOperand(0)))
    return value.getDefiningOp()->getOperand(0); // no cast there and back
  Value &cast = narrowOf[value];
  if (!cast) {
    cast = castAfter(value, narrow);
    ++numNarrowed;
    if (fromData.contains(value))
      fromData.insert(cast);
    if (Operation *op = value.getDefiningOp(); op ? isForward(op) : user && isForward(user))
      forward.insert(cast.getDefiningOp());
  }
  return cast;
}

Value Autocast::getWide(Value value) {
  if (!isNarrow(value))
    return value;
  Value &cast = wideOf[value];
  if (!cast) {
    cast = castAfter(value, wide);
    ++numWidened;
    if (fromData.contains(value))
      fromData.insert(cast);
    if (Operation *op = value.getDefiningOp(); op && isForward(op))
      forward.insert(cast.getDefiningOp());
  }
  return cast;
}

//===-- types -------------------------------------------------------------===//

void Autocast::visitContraction(Operation *op) {
  auto facts = cast<FactsInterface>(op);
  for (OpOperand &operand : op->getOpOperands())
    if (getFloat(operand.get()))
      operand.set(getOperandPolicy(operand) == PrecisionPolicy::Low ? getNarrow(operand.get(), op)
                                                                    : getWide(operand.get()));
  for (OpResult result : op->getResults()) {
    // Sums are f32 in any case: what is never rounded later is not rounded here.
    PrecisionPolicy policy = facts.getResultPrecision(result.getResultNumber());
    bool keepsSum = isa<LibraryCallInterface>(op) && policy != PrecisionPolicy::Low && endsWide(result);
    if (isWide(result) && !keepsSum && policy != PrecisionPolicy::High)
      result.setType(withElement(result, narrow));
  }
}

void Autocast::visitMovement(Operation *op) {
  // Rounding before a movement serves all its readers, but not when it picks few elements of an argument.
  constexpr int64_t largestRatio = 8;
  bool allNarrow = true, anyNarrow = false, anyFloat = false, isDemanded = false;
  for (Value result : op->getResults())
    isDemanded |= demanded.contains(result);
  for (Value operand : op->getOperands()) {
    if (!getFloat(operand))
      continue;
    anyFloat = true;
    bool isKept = isNarrow(operand) || (narrowOf.contains(operand) && operand.getDefiningOp());
    allNarrow &= isKept;
    anyNarrow |= isKept;
    int64_t ratio = operand.getDefiningOp() ? largestRatio : 1;
    if (!isKept && countElements(operand) > ratio * countElements(op->getResult(0)))
      isDemanded = false;
  }
  // A derivative that compares what the forward pass kept must see it as it was kept.
  bool compares = anyNarrow && op->getNumOperands() > 1 && !isForward(op);
  bool toNarrow = anyFloat && (allNarrow || isDemanded || compares);
  for (OpOperand &operand : op->getOpOperands())
    if (getFloat(operand.get()))
      operand.set(toNarrow ? getNarrow(operand.get(), op) : getWide(operand.get()));
  for (Value result : op->getResults())
    if (toNarrow && isWide(result))
      result.setType(withElement(result, narrow));
}

void Autocast::visit(Operation *op) {
  bool rounds = llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
    return getFloat(operand.get()) && getOperandPolicy(operand) == PrecisionPolicy::Low;
  });
  if (rounds && overrideOf(op) != PrecisionOverride::Narrow)
    return visitContraction(op);
  if (rounds) { // as told: rounded operands, f32 arithmetic, rounded results (`store`)
    for (OpOperand &operand : op->getOpOperands())
      if (getFloat(operand.get()) && getOperandPolicy(operand) == PrecisionPolicy::Low)
        operand.set(getNarrow(operand.get(), op));
    auto facts = cast<FactsInterface>(op);
    if (facts.getFacts().precision == PrecisionPolicy::Low)
      return visitContraction(op);
    if (passesOn(op))
      return visitMovement(op);
  } else if (passesOn(op)) {
    return visitMovement(op);
  } else if (isFloatCast(op)) {
    return;
  }
  // What the model itself computes in 16 bits stays as it is written.
  if (llvm::any_of(op->getResults(), [&](Value result) { return isNarrow(result); })) {
    for (Value argument : narrowedArguments)
      if (llvm::is_contained(op->getOperands(), argument))
        op->replaceUsesOfWith(argument, getWide(argument));
    return;
  }
  for (Value operand : op->getOperands())
    if (isNarrow(operand))
      op->replaceUsesOfWith(operand, getWide(operand));
  for (Region &region : op->getRegions())
    visitBody(region.front());
}

void Autocast::visitBody(Block &body) {
  for (Operation &op : llvm::make_early_inc_range(body.without_terminator())) {
    for (Region &region : op.getRegions())
      visitBody(region.front());
    for (OpOperand &operand : op.getOpOperands())
      if (getFloat(operand.get()) && getOperandPolicy(operand) == PrecisionPolicy::Low)
        operand.set(getNarrow(operand.get()));
  }
}

//===-- storage -----------------------------------------------------------===//

void Autocast::replaceUses(Value value, Value narrowed) {
  Value widened = getWide(narrowed);
  value.replaceUsesWithIf(widened, [&](OpOperand &use) {
    Operation *user = use.getOwner();
    return user != narrowed.getDefiningOp() && user != widened.getDefiningOp() && !isFloatCast(user);
  });
}

/// Whether all data that make a result are kept in 16 bits: then it may be, too. One f32 operand promotes, as in
/// PyTorch.
bool Autocast::followsNarrow(OpResult value) const {
  bool anyData = false;
  for (Value operand : value.getOwner()->getOperands()) {
    if (!getFloat(operand) || !fromData.contains(operand) || statistics.contains(operand))
      continue;
    anyData = true;
    Operation *producer = operand.getDefiningOp();
    bool isKept = isNarrow(operand) || (isFloatCast(producer) && isNarrow(producer->getOperand(0)));
    if (!isKept && !following.contains(operand))
      return false;
  }
  return anyData;
}

void Autocast::store(OpResult value) {
  if (!isWide(value) || !mayStoreNarrow(value))
    return;
  bool follows = followsNarrow(value);
  if (follows)
    following.insert(value);
  const bool isTold = overrideOf(value.getOwner()) == PrecisionOverride::Narrow;
  // As PyTorch does, a contraction rounds a copy of an f32 value for itself.
  if (narrowOf.contains(value) && !isTold && !follows && !pure && unbounded.contains(value))
    return;
  if (narrowOf.contains(value) || isTold)
    return replaceUses(value, getNarrow(value));
  if (!fromData.contains(value) || statistics.contains(value))
    return;
  // Gradients, and what becomes of them in updates.
  if (holdsUpdates && endsWide(value))
    return;
  llvm::SmallPtrSet<Operation *, 4> users;
  bool isSaved = false;
  for (Operation *user : value.getUsers()) {
    if (user->hasTrait<OpTrait::IsTerminator>())
      continue;
    users.insert(user);
    isSaved |= isForward(value.getOwner()) && !isForward(user);
  }
  if ((isSaved && (follows || pure)) || (pure && users.size() > 1))
    replaceUses(value, getNarrow(value));
}

/// By the ops' records alone: another batch, or another entry with the same layers, has the same answer.
bool Autocast::isOnlyRounded(Value value, llvm::DenseMap<Value, bool> &known) const {
  // Movements may meet again: each value is looked at once.
  if (auto it = known.find(value); it != known.end())
    return it->second;
  const bool isRounded = !value.use_empty() && llvm::all_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (getOperandPolicy(use) == PrecisionPolicy::Low)
      return true;
    return passesOn(user) &&
           llvm::all_of(user->getResults(), [&](Value result) { return isOnlyRounded(result, known); });
  });
  return known[value] = isRounded;
}

SmallVector<BindingInterface> Autocast::findRoundedConstants() const {
  SmallVector<BindingInterface> found;
  llvm::DenseMap<Value, bool> known;
  for (BlockArgument argument : block.getArguments()) {
    BindingInterface binding = getBinding(step, argument.getArgNumber());
    if (binding && binding.getBindingKind() == BindingKind::Constant && isWide(argument) &&
        isOnlyRounded(argument, known))
      found.push_back(binding);
  }
  return found;
}

void Autocast::narrowArguments(const llvm::DenseSet<Attribute> &stored) {
  llvm::DenseSet<Attribute> bindings;
  for (BlockArgument argument : block.getArguments()) {
    BindingInterface binding = getBinding(step, argument.getArgNumber());
    const bool isParameter = binding && pure && binding.getBindingKind() == BindingKind::Param;
    if (binding && (isParameter || stored.contains(binding)) && isWide(argument)) {
      argument.setType(withElement(argument, narrow));
      narrowedArguments.push_back(argument);
      bindings.insert(binding);
    }
  }
  // A step that was imported whole has their updates already, which end in the type that they are kept in.
  SmallVector<Type> inputs(block.getArgumentTypes()), results(step.getResultTypes());
  for (auto [i, result] : llvm::enumerate(results))
    if (Attribute updated = step.getResultAttr(i, bindingAttrName); updated && bindings.contains(updated)) {
      result = withElement(block.getTerminator()->getOperand(i), narrow);
      holdsUpdates = true;
    }
  step.setFunctionType(FunctionType::get(step.getContext(), inputs, results));
}

void Autocast::run(const llvm::DenseSet<Attribute> &stored) {
  findForward();
  findActivations();
  savedBytesBefore = countSavedBytes();
  findDemands();
  findUnbounded();
  narrowArguments(stored);
  SmallVector<Operation *> ops = llvm::map_to_vector(block.without_terminator(), [](Operation &op) { return &op; });
  for (Operation *op : ops)
    visit(op);
  for (Operation *op : ops)
    for (OpResult result : op->getResults())
      store(result);
  Operation *terminator = block.getTerminator();
  for (auto [operand, type] : llvm::zip_equal(terminator->getOpOperands(), step.getResultTypes()))
    if (operand.get().getType() != type)
      operand.set(getElementTypeOrSelf(type) == narrow ? getNarrow(operand.get()) : getWide(operand.get()));
  narrowScans();
  remakeSaved();
  savedBytes = countSavedBytes();
}
