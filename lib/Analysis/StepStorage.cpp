//===- StepStorage.cpp - which values of a step share bytes ---------------===//
//
// 1. Arguments have their bound slices.
// 2. Results of the step: an update is written over its argument when nothing
//    reads the old value later, and copied there when somebody does; one that a
//    loop adds up begins there with its zeros; metrics and outputs are written
//    where the runtime reads them.
// 3. Every other value, in order: over an operand that dies here and that its op
//    may overwrite, or into a storage of its own.
// 4. A loop's carried result has the storage that its rounds hand on: what the
//    body hands on is written there at once when the round no longer reads what
//    it was handed, and copied there at the end of the round otherwise. Slices
//    and rows are copied.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Interfaces/RepeatSyntax.h"
#include "lowtide/Support/StableSort.h"

using namespace mlir;
using namespace lowtide;

std::optional<uint64_t> lowtide::getTensorBytes(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() || !tensor.getElementType().isIntOrFloat())
    return std::nullopt;
  uint64_t bytes = (tensor.getElementTypeBitWidth() + 7) / 8;
  for (int64_t dim : tensor.getShape())
    if (__builtin_mul_overflow(bytes, uint64_t(dim), &bytes))
      return std::nullopt;
  if (bytes >> 63)
    return std::nullopt;
  return bytes;
}

BoundArguments::BoundArguments(func::FuncOp step) {
  for (BlockArgument argument : step.getArguments())
    if (auto binding = dyn_cast_or_null<BindingInterface>(step.getArgAttr(argument.getArgNumber(), bindingAttrName)))
      arguments[{binding.getName(), unsigned(binding.getBindingKind())}] = argument;
}

Value BoundArguments::lookup(BindingInterface binding) const {
  return arguments.lookup({binding.getName(), unsigned(binding.getBindingKind())});
}

bool StepStorage::isView(Operation *op) {
  auto facts = dyn_cast_or_null<FactsInterface>(op);
  return facts && facts.getFacts().aliasing == Aliasing::View;
}

bool StepStorage::isMove(Operation *op) {
  auto facts = dyn_cast_or_null<FactsInterface>(op);
  return facts && facts.getFacts().aliasing == Aliasing::Moved;
}

/// Whether one operand reads the bytes of `value`: what a view names besides them only says when it is there.
static bool isReadOnce(Value value) {
  return llvm::count_if(value.getUses(), [](OpOperand &use) {
           return use.getOperandNumber() == 0 || !StepStorage::isView(use.getOwner());
         }) == 1;
}

OpResult StepStorage::getFirstValue(OpResult result) {
  Operation *op = result.getOwner();
  auto loop = dyn_cast<RepeatInterface>(op);
  if (!loop || result.getResultNumber() >= loop.getNumCarried())
    return result;
  auto first = dyn_cast<OpResult>(op->getOperand(loop.getNumSliced() + result.getResultNumber()));
  if (!first || !isReadOnce(first) || first.getParentBlock() != op->getBlock())
    return result;
  Operation *maker = first.getOwner();
  const bool isFill = maker->getNumOperands() == 0 && !isa<RepeatInterface>(maker);
  return (getSpace(result.getType()) == Space::Device ? isFill : isMove(maker)) ? first : result;
}

