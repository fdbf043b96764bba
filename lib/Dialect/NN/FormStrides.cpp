//===- FormStrides.cpp - movements that a call's strides stand for -*- C++ -*-===//
//
// A kernel op of emitter "library" holds one op that a library computes, and the movements around it: what cuts q, k
// and v out of one product and puts heads in front of rows, and what puts them back. Nothing of it moves: the call gets
// offsets and strides (docs/artifact.md).
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/LibraryForms.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lowtide;

using IsTaken = llvm::function_ref<bool(LibraryCallInterface)>;

static ArrayRef<int64_t> getShape(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

namespace {

/// A tensor as a part of another one's bytes; counts elements.
struct View {
  int64_t offset = 0;
  SmallVector<int64_t> shape, strides;

  explicit View(ArrayRef<int64_t> packed) : shape(packed), strides(packed.size(), 1) {
    for (size_t d = strides.size(); d-- > 1;)
      strides[d - 1] = strides[d] * shape[d];
  }
  void slice(ArrayRef<int64_t> starts, ArrayRef<int64_t> steps, ArrayRef<int64_t> to) {
    for (size_t d = 0; d < starts.size(); ++d) {
      offset += starts[d] * strides[d];
      strides[d] *= steps[d];
    }
    shape.assign(to.begin(), to.end());
  }
  void transpose(ArrayRef<int64_t> permutation) {
    View old = *this;
    for (auto [to, from] : llvm::enumerate(permutation)) {
      shape[to] = old.shape[from];
      strides[to] = old.strides[from];
    }
  }
  bool reshape(ArrayRef<int64_t> to);
  /// Whether elements of the last dimension are side by side.
  bool isLoadable() const { return shape.empty() || shape.back() == 1 || strides.back() == 1; }
};

/// Ops between a tensor in memory and the call, in textual order.
using Chain = SmallVector<Operation *>;

/// What becomes of a result of the call on its way to memory.
struct Placement {
  Chain chain;
  /// What is written; `view` is the result as a part of it.
  Value written;
  std::optional<View> view;
};

} // namespace

bool View::reshape(ArrayRef<int64_t> to) {
  // Runs of dimensions that continue one another, the last one first.
  SmallVector<std::pair<int64_t, int64_t>> runs;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1)
      continue;
    if (!runs.empty() && strides[d] == runs.back().first * runs.back().second)
      runs.back().first *= shape[d];
    else
      runs.emplace_back(shape[d], strides[d]);
  }
  SmallVector<int64_t> result(to.size(), 1);
  size_t next = 0;
  auto [left, stride] = runs.empty() ? std::pair<int64_t, int64_t>(1, 1) : runs[0];
  for (size_t d = to.size(); d-- > 0;) {
    if (to[d] != 1 && left == 1) {
      if (++next >= runs.size())
        return false;
      std::tie(left, stride) = runs[next];
    }
    if (to[d] < 1 || left % to[d])
      return false;
    result[d] = stride;
    left /= to[d];
    stride *= to[d];
  }
  shape.assign(to.begin(), to.end());
  strides = std::move(result);
  return true;
}

static bool isMovement(Operation *op) { return isa_and_nonnull<nn::SliceOp, nn::ReshapeOp, nn::TransposeOp>(op); }

static bool apply(Operation *op, View &view) {
  if (auto slice = dyn_cast<nn::SliceOp>(op))
    view.slice(slice.getStarts(), slice.getStrides(), getShape(slice.getY()));
  else if (auto transpose = dyn_cast<nn::TransposeOp>(op))
    view.transpose(transpose.getPermutation());
  else
    return view.reshape(getShape(op->getResult(0)));
  return true;
}

/// From what `op` makes back to what it reads.
static bool applyInverse(Operation *op, View &view) {
  if (auto pad = dyn_cast<nn::PadOp>(op)) {
    view.slice(pad.getLow(), SmallVector<int64_t>(pad.getLow().size(), 1), getShape(pad.getX()));
    return true;
  }
  if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
    SmallVector<int64_t> inverse(transpose.getPermutation().size());
    for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
      inverse[from] = to;
    view.transpose(inverse);
    return true;
  }
  return isa<nn::ReshapeOp>(op) && view.reshape(getShape(op->getOperand(0)));
}

/// The tensor at the end of `chain` as a part of `source`, if it is one.
static std::optional<View> viewThrough(ArrayRef<Operation *> chain, Value source) {
  View view(getShape(source));
  for (Operation *op : chain)
    if (!apply(op, view))
      return std::nullopt;
  return view.isLoadable() ? std::optional(view) : std::nullopt;
}

