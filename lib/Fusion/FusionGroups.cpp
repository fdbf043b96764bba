//===- FusionGroups.cpp - which ops become one kernel -----------*- C++ -*-===//
//
// Greedy, deterministic producer-consumer fusion over the graph of groups.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Fusion/FusionGroups.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Fusion/CheapProducers.h"
#include "lowtide/Fusion/FullReductions.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

#include <limits>
#include <queue>

using namespace mlir;
using namespace lowtide;

/// A kernel gets no more operands and results than this, nor more ops.
static constexpr unsigned kMaxPointers = 28, kMaxOps = 200;
/// A reduction over so many elements must leave so many tasks, or nothing is fused into it.
static constexpr int64_t kSerialElements = 1 << 15, kMinTasks = 4, kTileColumns = 64;
/// On a GPU, columns longer than this are shared among blocks, unless there are so many that each block has its own.
static constexpr int64_t kLongColumn = 1024, kManyColumns = 1 << 13;

static RankedTensorType getType(Value tensor) { return dyn_cast<RankedTensorType>(tensor.getType()); }

/// Dimensions of `tensor` listed in `dims`, in the numbering of dropUnits.
static SmallVector<int64_t> dropUnitDims(Value tensor, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> result;
  int64_t next = 0;
  for (auto [d, extent] : llvm::enumerate(getType(tensor).getShape()))
    if (extent != 1) {
      if (llvm::is_contained(dims, static_cast<int64_t>(d)))
        result.push_back(next);
      ++next;
    }
  return result;
}

SmallVector<int64_t> FusionDomain::keptExtents() const {
  SmallVector<int64_t> kept;
  for (auto [d, extent] : llvm::enumerate(extents))
    if (!llvm::is_contained(reduced, static_cast<int64_t>(d)))
      kept.push_back(extent);
  return kept;
}

/// Counts over 63 bits, which code generation refuses, are the largest there is.
static int64_t product(ArrayRef<int64_t> extents) {
  int64_t count = 1;
  for (int64_t extent : extents)
    if (llvm::MulOverflow(count, extent, count))
      return std::numeric_limits<int64_t>::max();
  return count;
}

/// Whether a fused reduction leaves enough tasks to share.
static bool isParallelEnough(const FusionDomain &domain) {
  if (domain.reduced.empty() || product(domain.extents) <= kSerialElements)
    return true;
  int64_t tasks = product(domain.keptExtents()), rank = domain.extents.size();
  if (domain.reduced.back() != rank - 1)
    tasks /= std::min(kTileColumns, domain.extents.back());
  return tasks >= kMinTasks;
}

FusionGroups::FusionGroups(Block &block, std::function<bool(Operation *)> isGenerated, bool isGpu,
                           const FusionSteps &steps)
    : block(block), isGenerated(std::move(isGenerated)), isGpu(isGpu), steps(steps) {}

/// Whether a GPU shares this group's sums among its blocks: everything is reduced, and nothing but numbers comes out.
bool FusionGroups::isWholeSum(const FusionDomain &domain, const llvm::SmallDenseSet<Value> &results) {
  return isGpu && !domain.reduced.empty() && domain.reduced.size() == domain.extents.size() &&
         llvm::all_of(results, [](Value result) { return dropUnits(result).empty(); });
}

/// Whether a GPU shares this group's sums over columns among its blocks: they are long, and nothing but sums, and what
/// is made of them, comes out.
bool FusionGroups::isLongColumns(const FusionDomain &domain) {
  if (!isGpu || domain.reduced.empty() || llvm::is_contained(domain.reduced, int64_t(domain.extents.size()) - 1))
    return false;
  const int64_t kept = product(domain.keptExtents());
  return product(domain.extents) / kept > kLongColumn && kept < kManyColumns;
}

