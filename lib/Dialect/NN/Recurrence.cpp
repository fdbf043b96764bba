//===- Recurrence.cpp - loops over steps that a file writes out -*- C++ -*-===//
//
//   1. Ops of one kind that depend on one another in a chain are taken for one op of a recurrence, once in each step.
//      An op belongs to the step of the last link that it depends on; one that depends on none is ahead of the steps.
//      Or steps end with their links.
//   2. From the links backwards, operand by operand, all steps in parallel: columns of ops that are alike. What a step
//      reads of the step before is carried; what all steps read is fixed; slices follow one another in one tensor;
//      constants may differ.
//   3. Of each other op of a step in the middle, its like is looked for in all steps among the readers of its operands.
//   4. The longest run of steps around the middle in which every column holds. The first and the last step may differ,
//      as where the first state is zero.
//   5. Of all chains, the one that leaves the fewest steps outside, and of these the one that hands on least.
//
//===----------------------------------------------------------------------===//

#include "Recurrence.h"
#include "lowtide/Dialect/NN/NN.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;
using Kind = StepOperand::Kind;

/// Columns of one recurrence at most.
static constexpr size_t kMostColumns = 4096;
/// Ops that links are told apart by, counted backwards.
static constexpr int kDeepestKind = 2;
/// Chains of which steps are made at most, for each recurrence.
static constexpr int64_t kMostTries = 32;

bool nn::isConstant(Value value) { return value && matchPattern(value, m_Constant()); }

/// What tells ops of different places in a step apart: what they do, which values of all steps they read, and, `depth`
/// ops back, how the others are made.
static llvm::hash_code hashKind(Operation *op, int depth) {
  auto hashOperand = [&](Value value) -> llvm::hash_code {
    Operation *maker = value.getDefiningOp();
    if (value.hasNUsesOrMore(unsigned(Recurrence::kFewestSteps)))
      return hash_value(value);
    if (isConstant(value))
      return hash_value(value.getType());
    if (auto slice = dyn_cast_or_null<SliceOp>(maker))
      return llvm::hash_combine(slice.getX(), slice.getType());
    return maker && depth ? hashKind(maker, depth - 1) : hash_value(value.getType());
  };
  if (auto draw = dyn_cast<RandomUniformOp>(op))
    return llvm::hash_combine(op->getName(), draw.getType(), draw.getBatchDim());
  return OperationEquivalence::computeHash(op, hashOperand, OperationEquivalence::ignoreHashValue,
                                           OperationEquivalence::IgnoreLocations);
}

/// Whether two ops do the same with operands of the same types. Each step draws numbers of its own.
static bool isAlike(Operation *a, Operation *b) {
  if (auto draw = dyn_cast<RandomUniformOp>(a), other = dyn_cast<RandomUniformOp>(b); draw && other)
    return draw.getType() == other.getType() && draw.getBatchDim() == other.getBatchDim();
  return a->getOperandTypes() == b->getOperandTypes() &&
         OperationEquivalence::isEquivalentTo(a, b, OperationEquivalence::ignoreValueEquivalence,
                                              /*markEquivalent=*/nullptr, OperationEquivalence::IgnoreLocations);
}

/// Whether a step may hold the op: the statistics of a part of the batch cannot be carried through a loop over steps.
static bool isPlain(Operation *op) {
  return op->getNumResults() && !op->getNumRegions() && isPure(op) && !op->hasTrait<OpTrait::ConstantLike>() &&
         !isa<BatchNormOp>(op);
}

/// Whether `value` is the slice that comes `steps` after `model`.
static bool isSlice(Value value, Value model, const StepOperand &operand, int64_t steps) {
  auto slice = value.getDefiningOp<SliceOp>(), from = model.getDefiningOp<SliceOp>();
  if (!slice || slice.getX() != operand.value || slice.getType() != from.getType() ||
      slice.getStrides() != from.getStrides())
    return false;
  SmallVector<int64_t> starts(from.getStarts());
  starts[operand.dim] += steps * operand.stride;
  return slice.getStarts() == ArrayRef(starts);
}