Value StepStorage::getRoot(Value value) {
  while (isView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

int StepStorage::getIndex(Value root) const {
  if (Operation *op = root.getDefiningOp())
    return int(indexOf.lookup(op));
  // Arguments of a loop's body are there with its first instruction.
  auto loop = loopOf.find(root.getParentBlock()->getParentOp());
  return loop == loopOf.end() ? -1 : int(loops[loop->second].head) + 1;
}

unsigned StepStorage::create(Storage::Kind kind, uint64_t bytes, int number, Value value) {
  Storage storage;
  storage.kind = kind;
  storage.bytes = bytes;
  storage.number = number;
  storage.space = value ? getSpace(value.getType()) : Space::Device;
  storages.push_back(storage);
  if (value) {
    storages.back().values.push_back(value);
    storageOf[value] = storages.size() - 1;
  }
  return storages.size() - 1;
}

/// Number of operands of `op` that show the bytes of `root`.
static unsigned countUses(Operation *op, Value root) {
  return llvm::count_if(op->getOperands(), [&](Value operand) { return StepStorage::getRoot(operand) == root; });
}

/// Whether the result may be written over `root`, an operand that is read only here.
static bool mayReplace(OpResult result, Value root, StepStorage::MayOverwrite mayOverwrite) {
  Operation *op = result.getOwner();
  if (countUses(op, root) != 1)
    return false;
  if (auto loop = dyn_cast<RepeatInterface>(op)) {
    // The first round is handed the operand: its bytes are the ones that are handed on.
    unsigned number = result.getResultNumber();
    return number < loop.getNumCarried() && StepStorage::getRoot(op->getOperand(loop.getNumSliced() + number)) == root;
  }
  for (OpOperand &operand : op->getOpOperands())
    if (StepStorage::getRoot(operand.get()) == root)
      return mayOverwrite(op, result.getResultNumber(), operand.getOperandNumber());
  return false;
}

/// Copies start or end on the device: what lies elsewhere has to be where it is needed.
static LogicalResult checkCopy(Value value) {
  const Space space = getSpace(value.getType());
  if (space == Space::Device)
    return success();
  return emitError(value.getLoc()) << "a value in space " << getSpaceName(space)
                                   << " would have to be copied to another place there, which no copy does; load it "
                                      "with train.move and store it again";
}

LogicalResult StepStorage::placeResults(func::FuncOp step, MayOverwrite mayOverwrite) {
  Operation *terminator = step.getBody().front().getTerminator();
  const unsigned end = instructions.size();
  resultStorage.assign(terminator->getNumOperands(), 0);

  // The argument that each result updates, or null.
  const BoundArguments arguments(step);
  SmallVector<Value> updated(terminator->getNumOperands());
  DenseSet<Value> overwritten;
  for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
    auto binding = dyn_cast_or_null<BindingInterface>(step.getResultAttr(i, bindingAttrName));
    if (!binding || !isUpdated(binding.getBindingKind())) {
      if (!binding || !isResult(binding.getBindingKind()))
        return step.emitError("result ") << i << " has no binding that a result may have";
      continue;
    }
    updated[i] = arguments.lookup(binding);
    if (!updated[i])
      return step.emitError("result ") << i << " updates " << binding.getName() << ", which is no argument";
    if (updated[i].getType() != value.getType())
      return step.emitError("result ") << i << " of type " << value.getType() << " updates " << binding.getName()
                                       << " of type " << updated[i].getType();
    if (!overwritten.insert(updated[i]).second)
      return step.emitError("two results update ") << binding.getName();
    if (getRoot(value) == updated[i])
      overwritten.erase(updated[i]);
  }

  // An argument that changes and is also the source of a result is saved first.
  DenseMap<Value, unsigned> snapshots;
  auto findSource = [&](Value root) {
    if (!overwritten.contains(root))
      return storageOf.lookup(root);
    auto [it, fresh] = snapshots.try_emplace(root, 0);
    if (fresh) {
      it->second = create(Storage::Kind::Transient, *getTensorBytes(root.getType()), -1, {});
      storages[it->second].kept = true;
      copies.push_back({storageOf.lookup(root), root, it->second, 0, -1});
    }
    return it->second;
  };

  struct Pending {
    Value root;
    unsigned target;
    int result;
  };
  SmallVector<Pending> pending;
  for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
    Value root = getRoot(value);
    if (Value argument = updated[i]) {
      unsigned target = storageOf.lookup(argument);
      resultStorage[i] = target;
      if (root == argument)
        continue;
      int last = lastUse.contains(argument) ? lastUse[argument] : -1;
      bool fresh = isa<OpResult>(root) && !isAssigned(root) && !outputs.contains(root);
      OpResult first = fresh ? getFirstValue(cast<OpResult>(root)) : OpResult();
      // A fill before a reader of the old value has bytes of its own, which are copied when the loop begins.
      if (first && getSpace(root.getType()) == Space::Device && last >= getIndex(first))
        first = cast<OpResult>(root);
      const int begin = first ? getIndex(first) : -1;
      if (fresh && (last < begin || (last == begin && mayReplace(cast<OpResult>(root), argument, mayOverwrite)))) {
        if (first != root) {
          storageOf[first] = target;
          storages[target].values.push_back(first);
        }
        storageOf[root] = target;
        storages[target].values.push_back(root);
      } else {
        pending.push_back({root, target, int(i)});
      }
      continue;
    }
    auto binding = cast<BindingInterface>(step.getResultAttr(i, bindingAttrName));
    bool metric = binding.getBindingKind() == BindingKind::Metric;
    uint64_t bytes = *getTensorBytes(value.getType());
    bool fresh = isa<OpResult>(root) && !isAssigned(root) && !outputs.contains(root);
    if (metric) {
      resultStorage[i] = create(Storage::Kind::Metric, bytes, i, fresh ? root : Value());
      if (!fresh)
        pending.push_back({root, resultStorage[i], int(i)});
    } else if (fresh) {
      outputs[root] = i; // placeRest may put it over a dying operand
      liveOut.insert(root);
    } else {
      resultStorage[i] = create(Storage::Kind::Transient, bytes, i, {});
      storages[resultStorage[i]].kept = true;
      pending.push_back({root, resultStorage[i], int(i)});
    }
  }
  for (const Pending &copy : pending) {
    if (failed(checkCopy(copy.root)))
      return failure();
    liveOut.insert(copy.root);
    bool isArgument = isa<BlockArgument>(copy.root);
    // Sources that are no arguments get their storage in placeRest; they are filled in there.
    unsigned source = isArgument ? findSource(copy.root) : ~0u;
    copies.push_back({source, copy.root, copy.target, end, copy.result});
  }
  // Snapshots first, the rest in the order of the results.
  std::sort(copies.begin(), copies.end(), [](const StorageCopy &a, const StorageCopy &b) {
    return std::tie(a.before, a.result, a.target) < std::tie(b.before, b.result, b.target);
  });
  return success();
}