void FusionGroups::buildNodes() {
  unsigned position = 0;
  for (Operation &op : block)
    positions[&op] = position++;
  for (Operation &op : block) {
    Node node;
    node.ops = {&op};
    node.first = node.last = positions[&op];
    node.generated = isGenerated(&op);
    node.forward = forwardPart && forwardPart->ops.contains(&op);
    node.fusable = node.generated;
    if (node.generated) {
      node.domain.extents = dropUnits(op.getResult(0));
      for (Value result : op.getResults())
        if (dropUnits(result) != node.domain.extents)
          node.fusable = false;
      if (auto reduction = dyn_cast<ReductionInterface>(op)) {
        node.domain.extents = dropUnits(op.getOperand(0));
        node.domain.reduced = dropUnitDims(op.getOperand(0), reduction.getReducedDims());
      }
      // What loops inside an element is not computed in another kernel's loop; a movement of the last dimension reads
      // memory crosswise.
      if (auto facts = dyn_cast<FactsInterface>(op)) {
        OpFamily family = facts.getFacts().family;
        node.runsAlong = family == OpFamily::Reduction && !isa<ReductionInterface>(op);
        if (llvm::is_contained({OpFamily::Contraction, OpFamily::Convolution, OpFamily::Pooling, OpFamily::Attention},
                               family) ||
            isa<ScatterInterface>(op))
          node.fusable = false;
      }
      if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
        int64_t rank = transpose.getPermutation().size();
        if (rank && transpose.getPermutation().back() != rank - 1)
          node.fusable = false;
      }
    }
    owner[&op] = nodes.size();
    nodes.push_back(std::move(node));
  }
}

unsigned FusionGroups::nodeOf(Operation *op) { return owner.lookup(block.findAncestorOpInBlock(*op)); }

void FusionGroups::buildGraph() {
  std::vector<solve::MergingGraph::Edge> edges;
  for (Operation &op : block) {
    const unsigned node = owner.lookup(&op);
    for (Operation *user : op.getUsers())
      edges.emplace_back(node, nodeOf(user));
    if (auto found = updatesAfter.find(&op); found != updatesAfter.end()) {
      nodes[node].waited = true;
      for (Operation *update : found->second)
        edges.emplace_back(node, nodeOf(update));
    }
  }
  graph.emplace(nodes.size(), edges);
}

/// Groups that read `node`'s results, ascending, without itself.
SmallVector<unsigned> FusionGroups::consumersOf(unsigned node) {
  if (!nodes[node].waited)
    return successorsOf(node);
  SmallVector<unsigned> consumers;
  for (Operation *op : nodes[node].ops)
    for (Operation *user : op->getUsers())
      if (unsigned consumer = nodeOf(user); consumer != node)
        consumers.push_back(consumer);
  llvm::sort(consumers);
  consumers.erase(llvm::unique(consumers), consumers.end());
  return consumers;
}

/// Groups that must come after `node`, ascending: its readers, and updates of what it reads.
SmallVector<unsigned> FusionGroups::successorsOf(unsigned node) {
  auto successors = graph->getSuccessors(node);
  return SmallVector<unsigned>(successors.begin(), successors.end());
}

bool FusionGroups::hasPathThroughOthers(unsigned from, unsigned to) {
  return graph->hasPathThroughOthers(from, to, to);
}

/// Whether `reader` comes after another group that comes after `from`, on a path that does not lead through
/// `without`.
bool FusionGroups::waitsFor(unsigned reader, unsigned from, unsigned without) {
  return graph->hasPathThroughOthers(from, reader, without);
}

/// Whether an op that reads `value` or a view of it is such a one.
static bool anyReader(Value value, function_ref<bool(Operation *)> isSuch) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    return StepStorage::isView(user) ? anyReader(user->getResult(0), isSuch) : isSuch(user);
  });
}

/// Whether a group of the backward pass besides `backward` reads `root` or a view of it.
bool FusionGroups::isReadLater(Value root, unsigned backward) {
  auto [known, isNew] = laterReaders.try_emplace(root);
  SmallVectorImpl<Operation *> &readers = known->second;
  if (isNew)
    anyReader(root, [&](Operation *reader) {
      readers.push_back(reader);
      return false;
    });
  for (size_t i = 0; i < readers.size();) {
    const unsigned node = nodeOf(readers[i]);
    if (nodes[node].forward) {
      // It stays there: groups of the backward pass join the forward pass, and none leaves it.
      readers[i] = readers.back();
      readers.pop_back();
    } else if (node != backward) {
      return true;
    } else {
      ++i;
    }
  }
  return false;
}

