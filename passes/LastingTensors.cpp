//===- LastingTensors.cpp - what lies elsewhere from step to step ---------===//
//
// An argument in another memory has one load, before its first reader. To the searches that load is an operation which
// reads nothing that is alive, and may run again: they decide between which readers the tensor stays on the device.
//
//===----------------------------------------------------------------------===//
#include "LastingTensors.h"
#include "PlanLayout.h"
#include "lowtide/Analysis/MemoryProfile.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Support/StableSort.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace lowtide;

static std::optional<BindingFacts> getFacts(func::FuncOp step, BlockArgument argument) {
  return BindingFacts::get(step.getArgAttr(argument.getArgNumber(), train::bindingAttrName));
}

namespace {

/// What a step makes of its arguments.
class StepResults {
public:
  explicit StepResults(func::FuncOp step) {
    for (auto [i, returned] : llvm::enumerate(step.getBody().front().getTerminator()->getOperands())) {
      const Value root = StepStorage::getRoot(returned);
      roots.push_back(root);
      returnedRoots.insert(root);
      if (auto facts = BindingFacts::get(step.getResultAttr(i, train::bindingAttrName)); facts && !facts->isResult())
        numbers.try_emplace(getKey(*facts), i);
    }
  }

  /// The result that replaces an argument of these facts.
  std::optional<unsigned> find(const BindingFacts &facts) const {
    auto found = numbers.find(getKey(facts));
    return found == numbers.end() ? std::nullopt : std::optional(found->second);
  }
  /// Whether the step does nothing with the argument but read it, and replace it by what one of its instructions makes.
  bool isReadOrReplaced(BlockArgument argument, const BindingFacts &facts) const {
    const std::optional<unsigned> result = find(facts);
    return !returnedRoots.contains(argument) && (!result || isa<OpResult>(roots[*result]));
  }

private:
  static std::pair<unsigned, StringAttr> getKey(const BindingFacts &facts) {
    return {unsigned(facts.kind), facts.name};
  }

  llvm::DenseMap<std::pair<unsigned, StringAttr>, unsigned> numbers;
  /// Per result, what it is or shows.
  SmallVector<Value> roots;
  llvm::DenseSet<Value> returnedRoots;
};

} // namespace

std::vector<LastingTensor> lowtide::listLastingTensors(ModuleOp module) {
  struct Known {
    Type type;
    bool isState, canMove;
  };
  llvm::MapVector<StringAttr, Known> all;
  for (auto step : module.getOps<func::FuncOp>()) {
    const StepResults results(step);
    for (BlockArgument argument : step.getArguments()) {
      const std::optional<BindingFacts> facts = getFacts(step, argument);
      if (!facts || !facts->isPersistent())
        continue;
      const bool isState = facts->getComponent() == MemoryComponent::State;
      const bool canMove = getTensorBytes(argument.getType()).value_or(0) >= leastMovedBytes &&
                           getSpace(argument.getType()) == Space::Device && results.isReadOrReplaced(argument, *facts);
      auto [it, fresh] = all.insert({facts->name, {argument.getType(), isState, canMove}});
      it->second.canMove &= canMove && it->second.type == argument.getType() && it->second.isState == isState;
    }
  }
  std::vector<LastingTensor> tensors;
  for (const auto &[name, known] : all)
    if (known.canMove)
      tensors.push_back({name, *getTensorBytes(known.type), known.isState});
  sortStably(tensors, [](const LastingTensor &a, const LastingTensor &b) { return a.bytes > b.bytes; });
  return tensors;
}

RankedTensorType lowtide::getTypeIn(RankedTensorType type, Space space) {
  return RankedTensorType::get(type.getShape(), type.getElementType(), train::SpaceAttr::get(type.getContext(), space));
}

/// Whether two lists have the same places, in any order.
template <typename Places> static bool haveSamePlaces(const Places &some, const Places &others) {
  return some.size() == others.size() && llvm::all_of(some, [&](const auto &place) {
           auto same = others.find(place.first);
           return same != others.end() && same->second == place.second;
         });
}

bool TensorPlaces::operator==(const TensorPlaces &other) const {
  return entersLoops == other.entersLoops && haveSamePlaces(spaces, other.spaces) && haveSamePlaces(sums, other.sums);
}