/// Whether two values that depend on no step may be of one column, as far as what has one operand tells.
static bool mayFollow(Value value, Value model) {
  while (value != model) {
    Operation *op = value.getDefiningOp(), *known = model.getDefiningOp();
    if (!op || !known || op->getName() != known->getName() || value.getType() != model.getType())
      return false;
    if (op->getNumOperands() != 1)
      return true;
    value = op->getOperand(0);
    model = known->getOperand(0);
  }
  return true;
}

namespace {
/// Steps from 0 on, one for each link of a chain, and columns through them.
class Steps {
public:
  Steps(Block &block, ArrayRef<Operation *> links, const DenseMap<Operation *, int64_t> &stepOf)
      : block(block), stepOf(stepOf), count(int64_t(links.size())), middle(count / 2), links(links) {}

  std::optional<Recurrence> match();

private:
  using Ops = SmallVector<Operation *, 0>;

  int64_t getStep(Value value) const {
    Operation *op = value.getDefiningOp();
    return op ? stepOf.lookup(op) - 1 : -1;
  }
  Value getResult(unsigned column, unsigned result, int64_t step) const {
    Operation *op = step < 0 ? nullptr : columns[column].ops[step];
    return op ? op->getResult(result) : Value();
  }
  std::optional<unsigned> addColumn(ArrayRef<Value> values, bool isAhead);
  bool findOperands(unsigned column);
  bool findSlices(ArrayRef<Value> values, StepOperand &operand) const;
  Operation *findLike(unsigned column, int64_t step) const;
  void fillAhead(unsigned column, int64_t step);
  void completeLast();
  bool addReader(Operation *model, const DenseMap<Operation *, unsigned> &columnBefore);
  void addReaders();
  bool holds(unsigned column, int64_t step) const;
  bool isHandedOn(unsigned column, int64_t step) const;
  bool startsAlike(int64_t step) const;
  bool chooseRun();
  bool readsNoOwn() const;
  bool hasSequence() const;

  Block &block;
  const DenseMap<Operation *, int64_t> &stepOf;
  int64_t count, middle;
  ArrayRef<Operation *> links;
  SmallVector<StepColumn> columns;
  /// Columns of steps, by their op in the middle; those ahead, by their ops in the middle and one step later.
  DenseMap<Operation *, unsigned> columnOf;
  DenseMap<std::pair<Operation *, Operation *>, unsigned> aheadOf;
  int64_t first = 0, last = 0;
};
} // namespace

/// The column whose results `values` are, one of each step or null; nothing where the middle has none.
std::optional<unsigned> Steps::addColumn(ArrayRef<Value> values, bool isAhead) {
  Operation *model = values[middle] ? values[middle].getDefiningOp() : nullptr;
  if (!model || !isPlain(model) || columns.size() > kMostColumns)
    return std::nullopt;
  Ops ops(count, nullptr);
  for (int64_t k = 0; k < count; ++k) {
    Operation *op = values[k] ? values[k].getDefiningOp() : nullptr;
    if (op && cast<OpResult>(values[k]).getResultNumber() == cast<OpResult>(values[middle]).getResultNumber() &&
        (op == model || isAlike(op, model)))
      ops[k] = op;
  }
  unsigned next = columns.size();
  const unsigned number = isAhead ? aheadOf.try_emplace({model, ops[middle + 1]}, next).first->second
                                  : columnOf.try_emplace(model, next).first->second;
  if (number == next) {
    columns.push_back({std::move(ops), {}, isAhead});
    return number;
  }
  for (auto [known, found] : llvm::zip_equal(columns[number].ops, ops))
    if (!known)
      known = found;
  return number;
}