LogicalResult StepStorage::placeRest(MayOverwrite mayOverwrite) {
  for (auto [index, op] : llvm::enumerate(instructions)) {
    SmallVector<unsigned> taken;
    for (OpResult result : op->getResults()) {
      if (isAssigned(result))
        continue;
      uint64_t bytes = *getTensorBytes(result.getType());
      std::optional<unsigned> chosen;
      for (Value operand : op->getOperands()) {
        Value root = getRoot(operand);
        unsigned candidate = storageOf.lookup(root);
        if (isa<OpResult>(root) && storages[candidate].kind == Storage::Kind::Transient &&
            storages[candidate].bytes == bytes && bytes && lastUse[root] == int(index) && !liveOut.contains(root) &&
            !llvm::is_contained(taken, candidate) && mayReplace(result, root, mayOverwrite)) {
          chosen = candidate;
          break;
        }
      }
      if (chosen) {
        storageOf[result] = *chosen;
        storages[*chosen].values.push_back(result);
      } else {
        chosen = create(Storage::Kind::Transient, bytes, -1, result);
      }
      taken.push_back(*chosen);
      if (auto output = outputs.find(result); output != outputs.end()) {
        storages[*chosen].kept = true;
        storages[*chosen].number = output->second;
        resultStorage[output->second] = *chosen;
      }
    }
    if (auto loop = loopOf.find(op); loop != loopOf.end() && failed(placeLoop(loop->second, mayOverwrite)))
      return failure();
  }
  for (StorageCopy &copy : copies)
    if (copy.source == ~0u)
      copy.source = storageOf.lookup(copy.value);
  sortStably(copies, [](const StorageCopy &a, const StorageCopy &b) {
    return std::tie(a.before, a.result) < std::tie(b.before, b.result);
  });
  return success();
}