/// Views of a value among `users` and of those, each after what it shows; and the first instruction of the block that
/// reads any of them.
static Operation *findFirstReader(Block &block, SmallVector<Operation *> users, SmallVectorImpl<Operation *> &views) {
  Operation *first = nullptr;
  for (unsigned i = 0; i < users.size(); ++i) {
    Operation *user = users[i];
    if (StepStorage::isView(user) && user->getBlock() == &block) {
      if (!llvm::is_contained(views, user)) {
        views.push_back(user);
        llvm::append_range(users, user->getResult(0).getUsers());
      }
      continue;
    }
    user = block.findAncestorOpInBlock(*user);
    first = !first || user->isBeforeInBlock(first) ? user : first;
  }
  return first;
}

void lowtide::loadForReaders(Block &block, Value value, RankedTensorType type, ArrayRef<OpOperand *> uses) {
  if (uses.empty())
    return;
  SmallVector<Operation *> views;
  Operation *first =
      findFirstReader(block, llvm::map_to_vector(uses, [](OpOperand *use) { return use->getOwner(); }), views);
  if (!first)
    first = block.getTerminator();
  OpBuilder builder(first);
  auto move = train::MoveOp::create(builder, first->getLoc(), type, value);
  for (OpOperand *use : uses)
    use->set(move.getResult());
  for (Operation *view : views)
    view->moveBefore(first);
}

namespace {

/// Brings arguments from the other memory to where one entry reads them.
class Loader {
public:
  Loader(func::FuncOp step, const StepResults &results, const TensorPlaces &places);
  void load(BlockArgument argument, RankedTensorType type);
  /// Lets rounds of loops load what the step has stored of `made`, where they would load an argument.
  void loadInRounds(Block &block, Value made, Value stored, RankedTensorType type);
  /// Whether the step begins with the updates of the one before it (TrainDeferUpdates).
  bool isDeferred() const { return deferred; }

private:
  void load(Block &block, Value argument, RankedTensorType type, ArrayRef<OpOperand *> uses);
  /// Lets rounds of loops load `from` for those of `uses` that are theirs; the others.
  SmallVector<OpOperand *> enter(Block &block, Value from, RankedTensorType type, ArrayRef<OpOperand *> uses);
  /// Whether each round loads the argument: the loop reads at least as much besides.
  bool isEntered(Operation *loop, uint64_t bytes) const { return bytesOf.lookup(loop) >= 2 * bytes; }

  /// Bytes of what the rounds of a loop read and may load.
  llvm::DenseMap<Operation *, uint64_t> bytesOf;
  bool deferred;
};

} // namespace

Loader::Loader(func::FuncOp step, const StepResults &results, const TensorPlaces &places)
    : deferred(llvm::any_of(step.getArguments(), [&](BlockArgument argument) {
        const std::optional<BindingFacts> facts = getFacts(step, argument);
        return facts && facts->pending;
      })) {
  if (!places.entersLoops)
    return;
  for (BlockArgument argument : step.getArguments()) {
    const std::optional<BindingFacts> facts = getFacts(step, argument);
    if (!facts || !places.spaces.contains(facts->name))
      continue;
    llvm::SmallDenseSet<Operation *> loops;
    SmallVector<Operation *> users(argument.getUsers());
    if (const std::optional<unsigned> result = results.find(*facts); deferred && result)
      llvm::append_range(users,
                         StepStorage::getRoot(step.getBody().front().getTerminator()->getOperand(*result)).getUsers());
    for (Operation *user : users)
      for (Operation *loop = user->getParentOp(); loop != step; loop = loop->getParentOp())
        if (isa<RepeatInterface>(loop))
          loops.insert(loop);
    for (Operation *loop : loops)
      bytesOf[loop] += *getTensorBytes(argument.getType());
  }
}

SmallVector<OpOperand *> Loader::enter(Block &block, Value from, RankedTensorType type, ArrayRef<OpOperand *> uses) {
  SmallVector<OpOperand *> own;
  llvm::MapVector<Operation *, SmallVector<OpOperand *>> inside;
  for (OpOperand *use : uses) {
    Operation *ancestor = block.findAncestorOpInBlock(*use->getOwner());
    const bool isInside =
        ancestor != use->getOwner() && isa<RepeatInterface>(ancestor) && isEntered(ancestor, *getTensorBytes(type));
    (isInside ? inside[ancestor] : own).push_back(use);
  }
  for (auto &[loop, some] : inside)
    load(loop->getRegion(0).front(), from, type, some);
  return own;
}

void Loader::load(Block &block, Value argument, RankedTensorType type, ArrayRef<OpOperand *> uses) {
  loadForReaders(block, argument, type, enter(block, argument, type, uses));
}

void Loader::loadInRounds(Block &block, Value made, Value stored, RankedTensorType type) {
  enter(block, stored, type, llvm::map_to_vector(made.getUses(), [](OpOperand &use) { return &use; }));
}