/// The tensor in front of `chain` as a part of one of shape `written`.
static std::optional<View> viewAfter(ArrayRef<Operation *> chain, ArrayRef<int64_t> written) {
  View view(written);
  for (Operation *op : llvm::reverse(chain))
    if (!applyInverse(op, view))
      return std::nullopt;
  return view.isLoadable() ? std::optional(view) : std::nullopt;
}

/// Movements from `source` to `value`, the most of them that strides can stand for.
static Chain findChain(Value value, Value &source) {
  Chain all, best;
  source = value;
  Block *block = value.getParentBlock();
  for (Value at = value; Operation *op = at.getDefiningOp();) {
    if (!isMovement(op) || op->getBlock() != block)
      break;
    all.insert(all.begin(), op);
    at = op->getOperand(0);
    if (viewThrough(all, at)) {
      best = all;
      source = at;
    }
  }
  // Reshapes in front take nothing along.
  while (!best.empty() && isa<nn::ReshapeOp>(best.front())) {
    source = best.front()->getResult(0);
    best.erase(best.begin());
  }
  return best;
}

/// The op that reads `value`, apart from derivatives of the op that made it; null if there are more.
static Operation *findReader(Value value) {
  Operation *reader = nullptr;
  for (Operation *user : value.getUsers()) {
    if (isa<nn::AttentionGradOp>(user))
      continue;
    if (reader && reader != user)
      return nullptr;
    reader = user;
  }
  return reader;
}

/// Movements after a result, the most of them that strides can stand for.
static Placement findPlacement(Value result) {
  Placement best{{}, result, View(getShape(result))};
  Chain chain;
  Value at = result;
  for (Operation *op = findReader(at); isa_and_nonnull<nn::ReshapeOp, nn::TransposeOp>(op);
       op = at.hasOneUse() ? *at.user_begin() : nullptr) {
    chain.push_back(op);
    at = op->getResult(0);
    if (isa<nn::ReshapeOp>(op))
      continue;
    if (std::optional<View> view = viewAfter(chain, getShape(at)))
      best = {chain, at, view};
  }
  return best;
}

/// The one op that reads `value`; null if there are more.
static Operation *getOnlyUser(Value value) { return value.hasOneUse() ? *value.user_begin() : nullptr; }

/// Whether `op` adds up `pads` and nothing else, each of them once; `left` keeps those that it does not. Lists what
/// adds.
static bool isSumOf(Operation *op, llvm::SetVector<Operation *> &left, llvm::SetVector<Operation *> &ops) {
  if (!isa_and_nonnull<nn::AddOp, nn::CastOp>(op))
    return false;
  ops.insert(op);
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    Operation *producer = operand.getDefiningOp();
    return producer && operand.hasOneUse() &&
           (isa<nn::PadOp>(producer) ? left.remove(producer) : isSumOf(producer, left, ops));
  });
}

/// Makes one placement of three: parts that zeros are put around and that are then added up are parts of one tensor.
static bool mergePlacements(MutableArrayRef<Placement> placements) {
  llvm::SetVector<Operation *> pads;
  SmallVector<Chain> chains;
  for (Placement &each : placements) {
    Chain chain = each.chain;
    Value at = each.written;
    while (auto reshape = dyn_cast_or_null<nn::ReshapeOp>(getOnlyUser(at))) {
      chain.push_back(reshape);
      at = reshape.getY();
    }
    auto pad = dyn_cast_or_null<nn::PadOp>(getOnlyUser(at));
    if (!pad || pad.getValue().convertToDouble() != 0.0 || llvm::any_of(pad.getInterior(), [](int64_t n) { return n; }))
      return false;
    chain.push_back(pad);
    chains.push_back(chain);
    pads.insert(pad);
  }
  if (pads.size() != placements.size())
    return false;
  // From one of them up to where all are in.
  Value sum = cast<nn::PadOp>(pads.front()).getY();
  const Type element = getElementTypeOrSelf(sum.getType());
  llvm::SetVector<Operation *> ops, left = pads;
  while (!left.empty()) {
    Operation *user = getOnlyUser(sum);
    left = pads;
    ops.clear();
    if (!isSumOf(user, left, ops))
      return false;
    sum = user->getResult(0);
  }
  if (getElementTypeOrSelf(sum.getType()) != element) {
    auto rounding = dyn_cast_or_null<nn::CastOp>(getOnlyUser(sum));
    if (!rounding || getElementTypeOrSelf(rounding.getY().getType()) != element)
      return false;
    ops.insert(rounding);
    sum = rounding.getY();
  }
  for (auto [placement, chain] : llvm::zip_equal(placements, chains)) {
    std::optional<View> view = viewAfter(chain, getShape(sum));
    if (!view)
      return false;
    placement = {chain, sum, view};
  }
  // The ops that add up go with one of them.
  llvm::append_range(placements.front().chain, ops);
  return true;
}

