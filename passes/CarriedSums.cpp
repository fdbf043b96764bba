//===- CarriedSums.cpp - what loops add up in another memory --------------===//
#include "CarriedSums.h"
#include "LastingTensors.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/Train/Train.h"

using namespace mlir;
using namespace lowtide;

/// The instructions of the block that read the value, through views, or have a reader in them; each once.
static llvm::SmallSetVector<Operation *, 4> listReaders(Block &block, Value value) {
  llvm::SmallSetVector<Operation *, 4> readers;
  SmallVector<Value> shown{value};
  for (unsigned i = 0; i < shown.size(); ++i)
    for (Operation *user : shown[i].getUsers())
      if (StepStorage::isView(user) && user->getBlock() == &block)
        shown.push_back(user->getResult(0));
      else
        readers.insert(block.findAncestorOpInBlock(*user));
  return readers;
}

/// Whether what a round is handed is read at one place of it, and replaced by what the round makes.
static bool isSum(RepeatInterface loop, unsigned number) {
  Block &body = loop->getRegion(0).front();
  BlockArgument handed = body.getArgument(loop.getNumSliced() + number);
  auto last = dyn_cast<OpResult>(StepStorage::getRoot(body.getTerminator()->getOperand(number)));
  if (!last || last.getParentBlock() != &body || getSpace(handed.getType()) != Space::Device ||
      getTensorBytes(handed.getType()).value_or(0) < leastMovedBytes)
    return false;
  auto readers = listReaders(body, handed);
  return readers.size() == 1 && readers.front() != body.getTerminator();
}

std::vector<CarriedSum> lowtide::listCarriedSums(ModuleOp module) {
  std::vector<CarriedSum> sums;
  for (auto step : module.getOps<func::FuncOp>())
    for (auto loop : step.getBody().front().getOps<RepeatInterface>()) {
      const size_t before = sums.size();
      for (unsigned i = 0; i < loop.getNumCarried(); ++i)
        if (isSum(loop, i))
          sums.push_back({loop, uint64_t(loop.getRounds()), i, *getTensorBytes(loop->getResult(i).getType())});
      if (sums.size() == before + 1)
        sums.pop_back();
    }
  return sums;
}

/// The state in `space` that a move returns to the step's caller; null: none.
static Value findState(func::FuncOp step, Operation *store) {
  for (OpOperand &use : store->getResult(0).getUses())
    if (use.getOwner() == step.getBody().front().getTerminator())
      if (auto binding =
              dyn_cast_or_null<BindingInterface>(step.getResultAttr(use.getOperandNumber(), bindingAttrName)))
        return BoundArguments(step).lookup(binding);
  return {};
}

/// Readers after the loop load its result. A state that is to hold it and lies in the same memory has it there already,
/// where nothing reads the state's old value once the first sum is stored.
static void loadResult(Operation *loop, OpResult result, RankedTensorType type) {
  Block &block = *loop->getBlock();
  auto step = cast<func::FuncOp>(block.getParentOp());
  Operation *inPlace = nullptr;
  for (Operation *user : result.getUsers())
    if (StepStorage::isMove(user) && user->getResult(0).getType() == result.getType() && !inPlace)
      if (Value state = findState(step, user)) {
        auto readers = listReaders(block, state);
        Operation *writer = StepStorage::getFirstValue(result).getOwner();
        if (llvm::all_of(readers, [&](Operation *reader) { return reader->isBeforeInBlock(writer); }))
          inPlace = user;
      }
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : result.getUses())
    if (use.getOwner() != inPlace)
      uses.push_back(&use);
  loadForReaders(block, result, type, uses);
  if (inPlace) {
    inPlace->getResult(0).replaceAllUsesWith(result);
    inPlace->erase();
  }
}

void CarriedSum::moveTo(Space space) const {
  Block &body = loop->getRegion(0).front();
  const unsigned place = cast<RepeatInterface>(loop).getNumSliced() + number;
  OpOperand &first = loop->getOpOperand(place);
  BlockArgument handed = body.getArgument(place);
  OpOperand &last = body.getTerminator()->getOpOperand(number);
  OpResult result = loop->getResult(number);
  auto type = cast<RankedTensorType>(handed.getType());
  const RankedTensorType moved = getTypeIn(type, space);

  OpBuilder builder(loop->getContext());
  // What depends on nothing is made when it is stored.
  Operation *maker = first.get().getDefiningOp();
  if (maker && !maker->getNumOperands() && isMemoryEffectFree(maker) &&
      llvm::all_of(maker->getUsers(), [&](Operation *user) { return user == loop; }))
    maker->moveBefore(loop);
  builder.setInsertionPoint(loop);
  if (maker)
    builder.setInsertionPointAfter(maker);
  first.set(train::MoveOp::create(builder, loop->getLoc(), moved, first.get()).getResult());

  handed.setType(moved);
  loadForReaders(body, handed, type, llvm::map_to_vector(handed.getUses(), [](OpOperand &use) { return &use; }));
  builder.setInsertionPointAfterValue(last.get());
  last.set(train::MoveOp::create(builder, last.get().getLoc(), moved, last.get()).getResult());

  result.setType(moved);
  loadResult(loop, result, type);
}

uint64_t lowtide::countCarriedBytes(ModuleOp module, Space space, uint64_t alignment) {
  uint64_t most = 0;
  for (auto step : module.getOps<func::FuncOp>()) {
    uint64_t bytes = 0;
    for (auto loop : step.getBody().front().getOps<RepeatInterface>())
      for (OpResult result : loop->getResults().take_front(loop.getNumCarried()))
        if (getSpace(result.getType()) == space &&
            llvm::none_of(result.getUsers(), [](Operation *user) { return user->hasTrait<OpTrait::IsTerminator>(); }))
          bytes += solve::alignTo(*getTensorBytes(result.getType()), alignment);
    most = std::max(most, bytes);
  }
  return most;
}