void Loader::load(BlockArgument argument, RankedTensorType type) {
  load(*argument.getOwner(), argument, type,
       llvm::map_to_vector(argument.getUses(), [](OpOperand &use) { return &use; }));
}

/// What reads a value, through views, in the order of the block.
static SmallVector<std::pair<Operation *, OpOperand *>> listReads(Block &block, Value value) {
  SmallVector<std::pair<Operation *, OpOperand *>> reads;
  SmallVector<Value> shown{value};
  for (unsigned i = 0; i < shown.size(); ++i)
    for (OpOperand &use : shown[i].getUses())
      if (StepStorage::isView(use.getOwner()) && use.getOwner()->getBlock() == &block)
        shown.push_back(use.getOwner()->getResult(0));
      else
        reads.push_back({block.findAncestorOpInBlock(*use.getOwner()), &use});
  sortStably(reads,
             [](const auto &a, const auto &b) { return a.first != b.first && a.first->isBeforeInBlock(b.first); });
  return reads;
}

/// A tensor that is replaced before it is read: its first reader takes what was made, and the others load what `store`
/// has written, so that the device need not hold it from one to the next.
static void loadAgain(Block &block, Value made, train::MoveOp store, RankedTensorType type) {
  SmallVector<std::pair<Operation *, OpOperand *>> reads = listReads(block, made);
  llvm::erase_if(reads, [&](const auto &read) { return read.first == store || read.first == block.getTerminator(); });
  if (reads.empty() || reads.back().first == reads.front().first)
    return;
  Operation *first = reads.front().first;
  llvm::erase_if(reads, [&](const auto &read) { return read.first == first; });
  OpBuilder builder(reads.front().first);
  Value loaded = train::MoveOp::create(builder, made.getLoc(), type, store.getResult()).getResult();
  for (auto [reader, use] : reads) {
    SmallVector<Operation *> views;
    for (Value shown = use->get(); shown != made; shown = views.back()->getOperand(0))
      views.push_back(shown.getDefiningOp());
    Value value = loaded;
    for (Operation *view : llvm::reverse(views)) {
      IRMapping mapping;
      mapping.map(view->getOperand(0), value);
      value = builder.clone(*view, mapping)->getResult(0);
    }
    use->set(value);
  }
}

/// Of an argument; `result` replaces it. The step's type is left as it is.
static void moveElsewhere(Block &block, BlockArgument argument, const BindingFacts &facts,
                          std::optional<unsigned> result, Loader &loader, Space space) {
  auto type = cast<RankedTensorType>(argument.getType());
  const RankedTensorType moved = getTypeIn(type, space);
  argument.setType(moved);
  loader.load(argument, type);
  if (!result)
    return;
  OpOperand &returned = block.getTerminator()->getOpOperand(*result);
  OpBuilder builder(moved.getContext());
  builder.setInsertionPointAfterValue(returned.get());
  Value made = StepStorage::getRoot(returned.get());
  auto store = train::MoveOp::create(builder, returned.get().getLoc(), moved, returned.get());
  returned.set(store.getResult());
  if (!facts.pending && made.getType() == type && loader.isDeferred()) {
    loader.loadInRounds(block, made, store.getResult(), type);
    loadAgain(block, made, store, type);
  }
}

void lowtide::moveElsewhere(ModuleOp module, const TensorPlaces &places) {
  const std::vector<CarriedSum> sums = listCarriedSums(module);
  for (auto step : module.getOps<func::FuncOp>()) {
    const StepResults results(step);
    Loader loader(step, results, places);
    Block &block = step.getBody().front();
    for (BlockArgument argument : step.getArguments())
      if (const std::optional<BindingFacts> facts = getFacts(step, argument))
        if (auto place = places.spaces.find(facts->name); place != places.spaces.end())
          ::moveElsewhere(block, argument, *facts, results.find(*facts), loader, place->second);
    step.setType(
        FunctionType::get(step.getContext(), block.getArgumentTypes(), block.getTerminator()->getOperandTypes()));
  }
  // Last: a sum that a state takes is added up where that lies.
  for (auto [number, space] : places.sums)
    sums[number].moveTo(space);
}