LogicalResult StepStorage::placeLoop(unsigned number, MayOverwrite mayOverwrite) {
  StorageLoop &loop = loops[number];
  auto repeat = cast<RepeatInterface>(loop.op);
  Block &body = loop.op->getRegion(0).front();
  Operation *next = body.getTerminator();
  const unsigned sliced = repeat.getNumSliced(), carried = repeat.getNumCarried();
  const int64_t sign = isReversed(loop.op) ? -1 : 1;
  for (unsigned i = 0; i < sliced; ++i) {
    BlockArgument part = body.getArgument(i);
    uint64_t bytes = *getTensorBytes(part.getType());
    unsigned target = create(Storage::Kind::Transient, bytes, -1, part);
    copies.push_back({~0u, getRoot(loop.op->getOperand(i)), target, loop.head + 1, -1, sign * int64_t(bytes), 0});
  }
  SmallVector<StorageCopy> saved, handedOn;
  for (unsigned i = 0; i < carried; ++i) {
    BlockArgument handed = body.getArgument(sliced + i);
    Value first = getRoot(loop.op->getOperand(sliced + i)), last = getRoot(next->getOperand(i));
    unsigned target = storageOf.lookup(loop.op->getResult(i));
    loop.carried.push_back(target);
    storageOf[handed] = target;
    storages[target].values.push_back(handed);
    if (storageOf.lookup(first) != target) {
      if (failed(checkCopy(first)))
        return failure();
      copies.push_back({~0u, first, target, loop.head, -1});
    }
    if (last == handed)
      continue;
    if (isa<BlockArgument>(last) && last.getParentBlock() == &body &&
        cast<BlockArgument>(last).getArgNumber() >= sliced) {
      // Another one of this round as it is, whose bytes may be written before these.
      if (failed(checkCopy(last)))
        return failure();
      unsigned between = create(Storage::Kind::Transient, *getTensorBytes(last.getType()), -1, {});
      saved.push_back({~0u, last, between, loop.end, -1});
      handedOn.push_back({between, last, target, loop.end, -1});
      continue;
    }
    int lastRead = lastUse.contains(handed) ? lastUse[handed] : -1;
    if (isa<OpResult>(last) && last.getParentBlock() == &body && !isAssigned(last) &&
        (lastRead < getIndex(last) ||
         (lastRead == getIndex(last) && mayReplace(cast<OpResult>(last), handed, mayOverwrite)))) {
      storageOf[last] = target;
      storages[target].values.push_back(last);
    } else if (failed(checkCopy(last))) {
      return failure();
    } else {
      handedOn.push_back({~0u, last, target, loop.end, -1});
    }
  }
  // Rows first: they may be what the round was handed.
  for (unsigned i = carried; i < next->getNumOperands(); ++i) {
    Value rows = next->getOperand(i);
    copies.push_back({~0u, getRoot(rows), storageOf.lookup(loop.op->getResult(i)), loop.end, -1, 0,
                      sign * int64_t(*getTensorBytes(rows.getType()))});
  }
  llvm::append_range(copies, saved);
  llvm::append_range(copies, handedOn);
  return success();
}

ArrayRef<StorageCopy> StepStorage::getCopies(unsigned before) const {
  auto begin = llvm::partition_point(copies, [&](const StorageCopy &copy) { return copy.before < before; });
  auto end = std::partition_point(begin, copies.end(), [&](const StorageCopy &copy) { return copy.before == before; });
  return {begin, end};
}