/// Bytes that stay until the backward pass where `backward` reads `value` there: its own, or those of the values that
/// few elementwise ops make it of. `seen` are counted already.
uint64_t FusionGroups::bytesToKeep(Value value, unsigned backward, llvm::SmallDenseSet<Value> &seen) {
  Value root = StepStorage::getRoot(value);
  Operation *source = root.getDefiningOp();
  if (!source || source->getBlock() != &block || source->hasTrait<OpTrait::ConstantLike>() ||
      !nodes[nodeOf(source)].forward || !seen.insert(root).second)
    return 0;
  // What others of the backward pass read is kept in any case.
  if (isReadLater(root, backward))
    return 0;
  const uint64_t bytes = getTensorBytes(root.getType()).value_or(0);
  if (!source->hasTrait<OpTrait::Elementwise>() && !repeatsElements(source))
    return bytes;
  uint64_t made = 0;
  for (Value operand : source->getOperands())
    made += bytesToKeep(operand, backward, seen);
  return std::min(bytes, made);
}

/// Whether more would wait for the backward pass if `backward`, whose ops only that needs, were computed in `forward`.
bool FusionGroups::keepsMore(unsigned forward, unsigned backward) {
  uint64_t before = 0, after = 0;
  llvm::SmallDenseSet<Value> seen;
  SmallVector<Value> handedOn;
  for (Operation *op : nodes[backward].ops) {
    for (Value operand : op->getOperands())
      before += bytesToKeep(operand, backward, seen);
    for (Value result : op->getResults()) {
      if (anyReader(result, [&](Operation *reader) { return nodeOf(reader) != backward; })) {
        handedOn.push_back(result);
        after += getTensorBytes(result.getType()).value_or(0);
      }
    }
  }
  if (after <= before)
    return false;
  return llvm::any_of(handedOn, [&](Value result) {
    return anyReader(result, [&](Operation *reader) {
      // What is only returned stays anyhow.
      const unsigned node = nodeOf(reader);
      return !reader->hasTrait<OpTrait::IsTerminator>() && node != forward && node != backward &&
             waitsFor(node, forward, backward);
    });
  });
}

/// Whether `consumer` reads `value` at its own position in `domain`.
bool FusionGroups::passesPositionwise(Value value, Operation *consumer, const FusionDomain &domain) {
  if (consumer->hasTrait<OpTrait::Elementwise>() || isUnitReshape(consumer))
    return true;
  if (isa<ReductionInterface>(consumer))
    return dropUnits(value) == domain.extents;
  if (domain.reduced.empty())
    return false;
  // A row that is picked as a whole.
  if (auto gather = dyn_cast<nn::GatherOp>(consumer); gather && isGpu)
    return value == gather.getIndices() && value != gather.getX() && gather.getAxis() == 0 &&
           dropUnits(gather.getY()) == domain.extents && dropUnits(value) == domain.keptExtents();
  auto broadcast = dyn_cast<nn::BroadcastOp>(consumer);
  if (!broadcast)
    return false;
  // From the kept dimensions back to all.
  if (dropUnits(value) != domain.keptExtents() || dropUnits(broadcast.getY()) != domain.extents)
    return false;
  SmallVector<int64_t> read;
  for (auto [i, dim] : llvm::enumerate(broadcast.getDims()))
    if (getType(value).getDimSize(i) != 1)
      read.push_back(dim);
  SmallVector<int64_t> dims = dropUnitDims(broadcast.getY(), read);
  return llvm::none_of(dims, [&](int64_t d) { return llvm::is_contained(domain.reduced, d); });
}

bool FusionGroups::edgesAgree(unsigned producer, unsigned consumer, const FusionDomain &domain) {
  for (Operation *op : nodes[consumer].ops)
    for (Value operand : op->getOperands())
      if (Operation *source = operand.getDefiningOp(); source && owner.lookup(source) == producer &&
                                                       positions.count(source) &&
                                                       !passesPositionwise(operand, op, domain))
        return false;
  return true;
}