namespace {

/// Where one entry has a tensor on the device while it lies in the other memory, and how often it moves it.
struct Visits {
  SmallVector<std::pair<uint32_t, uint32_t>> stays;
  uint64_t moves = 0;
};

/// Room that an entry leaves at each instruction.
class EntryRoom {
public:
  EntryRoom(const MemoryProfile &profile, uint64_t spareBytes) {
    for (const LiveBytes &live : profile.getLive())
      free.push_back(int64_t(profile.getPeakBytes() + spareBytes) - int64_t(sumBytes(live)));
  }
  /// Whether the tensor can stay all the time, in place of its visits.
  bool fits(uint64_t bytes, const Visits &visits) {
    change(int64_t(bytes), visits, -1);
    const bool isRoom = llvm::all_of(free, [](int64_t left) { return left >= 0; });
    if (!isRoom)
      change(int64_t(bytes), visits, 1);
    return isRoom;
  }
  void giveBack(uint64_t bytes, const Visits &visits) { change(int64_t(bytes), visits, 1); }

private:
  void change(int64_t bytes, const Visits &visits, int sign) {
    for (int64_t &left : free)
      left += sign * bytes;
    for (auto [begin, end] : visits.stays)
      for (uint32_t at = begin; at < std::min<size_t>(end, free.size()); ++at)
        free[at] -= sign * bytes;
  }

  std::vector<int64_t> free;
};

} // namespace

/// The names of arguments by the values that their loads make and their stores take.
static llvm::DenseMap<Value, StringAttr> findMoved(func::FuncOp step, const TensorPlaces &places,
                                                   llvm::DenseMap<StringAttr, Visits> &visits) {
  llvm::DenseMap<Value, StringAttr> moved;
  step.walk([&](Operation *op) {
    if (!StepStorage::isMove(op))
      return;
    if (auto argument = dyn_cast<BlockArgument>(StepStorage::getRoot(op->getOperand(0))))
      if (argument.getOwner() == &step.getBody().front())
        if (auto facts = getFacts(step, argument); facts && places.spaces.contains(facts->name)) {
          moved[op->getResult(0)] = facts->name;
          uint64_t times = 1;
          for (Operation *loop = op->getParentOp(); loop != step; loop = loop->getParentOp())
            times *= cast<RepeatInterface>(loop).getRounds();
          visits[facts->name].moves += times;
        }
  });
  for (auto [i, returned] : llvm::enumerate(step.getBody().front().getTerminator()->getOperands())) {
    auto facts = BindingFacts::get(step.getResultAttr(i, train::bindingAttrName));
    Operation *store = returned.getDefiningOp();
    if (!facts || !places.spaces.contains(facts->name) || !StepStorage::isMove(store))
      continue;
    moved[StepStorage::getRoot(store->getOperand(0))] = facts->name;
    ++visits[facts->name].moves;
  }
  return moved;
}

FailureOr<TensorNames> lowtide::findRoomOnDevice(ArrayRef<FittedEntry> entries, const FactsTable &facts,
                                                 const TensorPlaces &places) {
  std::vector<EntryRoom> rooms;
  std::vector<llvm::DenseMap<StringAttr, Visits>> visits(entries.size());
  llvm::DenseMap<StringAttr, uint64_t> bytes;
  for (auto [entry, visited] : llvm::zip_equal(entries, visits)) {
    func::FuncOp step = entry.step;
    FailureOr<MemoryProfile> profile = MemoryProfile::compute(step, facts);
    if (failed(profile))
      return failure();
    for (BlockArgument argument : step.getArguments())
      if (auto known = getFacts(step, argument); known && places.spaces.contains(known->name))
        bytes[known->name] = solve::alignTo(*getTensorBytes(argument.getType()), planAlignment);
    const llvm::DenseMap<Value, StringAttr> moved = findMoved(step, places, visited);
    for (const MemoryTenant &tenant : profile->getTenants())
      if (StringAttr name = moved.lookup(tenant.value))
        visited[name].stays.push_back({tenant.begin, tenant.end});
    rooms.emplace_back(*profile, entry.spareBytes);
  }
  auto order = llvm::to_vector(places.spaces.keys());
  auto countMoves = [&](StringAttr name) {
    uint64_t moves = 0;
    for (const auto &visited : visits)
      moves += visited.lookup(name).moves;
    return moves;
  };
  sortStably(order, [&](StringAttr a, StringAttr b) { return countMoves(a) > countMoves(b); });
  TensorNames back;
  for (StringAttr name : order) {
    size_t taken = 0;
    while (taken < rooms.size() && rooms[taken].fits(bytes.lookup(name), visits[taken][name]))
      ++taken;
    if (taken == rooms.size())
      back.insert(name);
    else
      while (taken-- > 0)
        rooms[taken].giveBack(bytes.lookup(name), visits[taken][name]);
  }
  return back;
}