void StepStorage::findLifetimes() {
  const unsigned end = instructions.size() + 1; // copies at the end count as one more instruction
  for (Storage &storage : storages) {
    storage.begin = storage.values.empty() ? end - 1 : getIndex(storage.values.front());
    storage.end = storage.kept ? end : storage.begin + 1;
    for (Value value : storage.values) {
      if (auto last = lastUse.find(value); last != lastUse.end())
        storage.end = std::max(storage.end, unsigned(last->second + 1));
      if (liveOut.contains(value))
        storage.end = end;
    }
  }
  for (const StorageCopy &copy : copies)
    storages[copy.target].begin = std::min(storages[copy.target].begin, copy.before);
  // What only copies write and read is there for them.
  for (Storage &storage : storages)
    if (storage.values.empty() && !storage.kept && storage.kind == Storage::Kind::Transient)
      storage.end = storage.begin + 1;
  // What a loop hands from round to round or collects is needed to its end; as an instruction, so is what it reads.
  for (const StorageLoop &loop : loops) {
    auto needToEnd = [&](Value value) {
      Storage &storage = storages[getStorage(value)];
      storage.end = std::max(storage.end, loop.end + 1);
    };
    llvm::for_each(loop.op->getOperands(), needToEnd);
    llvm::for_each(loop.op->getResults(), needToEnd);
  }
}

uint64_t StepStorage::getPeakBytes() const {
  SmallVector<int64_t> change(instructions.size() + 2);
  for (const Storage &storage : storages)
    if (storage.isDeviceTransient()) {
      change[storage.begin] += storage.bytes;
      change[storage.end] -= storage.bytes;
    }
  int64_t live = 0, peak = 0;
  for (int64_t bytes : change) {
    live += bytes;
    peak = std::max(peak, live);
  }
  return peak;
}

FailureOr<StepStorage> StepStorage::compute(func::FuncOp step, MayOverwrite mayOverwrite) {
  if (!step.getBody().hasOneBlock())
    return step.emitError("is not one block of instructions");
  StepStorage result;
  for (BlockArgument arg : step.getArguments()) {
    std::optional<uint64_t> bytes = getTensorBytes(arg.getType());
    if (!bytes)
      return step.emitError("argument ") << arg.getArgNumber() << " is no static tensor of numbers: " << arg.getType();
    result.create(Storage::Kind::Argument, *bytes, arg.getArgNumber(), arg);
  }
  if (failed(result.numberInstructions(step.getBody().front())))
    return failure();
  result.findLastUses();
  if (failed(result.placeResults(step, mayOverwrite)) || failed(result.placeRest(mayOverwrite)))
    return failure();
  result.findLifetimes();
  return result;
}

LogicalResult StepStorage::numberInstructions(Block &block) {
  for (Operation &op : block.without_terminator()) {
    for (Value value : op.getResults())
      if (!getTensorBytes(value.getType()))
        return op.emitError("result is no static tensor of numbers: ") << value.getType();
    if (isView(&op))
      continue;
    unsigned index = indexOf[&op] = instructions.size();
    instructions.push_back(&op);
    if (!isa<RepeatInterface>(op))
      continue;
    unsigned number = loopOf[&op] = loops.size();
    loops.push_back({&op, index, 0, {}});
    Block &body = op.getRegion(0).front();
    for (BlockArgument argument : body.getArguments())
      if (!getTensorBytes(argument.getType()))
        return op.emitError("block argument is no static tensor of numbers: ") << argument.getType();
    if (failed(numberInstructions(body)))
      return failure();
    loops[number].end = indexOf[body.getTerminator()] = instructions.size();
    instructions.push_back(body.getTerminator());
  }
  return success();
}

void StepStorage::findLastUses() {
  for (Operation *op : instructions)
    for (OpOperand &operand : op->getOpOperands()) {
      Value root = getRoot(operand.get());
      // A use inside a loop that the value is older than lasts to the loop's end.
      Operation *user = root.getParentBlock()->findAncestorOpInBlock(*op);
      auto loop = loopOf.find(user);
      bool isSliced =
          user == op && loop != loopOf.end() && operand.getOperandNumber() < cast<RepeatInterface>(op).getNumSliced();
      unsigned at = user == op && !isSliced ? indexOf[op] : loops[loop->second].end;
      auto [it, fresh] = lastUse.try_emplace(root, int(at));
      if (!fresh)
        it->second = std::max(it->second, int(at));
    }
}