std::optional<FusionDomain> FusionGroups::unite(unsigned a, unsigned b) {
  const FusionDomain &x = nodes[a].domain, &y = nodes[b].domain;
  if (x.extents == y.extents) {
    if (x.reduced == y.reduced || y.reduced.empty())
      return x;
    if (x.reduced.empty())
      return y;
    return std::nullopt;
  }
  if (y.reduced.empty() && !x.reduced.empty() && y.extents == x.keptExtents())
    return x;
  if (x.reduced.empty() && !y.reduced.empty() && x.extents == y.keptExtents())
    return y;
  return std::nullopt;
}

/// Whether an op of one group reads a result of the other, in either direction.
bool FusionGroups::readsFrom(unsigned group, unsigned other) {
  return llvm::is_contained(consumersOf(group), other) || llvm::is_contained(consumersOf(other), group);
}

/// Whether `producer` makes many elements of constants alone, and none but `consumer` reads them: it has none in memory
/// then, and is computed where `consumer` asks for it, whatever its shape.
bool FusionGroups::isOfConstants(unsigned producer, unsigned consumer) {
  const FusionDomain &domain = nodes[producer].domain;
  return !isGpu && !domain.extents.empty() && domain.reduced.empty() && !nodes[producer].runsAlong &&
         llvm::all_of(nodes[producer].ops, [&](Operation *op) { return isMadeOfConstants(op); }) &&
         consumersOf(producer) == SmallVector<unsigned>{consumer};
}

/// Whether `producer` cuts a part out of an argument that elements of `consumer` read over and over: it has no elements
/// in memory then, only places in the argument.
bool FusionGroups::cutsForRepeats(unsigned producer, unsigned consumer) {
  const Node &a = nodes[producer];
  if (a.ops.size() != 1 || !nodes[consumer].domain.reduced.empty())
    return false;
  Operation *cut = a.ops.front();
  auto facts = dyn_cast<FactsInterface>(cut);
  return facts && facts.getFacts().family == OpFamily::Movement && cut->getNumOperands() == 1 &&
         getType(cut->getResult(0)).getNumElements() < getType(cut->getOperand(0)).getNumElements() &&
         isa<BlockArgument>(StepStorage::getRoot(cut->getOperand(0))) &&
         llvm::all_of(
             cut->getUsers(), [&](Operation *user) { return repeatsElements(user) && nodeOf(user) == consumer; });
}

bool FusionGroups::tryJoin(unsigned producer, unsigned consumer) {
  Node &a = nodes[producer], &b = nodes[consumer];
  if (!a.fusable || !b.fusable || a.ops.size() + b.ops.size() > kMaxOps)
    return false;
  // What goes along a dimension inside an element has a kernel that does so once, and no other reduction.
  if (!isGpu && ((a.runsAlong && b.runsAlong) || (a.runsAlong && !b.domain.reduced.empty()) ||
                 (b.runsAlong && !a.domain.reduced.empty())))
    return false;
  const bool isCut = cutsForRepeats(producer, consumer) || isOfConstants(producer, consumer);
  std::optional<FusionDomain> domain = isCut ? b.domain : unite(producer, consumer);
  if (!domain || (!isCut && (!edgesAgree(producer, consumer, *domain) || !edgesAgree(consumer, producer, *domain))))
    return false;
  llvm::SmallDenseSet<Value> operands, results;
  for (const Node *node : {&a, &b})
    for (Operation *op : node->ops) {
      auto isInside = [&](Operation *other) {
        unsigned at = nodeOf(other);
        return at == producer || at == consumer;
      };
      for (Value operand : op->getOperands())
        if (Operation *source = operand.getDefiningOp();
            !source || source->getBlock() != &block ||
            (!isInside(source) && !source->hasTrait<OpTrait::ConstantLike>()))
          operands.insert(operand);
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !isInside(user); }))
          results.insert(result);
    }
  if (operands.size() + results.size() > kMaxPointers)
    return false;
  // Sums over long columns take in what they add up; a sum that needs another one, and a matrix, have kernels of their
  // own.
  if (isLongColumns(*domain)) {
    const bool isChain = !a.domain.reduced.empty() && !b.domain.reduced.empty() && readsFrom(consumer, producer);
    if (isChain || llvm::any_of(results, [&](Value result) { return dropUnits(result) == domain->extents; }))
      return false;
  }
  // What is made of several whole sums stays apart: each can go along with another one of the same tensor.
  if (!isParallelEnough(*domain) && !isLongColumns(*domain) &&
      !(isWholeSum(*domain, results) && !a.domain.extents.empty() && !b.domain.extents.empty()))
    return false;
  if (hasPathThroughOthers(producer, consumer) || hasPathThroughOthers(consumer, producer))
    return false;
  if (a.forward != b.forward && (a.forward ? keepsMore(producer, consumer) : keepsMore(consumer, producer)))
    return false;
  merge(producer, consumer);
  b.domain = *domain;
  return true;
}