/// Whether the values are slices that stand one after another in one tensor, near the middle at least.
bool Steps::findSlices(ArrayRef<Value> values, StepOperand &operand) const {
  auto model = values[middle].getDefiningOp<SliceOp>();
  auto next = values[middle + 1] ? values[middle + 1].getDefiningOp<SliceOp>() : SliceOp();
  if (!model || !next || model.getX() != next.getX() || model.getType() != next.getType() ||
      model.getStrides() != next.getStrides())
    return false;
  int64_t numDiffering = 0;
  for (auto [dim, starts] : llvm::enumerate(llvm::zip_equal(model.getStarts(), next.getStarts())))
    if (auto [from, to] = starts; from != to) {
      operand.dim = int64_t(dim);
      operand.stride = to - from;
      ++numDiffering;
    }
  operand.kind = Kind::Slice;
  operand.value = model.getX();
  return numDiffering == 1 && model.getStrides()[operand.dim] == 1 &&
         std::abs(operand.stride) == model.getType().getDimSize(operand.dim);
}

/// What the column reads, decided in the middle; adds the columns that it reads.
bool Steps::findOperands(unsigned column) {
  Operation *model = columns[column].ops[middle];
  if (!columns[column].ops[middle + 1])
    return false;
  for (unsigned j = 0; j < model->getNumOperands(); ++j) {
    StepOperand operand;
    SmallVector<Value, 0> values(count);
    for (int64_t k = 0; k < count; ++k)
      if (Operation *op = columns[column].ops[k])
        values[k] = op->getOperand(j);
    const int64_t step = getStep(values[middle]);
    if (step < 0 && values[middle] == values[middle + 1]) {
      operand.value = values[middle];
    } else if (isConstant(values[middle]) && isConstant(values[middle + 1])) {
      operand.kind = Kind::Listed;
    } else if (step < 0 && findSlices(values, operand)) {
      // Nothing further to find.
    } else {
      operand.kind = step == middle - 1 ? Kind::Carried : Kind::Made;
      if (step >= 0 && step < middle - 1)
        return false;
      if (operand.kind == Kind::Carried) {
        values.erase(values.begin());
        values.push_back(Value());
        // The next step's is of this one.
        if (!values[middle] || getStep(values[middle]) != middle)
          return false;
      }
      auto read = addColumn(values, step < 0);
      if (!read)
        return false;
      operand.column = *read;
      operand.result = cast<OpResult>(values[middle]).getResultNumber();
    }
    columns[column].operands.push_back(operand);
  }
  return true;
}

/// Whether the column's op of `step` reads what it has to, but for what the step before hands on.
bool Steps::holds(unsigned column, int64_t step) const {
  const StepColumn &own = columns[column];
  if (!own.ops[step])
    return false;
  for (auto [value, model, operand] :
       llvm::zip_equal(own.ops[step]->getOperands(), own.ops[middle]->getOperands(), own.operands)) {
    if (operand.kind == Kind::Fixed && value != operand.value)
      return false;
    if (operand.kind == Kind::Listed && (!isConstant(value) || value.getType() != model.getType()))
      return false;
    if (operand.kind == Kind::Made && value != getResult(operand.column, operand.result, step))
      return false;
    if (operand.kind == Kind::Slice && !isSlice(value, model, operand, step - middle))
      return false;
  }
  return true;
}

/// Whether what the column's op of `step` reads of the step before is what that column made there.
bool Steps::isHandedOn(unsigned column, int64_t step) const {
  for (auto [value, operand] : llvm::zip_equal(columns[column].ops[step]->getOperands(), columns[column].operands))
    if (operand.kind == Kind::Carried && value != getResult(operand.column, operand.result, step - 1))
      return false;
  return true;
}

/// The op of `step` that belongs to the column, found among the readers of one of its operands.
Operation *Steps::findLike(unsigned column, int64_t step) const {
  const StepColumn &own = columns[column];
  auto isOfSteps = [&](const StepOperand &operand) {
    return operand.kind == Kind::Carried || (operand.kind == Kind::Made && !columns[operand.column].isAhead);
  };
  auto getExpected = [&](const StepOperand &operand) {
    return getResult(operand.column, operand.result, operand.kind == Kind::Carried ? step - 1 : step);
  };
  auto isLike = [&](Operation *reader, bool sameFixed) {
    Operation *model = own.ops[middle];
    if (!isAlike(reader, model))
      return false;
    for (auto [value, known, operand] : llvm::zip_equal(reader->getOperands(), model->getOperands(), own.operands))
      if (isOfSteps(operand) ? value != getExpected(operand)
                             : getStep(value) >= 0 || (sameFixed ? value != known : !mayFollow(value, known)))
        return false;
    return true;
  };
  auto readStep = llvm::find_if(own.operands, isOfSteps);
  Value read = readStep == own.operands.end() ? Value() : getExpected(*readStep);
  for (bool sameFixed : {true, false})
    for (OpOperand &use : read ? read.getUses() : Value::use_range(Value::use_iterator(), Value::use_iterator()))
      if (use.getOperandNumber() == readStep - own.operands.begin() && isLike(use.getOwner(), sameFixed))
        return use.getOwner();
  return nullptr;
}