//===-- which operands and results have a layout --------------------------===//

namespace {
/// Operands and results of an op that may lie anywhere, and what the call's attributes call them.
struct Places {
  SmallVector<std::pair<unsigned, StringRef>> operands, results;
};
} // namespace

static std::optional<Places> getPlaces(Operation *op) {
  if (isa<nn::AttentionOp>(op))
    return Places{{{0, "q"}, {1, "k"}, {2, "v"}}, {{0, "o"}}};
  if (isa<nn::AttentionGradOp>(op))
    return Places{{{0, "q"}, {1, "k"}, {2, "v"}, {3, "o"}, {5, "grad_o"}},
                  {{0, "grad_q"}, {1, "grad_k"}, {2, "grad_v"}}};
  return std::nullopt;
}

//===-- the kernel op as a call -------------------------------------------===//

/// The op that the library computes.
static LibraryCallInterface getInner(nn::KernelOp kernel) {
  if (kernel.getEmitter() == nn::Emitter::library)
    for (Operation &op : *kernel.getBlock())
      if (getPlaces(&op))
        return cast<LibraryCallInterface>(op);
  return {};
}

/// After `result`, to what the kernel yields.
static Placement followInside(Value result) {
  Placement placement{{}, result, std::nullopt};
  Value at = result;
  SmallVector<int64_t> written(getShape(result));
  bool isPart = false;
  while (Operation *user = getOnlyUser(at)) {
    if (isa<nn::YieldOp>(user)) {
      placement.written = at;
      placement.view = viewAfter(placement.chain, written);
      return placement;
    }
    at = user->getResult(0);
    if (isPart) {
      if (!isa<nn::AddOp, nn::CastOp>(user))
        break;
      continue;
    }
    placement.chain.push_back(user);
    written.assign(getShape(at).begin(), getShape(at).end());
    isPart = isa<nn::PadOp>(user);
  }
  return placement;
}

/// Attributes of the call; none where strides cannot say it.
static std::optional<DictionaryAttr> getStridedAttributes(nn::KernelOp kernel) {
  LibraryCallInterface inner = getInner(kernel);
  if (!inner || inner.getCallee().empty())
    return std::nullopt;
  Places places = *getPlaces(inner);
  Builder builder(kernel.getContext());
  NamedAttrList attributes(inner.getCallAttributes());
  auto lay = [&](StringRef name, const View &view) {
    SmallVector<int64_t> numbers{view.offset};
    llvm::append_range(numbers, view.strides);
    attributes.set((name + "_layout").str(), builder.getDenseI64ArrayAttr(numbers));
  };
  for (auto [i, name] : places.operands) {
    Value source;
    Chain chain = findChain(inner->getOperand(i), source);
    // Reshapes in front do not count for findChain.
    while (auto reshape = source.getDefiningOp<nn::ReshapeOp>()) {
      chain.insert(chain.begin(), reshape);
      source = reshape.getX();
    }
    std::optional<View> view = isa<BlockArgument>(source) ? viewThrough(chain, source) : std::nullopt;
    if (!view)
      return std::nullopt;
    if (!chain.empty())
      lay(name, *view);
  }
  llvm::SetVector<Value> written;
  for (auto [i, name] : places.results) {
    Placement placement = followInside(inner->getResult(i));
    if (!placement.view)
      return std::nullopt;
    if (!placement.chain.empty())
      lay(name, *placement.view);
    written.insert(placement.written);
  }
  if (written.size() == 1 && places.results.size() > 1)
    attributes.set("one_result", builder.getI64IntegerAttr(1));
  else if (written.size() != places.results.size())
    return std::nullopt;
  return attributes.getDictionary(kernel.getContext());
}

namespace {
/// Kernels of emitter "library" are calls, the others are not.
struct StridedCall : LibraryCallInterface::ExternalModel<StridedCall, nn::KernelOp> {
  StringRef getCallee(Operation *op) const {
    LibraryCallInterface inner = getInner(cast<nn::KernelOp>(op));
    return inner && getStridedAttributes(cast<nn::KernelOp>(op)) ? inner.getCallee() : "";
  }
  DictionaryAttr getCallAttributes(Operation *op) const { return *getStridedAttributes(cast<nn::KernelOp>(op)); }
};
} // namespace

void nn::registerStridedCalls(MLIRContext *context) { KernelOp::attachInterface<StridedCall>(*context); }

//===-- forming it --------------------------------------------------------===//