void FusionGroups::merge(unsigned gone, unsigned kept) {
  graph->merge(gone, kept);
  Node &a = nodes[gone], &b = nodes[kept];
  for (Operation *op : a.ops)
    owner[op] = kept;
  b.ops.append(a.ops);
  llvm::sort(b.ops, [&](Operation *x, Operation *y) { return positions[x] < positions[y]; });
  b.first = std::min(a.first, b.first);
  b.last = std::max(a.last, b.last);
  b.forward |= a.forward;
  b.waited |= a.waited;
  b.runsAlong |= a.runsAlong;
  a.ops.clear();
  a.fusable = false;
}

void FusionGroups::joinSoleReaders() {
  for (unsigned node = nodes.size(); node-- > 0;) {
    if (nodes[node].ops.empty())
      continue;
    auto consumers = consumersOf(node);
    if (consumers.size() == 1)
      tryJoin(node, consumers[0]);
  }
}

void FusionGroups::joinEarliestReaders() {
  for (unsigned start = 0; start < nodes.size(); ++start) {
    unsigned node = start;
    // The group moves on into its reader; go on from there while that works.
    while (!nodes[node].ops.empty() && nodes[node].fusable) {
      auto consumers = consumersOf(node);
      llvm::sort(consumers, [&](unsigned a, unsigned b) { return nodes[a].first < nodes[b].first; });
      auto joined = llvm::find_if(consumers, [&](unsigned consumer) { return tryJoin(node, consumer); });
      if (joined == consumers.end())
        break;
      node = *joined;
    }
  }
}

void FusionGroups::joinSiblingReductions() {
  auto visit = [&](Value value, bool wholes) {
    SmallVector<unsigned> readers;
    for (Operation *user : value.getUsers())
      if (user->getBlock() == &block && !nodes[nodeOf(user)].domain.reduced.empty())
        readers.push_back(nodeOf(user));
    llvm::sort(readers);
    readers.erase(llvm::unique(readers), readers.end());
    // Sums over columns have to wait for all the matrices that they read: those of one matrix belong together, those
    // that share a number or a row do not.
    Operation *maker = value.getDefiningOp();
    const bool isConstant = maker && maker->hasTrait<OpTrait::ConstantLike>();
    auto sharesMemory = [&](const FusionDomain &domain) {
      const bool isParallel = isParallelEnough(domain);
      // A few numbers' sum joins whatever else is reduced to one number.
      const bool isSmall = isParallel && domain.reduced.size() == domain.extents.size();
      if (dropUnits(value) == domain.extents && !isConstant && !isSmall)
        return wholes;
      return !wholes && isParallel &&
             llvm::is_contained(domain.reduced, static_cast<int64_t>(domain.extents.size()) - 1);
    };
    // Updates that share no more than a learning rate or a constant would keep two gradients alive.
    const bool isFew = isConstant || dropUnits(value).empty();
    auto updatesAny = [&](unsigned node) {
      return llvm::any_of(nodes[node].ops, [&](Operation *op) { return updates.contains(op); });
    };
    for (unsigned i = 1; i < readers.size(); ++i)
      if (!(isFew && updatesAny(readers[i - 1]) && updatesAny(readers[i])) &&
          nodes[readers[i - 1]].domain == nodes[readers[i]].domain && !nodes[readers[i - 1]].ops.empty() &&
          sharesMemory(nodes[readers[i]].domain))
        tryJoin(readers[i - 1], readers[i]);
  };
  // First those that read one matrix twice; a kernel takes only so many pointers.
  for (bool wholes : {true, false}) {
    for (BlockArgument argument : block.getArguments())
      if (getType(argument))
        visit(argument, wholes);
    for (Operation &op : block)
      for (Value result : op.getResults())
        visit(result, wholes);
  }
}