/// What the column's op of `step` reads ahead of the steps.
void Steps::fillAhead(unsigned column, int64_t step) {
  Operation *op = columns[column].ops[step];
  for (auto [value, operand] : llvm::zip_equal(op->getOperands(), columns[column].operands)) {
    if (operand.kind != Kind::Made || !columns[operand.column].isAhead || columns[operand.column].ops[step])
      continue;
    Operation *maker = value.getDefiningOp();
    if (!maker || !isAlike(maker, columns[operand.column].ops[middle]))
      continue;
    columns[operand.column].ops[step] = maker;
    fillAhead(operand.column, step);
  }
}

/// What only the step after reads is not found backwards in the last one.
void Steps::completeLast() {
  for (bool changes = true; changes;) {
    changes = false;
    for (unsigned column = 0; column < columns.size(); ++column) {
      if (columns[column].isAhead || columns[column].ops[count - 1])
        continue;
      columns[column].ops[count - 1] = findLike(column, count - 1);
      if (!columns[column].ops[count - 1])
        continue;
      fillAhead(column, count - 1);
      changes = true;
    }
  }
}

/// Whether what `step` reads of the step before, were it the first one, is one value for each result that is carried,
/// and made before all steps from it on.
bool Steps::startsAlike(int64_t step) const {
  DenseMap<std::pair<unsigned, unsigned>, Value> starts;
  for (const StepColumn &column : columns)
    for (auto [value, operand] : llvm::zip_equal(column.ops[step]->getOperands(), column.operands))
      if (operand.kind == Kind::Carried &&
          (starts.try_emplace({operand.column, operand.result}, value).first->second != value ||
           getStep(value) >= step ||
           value.getType() != columns[operand.column].ops[step]->getResult(operand.result).getType()))
        return false;
  return true;
}

/// The longest run of steps around the middle that holds.
bool Steps::chooseRun() {
  auto holdsAll = [&](int64_t step) {
    return llvm::all_of(llvm::seq<unsigned>(0, columns.size()), [&](unsigned column) { return holds(column, step); });
  };
  auto isHandedOnAll = [&](int64_t step) {
    return llvm::all_of(llvm::seq<unsigned>(0, columns.size()),
                        [&](unsigned column) { return isHandedOn(column, step); });
  };
  if (!holdsAll(middle))
    return false;
  first = last = middle;
  while (last + 1 < count && holdsAll(last + 1) && isHandedOnAll(last + 1))
    ++last;
  while (first > 0 && isHandedOnAll(first) && holdsAll(first - 1))
    --first;
  while (first < last && !startsAlike(first))
    ++first;
  return last - first + 1 >= Recurrence::kFewestSteps;
}