/// A kernel in front of `op` with the movements of `operands` and `placements`; it yields `yielded`.
static nn::KernelOp buildKernel(Operation *op, ArrayRef<std::pair<Value, Chain>> operands,
                                ArrayRef<Placement> placements, ArrayRef<Value> yielded) {
  OpBuilder builder(op);
  auto sources = llvm::map_to_vector(operands, [](auto &each) { return each.first; });
  auto types = llvm::map_to_vector(yielded, [](Value value) { return value.getType(); });
  auto kernel = nn::KernelOp::create(builder, op->getLoc(), nn::Emitter::library, sources, TypeRange(types));
  builder.setInsertionPointToEnd(kernel.getBlock());
  IRMapping mapping;
  for (auto [i, each] : llvm::enumerate(operands)) {
    IRMapping own;
    own.map(each.first, kernel.getBlock()->getArgument(i));
    for (Operation *movement : each.second)
      builder.clone(*movement, own);
    mapping.map(op->getOperand(i), own.lookup(each.second.empty() ? each.first : each.second.back()->getResult(0)));
    // One value may be several operands, each with an argument of its own: they show the same bytes.
  }
  builder.clone(*op, mapping);
  llvm::SetVector<Operation *> after;
  for (const Placement &placement : placements)
    after.insert(placement.chain.begin(), placement.chain.end());
  SmallVector<Operation *> ordered(after.begin(), after.end());
  llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *movement : ordered)
    builder.clone(*movement, mapping);
  nn::YieldOp::create(builder, op->getLoc(),
                      llvm::map_to_vector(yielded, [&](Value value) { return mapping.lookup(value); }));
  return kernel;
}

/// `value`, in front of `chain`, made of what is after it.
static Value rebuild(OpBuilder &builder, ArrayRef<Operation *> chain, Value after) {
  for (Operation *op : llvm::reverse(chain)) {
    auto type = cast<RankedTensorType>(op->getOperand(0).getType());
    if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
      SmallVector<int64_t> inverse(transpose.getPermutation().size());
      for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
        inverse[from] = to;
      after = nn::TransposeOp::create(builder, op->getLoc(), type, after, builder.getDenseI64ArrayAttr(inverse));
    } else {
      after = nn::ReshapeOp::create(builder, op->getLoc(), type, after);
    }
  }
  return after;
}

bool nn::formStrides(Operation *op, IsTaken isTaken) {
  std::optional<Places> places = getPlaces(op);
  if (!places || isa<KernelOp>(op->getParentOp()) || !isTaken(cast<LibraryCallInterface>(op)))
    return false;
  SmallVector<std::pair<Value, Chain>> operands;
  bool any = false;
  for (Value operand : op->getOperands())
    operands.emplace_back(operand, Chain());
  for (auto [i, name] : places->operands) {
    operands[i].second = findChain(op->getOperand(i), operands[i].first);
    any |= !operands[i].second.empty();
  }
  SmallVector<Placement> alone, merged;
  for (auto [i, name] : places->results)
    alone.push_back(findPlacement(op->getResult(i)));
  merged = alone;
  SmallVector<SmallVector<Placement>> trials;
  if (merged.size() > 1 && mergePlacements(merged))
    trials.push_back(merged);
  any |= !trials.empty() || llvm::any_of(alone, [](const Placement &each) { return !each.chain.empty(); });
  if (!any)
    return false;
  trials.push_back(alone);
  for (ArrayRef<Placement> placements : trials) {
    // What is written, in the order of the results; what has no layout stays as it is.
    llvm::SetVector<Value> written;
    for (OpResult result : op->getResults()) {
      auto place = llvm::find_if(places->results, [&](auto &each) { return each.first == result.getResultNumber(); });
      written.insert(place == places->results.end() ? Value(result)
                                                    : placements[place - places->results.begin()].written);
    }
    KernelOp kernel = buildKernel(op, operands, placements, written.getArrayRef());
    if (!isTaken(cast<LibraryCallInterface>(kernel.getOperation()))) {
      kernel.erase();
      continue;
    }
    OpBuilder builder(op);
    llvm::SetVector<Operation *> gone;
    for (auto [place, placement] : llvm::zip_equal(places->results, placements))
      gone.insert(placement.chain.begin(), placement.chain.end());
    for (auto [i, result] : llvm::enumerate(kernel.getResults()))
      Value(written[i]).replaceAllUsesWith(result);
    for (auto [place, placement] : llvm::zip_equal(places->results, placements)) {
      Value result = op->getResult(place.first);
      if (placement.chain.empty() || result.hasOneUse())
        continue;
      auto number = llvm::find(written, placement.written) - written.begin();
      Value again = rebuild(builder, placement.chain, kernel.getResult(number));
      result.replaceUsesWithIf(again, [&](OpOperand &use) { return !gone.contains(use.getOwner()); });
    }
    SmallVector<Operation *> ordered(gone.begin(), gone.end());
    llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    for (Operation *each : llvm::reverse(ordered))
      each->erase();
    op->erase();
    return true;
  }
  return false;
}