/// Topological order of the groups; among the ready ones the group that ended first in the text comes first.
void FusionGroups::reorder() {
  std::vector<unsigned> missing(nodes.size(), 0);
  for (unsigned node = 0; node < nodes.size(); ++node)
    if (!nodes[node].ops.empty())
      for (unsigned consumer : successorsOf(node))
        ++missing[consumer];
  using Entry = std::pair<unsigned, unsigned>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (unsigned node = 0; node < nodes.size(); ++node)
    if (!nodes[node].ops.empty() && missing[node] == 0)
      ready.emplace(nodes[node].last, node);
  while (!ready.empty()) {
    unsigned node = ready.top().second;
    ready.pop();
    for (Operation *op : nodes[node].ops)
      op->moveBefore(&block, block.end());
    for (unsigned consumer : successorsOf(node))
      if (--missing[consumer] == 0)
        ready.emplace(nodes[consumer].last, consumer);
  }
}

std::vector<FusionGroups::Group> FusionGroups::form() {
  if (isGpu && steps.has(FusionStep::PrepareSums))
    prepareSums(block, isGenerated);
  SmallVector<std::pair<Operation *, Operation *>> picked;
  if (steps.has(FusionStep::CloneCheapProducers)) {
    cloneCheapProducers(block, isGenerated);
    picked = clonePickedProducers(block, isGenerated);
  }
  if (Operation *parent = block.getParentOp())
    if (auto step = isa<func::FuncOp>(parent) ? cast<func::FuncOp>(parent) : parent->getParentOfType<func::FuncOp>()) {
      forwardPart.emplace(step);
      if (steps.has(FusionStep::RecomputeAfterLoss))
        recomputeAfterLoss(block, *forwardPart, isGenerated);
    }
  findUpdates();
  buildNodes();
  buildGraph();
  for (auto [maker, picks] : picked)
    merge(nodeOf(maker), nodeOf(picks));
  if (steps.has(FusionStep::JoinScatters)) {
    if (isGpu)
      joinScatters();
    joinUpdatesOfScatters();
  }
  if (steps.has(FusionStep::JoinSoleReaders))
    joinSoleReaders();
  if (steps.has(FusionStep::JoinEarliestReaders))
    joinEarliestReaders();
  if (steps.has(FusionStep::JoinSiblingReductions))
    joinSiblingReductions();
  // Sums that have joined may be all that reads a few numbers per row.
  if (isGpu && steps.has(FusionStep::JoinSoleReaders))
    joinSoleReaders();
  reorder();
  std::vector<Group> groups;
  DenseSet<unsigned> seen;
  for (Operation &op : block) {
    unsigned node = owner[&op];
    if (!nodes[node].generated || !seen.insert(node).second)
      continue;
    const FusionDomain &domain = nodes[node].domain;
    bool trailing = !domain.reduced.empty() && domain.reduced.back() == static_cast<int64_t>(domain.extents.size()) - 1;
    nn::Emitter emitter = domain.reduced.empty() ? nn::Emitter::loop
                          : trailing             ? nn::Emitter::row
                                                 : nn::Emitter::column;
    if (llvm::any_of(nodes[node].ops, llvm::IsaPred<ScatterInterface>))
      emitter = nn::Emitter::scatter;
    groups.push_back({nodes[node].ops, emitter});
  }
  return groups;
}