/// A column of what a step makes that the next one does not read; false, and none, where not every step has its like.
bool Steps::addReader(Operation *model, const DenseMap<Operation *, unsigned> &columnBefore) {
  const size_t numColumns = columns.size();
  StepColumn reader;
  reader.ops.assign(count, nullptr);
  reader.ops[middle] = model;
  bool reads = false;
  for (Value value : model->getOperands()) {
    StepOperand operand;
    if (const int64_t step = getStep(value); step >= 0) {
      const auto &known = step == middle ? columnOf : columnBefore;
      auto found = known.find(value.getDefiningOp());
      if (found == known.end())
        return false;
      operand = {step == middle ? Kind::Made : Kind::Carried, found->second, cast<OpResult>(value).getResultNumber()};
      reads = true;
    }
    reader.operands.push_back(operand);
  }
  if (!reads)
    return false;
  columns.push_back(std::move(reader));
  bool isWhole = true;
  for (int64_t step = first; isWhole && step <= last; ++step)
    if (step != middle)
      isWhole = (columns[numColumns].ops[step] = findLike(numColumns, step)) != nullptr;
  // What it reads ahead of the steps was left open.
  columns[numColumns].operands.clear();
  for (size_t column = numColumns; isWhole && column < columns.size(); ++column)
    isWhole = (column == numColumns || columns[column].isAhead) && findOperands(unsigned(column));
  for (size_t column = numColumns; isWhole && column < columns.size(); ++column)
    for (int64_t step = first; isWhole && step <= last; ++step)
      isWhole = holds(unsigned(column), step) && (step == first || isHandedOn(unsigned(column), step));
  isWhole = isWhole && startsAlike(first);
  if (isWhole) {
    columnOf[model] = unsigned(numColumns);
    return true;
  }
  columns.truncate(numColumns);
  auto forget = [&](auto &numbers) {
    for (auto entry = numbers.begin(); entry != numbers.end(); ++entry)
      if (entry->second >= numColumns)
        numbers.erase(entry);
  };
  forget(columnOf);
  forget(aheadOf);
  return false;
}

void Steps::addReaders() {
  DenseMap<Operation *, unsigned> columnBefore;
  for (auto [number, column] : llvm::enumerate(columns))
    if (!column.isAhead)
      columnBefore[column.ops[middle - 1]] = unsigned(number);
  for (Operation &op : block)
    if (stepOf.lookup(&op) - 1 == middle && !columnOf.contains(&op) && isPlain(&op))
      addReader(&op, columnBefore);
}

/// Whether nothing that the steps read from outside is made of what they make: one op takes the place of all of them.
bool Steps::readsNoOwn() const {
  DenseSet<Operation *> made;
  for (const StepColumn &column : columns)
    if (!column.isAhead)
      made.insert(column.ops.begin() + first, column.ops.begin() + last + 1);
  for (Operation &op : block)
    if (llvm::any_of(op.getOperands(), [&](Value read) { return made.contains(read.getDefiningOp()); }))
      made.insert(&op);
  for (const StepColumn &column : columns)
    for (auto [start, operand] : llvm::zip_equal(column.ops[first]->getOperands(), column.operands)) {
      Value outside = operand.kind == Kind::Carried ? start : operand.value;
      if (outside && made.contains(outside.getDefiningOp()))
        return false;
    }
  return true;
}

/// Whether steps read slices, or what they make is put one after another.
bool Steps::hasSequence() const {
  for (const StepColumn &column : columns) {
    for (const StepOperand &operand : column.operands)
      if (operand.kind == Kind::Slice)
        return true;
    for (Operation *reader : column.ops[middle]->getUsers())
      if (!column.isAhead && isa<ConcatOp>(reader) && reader->getNumOperands() >= Recurrence::kFewestSteps)
        return true;
  }
  return false;
}

std::optional<Recurrence> Steps::match() {
  SmallVector<Value, 0> values;
  for (Operation *link : links)
    values.push_back(link->getResult(0));
  if (!addColumn(values, /*isAhead=*/false))
    return std::nullopt;
  for (unsigned column = 0; column < columns.size(); ++column)
    if (!findOperands(column))
      return std::nullopt;
  completeLast();
  if (!chooseRun())
    return std::nullopt;
  addReaders();
  if (!hasSequence() || !readsNoOwn())
    return std::nullopt;
  Recurrence found;
  found.columns = std::move(columns);
  for (auto [number, column] : llvm::enumerate(found.columns)) {
    if (!column.isAhead)
      found.order.push_back(unsigned(number));
    column.ops = Ops(ArrayRef(column.ops).slice(size_t(first), size_t(last - first + 1)));
  }
  llvm::sort(found.order, [&](unsigned a, unsigned b) {
    return found.columns[a].ops[middle - first]->isBeforeInBlock(found.columns[b].ops[middle - first]);
  });
  return found;
}

int64_t Recurrence::countCarried() const {
  DenseSet<std::pair<unsigned, unsigned>> carried;
  int64_t numElements = 0;
  for (const StepColumn &column : columns)
    for (const StepOperand &operand : column.operands)
      if (operand.kind == Kind::Carried && carried.insert({operand.column, operand.result}).second) {
        Value state = columns[operand.column].ops.front()->getResult(operand.result);
        numElements += cast<RankedTensorType>(state.getType()).getNumElements();
      }
  return numElements;
}

/// The step of each op, from 1 on, by how many links it depends on; 0 for none. False where the links are no chain.
static bool numberSteps(Block &block, const DenseSet<Operation *> &links, DenseMap<Operation *, int64_t> &stepOf) {
  stepOf.clear();
  int64_t numSeen = 0;
  for (Operation &op : block) {
    int64_t step = 0;
    for (Value operand : op.getOperands())
      if (Operation *maker = operand.getDefiningOp())
        step = std::max(step, stepOf.lookup(maker));
    if (links.contains(&op) && step++ != numSeen++)
      return false;
    if (step)
      stepOf[&op] = step;
  }
  return true;
}

/// Moves what leads from one link to the next into the next one's step.
static void endStepsWithLinks(Block &block, const DenseSet<Operation *> &links,
                              DenseMap<Operation *, int64_t> &stepOf) {
  DenseSet<Operation *> leading;
  for (Operation &op : llvm::reverse(block)) {
    const int64_t step = stepOf.lookup(&op);
    if (step && llvm::any_of(op.getUsers(), [&](Operation *user) {
          return links.contains(user) ? stepOf.lookup(user) == step + 1
                                      : leading.contains(user) && stepOf.lookup(user) == step;
        }))
      leading.insert(&op);
  }
  for (Operation &op : block) {
    auto step = stepOf.find(&op);
    if (step == stepOf.end() || links.contains(&op))
      continue;
    step->second += leading.contains(&op);
    // What does not lead on may read what does.
    for (Value operand : op.getOperands())
      if (Operation *maker = operand.getDefiningOp())
        step->second = std::max(step->second, stepOf.lookup(maker));
  }
}

/// Whether something is cut into slices, or put together of parts, often enough.
static bool mayHaveSequence(Block &block) {
  DenseMap<Value, int64_t> numSlices;
  for (Operation &op : block) {
    if (isa<ConcatOp>(op) && op.getNumOperands() >= Recurrence::kFewestSteps)
      return true;
    if (auto slice = dyn_cast<SliceOp>(op); slice && ++numSlices[slice.getX()] >= Recurrence::kFewestSteps)
      return true;
  }
  return false;
}

std::optional<Recurrence> nn::findRecurrence(Block &block) {
  if (!mayHaveSequence(block))
    return std::nullopt;
  std::optional<Recurrence> best;
  int64_t numTried = 0;
  DenseMap<Operation *, int64_t> stepOf;
  for (int depth = 0; depth <= kDeepestKind && !best; ++depth) {
    llvm::MapVector<size_t, SmallVector<Operation *, 0>> kinds;
    for (Operation &op : block)
      if (isPlain(&op) && !isa<SliceOp>(op))
        kinds[hashKind(&op, depth)].push_back(&op);
    for (const auto &[kind, links] : kinds) {
      const DenseSet<Operation *> isLink(links.begin(), links.end());
      if (int64_t(links.size()) < Recurrence::kFewestSteps || !numberSteps(block, isLink, stepOf))
        continue;
      // A step begins with its link, as with the product that reads the state, or ends with it, as with the state
      // itself.
      for (bool endsWithLink : {false, true}) {
        if (numTried++ == kMostTries)
          return best;
        if (endsWithLink)
          endStepsWithLinks(block, isLink, stepOf);
        auto found = Steps(block, links, stepOf).match();
        if (found && (!best || std::pair(-found->countSteps(), found->countCarried()) <
                                   std::pair(-best->countSteps(), best->countCarried())))
          best = std::move(found);
      }
    }
  }
  return best;
}
