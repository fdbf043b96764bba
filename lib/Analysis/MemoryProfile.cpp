//===- MemoryProfile.cpp - whose bytes are alive when ---------------------===//
//
// Storages (StepStorage) are buffers; the values that live in one after another
// are its tenants; each instruction's workspace is one more buffer.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Analysis/MemoryProfile.h"
#include "lowtide/Interfaces/BindingInterface.h"
#include "llvm/ADT/StringExtras.h"

#include <numeric>

using namespace mlir;
using namespace lowtide;

llvm::StringRef lowtide::getName(MemoryComponent component) {
  switch (component) {
  case MemoryComponent::Saved:
    return "saved activations";
  case MemoryComponent::Recomputed:
    return "recomputed values";
  case MemoryComponent::Gradient:
    return "gradients";
  case MemoryComponent::Temporary:
    return "temporaries";
  case MemoryComponent::Output:
    return "outputs";
  case MemoryComponent::Workspace:
    return "workspace";
  }
  return "";
}

std::string lowtide::getResponsiblePlace(Location loc, unsigned limit) {
  SmallVector<StringRef> names;
  SmallVector<Location> worklist{loc};
  while (!worklist.empty() && names.size() < limit) {
    Location next = worklist.pop_back_val();
    if (auto name = dyn_cast<NameLoc>(next)) {
      if (!llvm::is_contained(names, name.getName().getValue()))
        names.push_back(name.getName());
    } else if (auto fused = dyn_cast<FusedLoc>(next)) {
      for (Location inner : llvm::reverse(fused.getLocations()))
        worklist.push_back(inner);
    } else if (auto call = dyn_cast<CallSiteLoc>(next)) {
      worklist.push_back(call.getCallee());
    }
  }
  return llvm::join(names, ", ");
}

namespace {

/// Instructions of a step and its loops, what updates parameters, and where the loss is.
struct Roles {
  Roles(func::FuncOp step, const StepStorage &storage) : forward(step) {
    for (auto [i, op] : llvm::enumerate(storage.getInstructions()))
      indexOf[op] = i;
    Operation *terminator = step.getBody().front().getTerminator();
    for (auto [i, returned] : llvm::enumerate(terminator->getOperands())) {
      auto binding = dyn_cast_or_null<BindingInterface>(step.getResultAttr(i, "train.binding"));
      Operation *maker = StepStorage::getRoot(returned).getDefiningOp();
      if (binding && maker && binding.getBindingKind() == BindingKind::Param)
        for (Value operand : maker->getOperands())
          gradients.insert(StepStorage::getRoot(operand));
    }
    // The last instruction of its block that the loss needs and that also serves what comes behind the loss.
    for (Operation *op : storage.getInstructions())
      if (!forward.ops.contains(op) && !op->hasTrait<OpTrait::IsTerminator>())
        forEachRead(*op, [&](OpOperand &, Value root) {
          if (Operation *maker = root.getDefiningOp(); maker && forward.ops.contains(maker)) {
            unsigned &at = lossAt[maker->getBlock()];
            at = std::max(at, indexOf.lookup(maker));
          }
        });
    for (const StorageLoop &loop : storage.getLoops())
      if (unsigned &at = lossAt[loop.op->getBlock()]; at == loop.head)
        at = loop.end;
  }

  /// The instruction from which on a value is there.
  unsigned begin(Value value) const {
    Operation *maker = value.getDefiningOp();
    return maker ? indexOf.lookup(maker) : indexOf.lookup(value.getParentBlock()->getParentOp()) + 1;
  }
  bool isSaved(Value value, unsigned begin, unsigned end) const {
    unsigned at = lossAt.lookup(value.getParentBlock());
    return at && forward.makes(value) && begin <= at && end > at + 1;
  }

  ForwardPart forward;
  llvm::DenseMap<Operation *, unsigned> indexOf;
  llvm::DenseSet<Value> gradients;
  llvm::DenseMap<Block *, unsigned> lossAt;
};

} // namespace

FailureOr<MemoryProfile> MemoryProfile::compute(func::FuncOp step, const FactsTable &facts) {
  FailureOr<StepStorage> storage = StepStorage::compute(step, [&](Operation *op, unsigned result, unsigned operand) {
    auto known = facts.find(op);
    return known != facts.end() && known->second.mayOverwrite(result, operand);
  });
  if (failed(storage))
    return failure();
  MemoryProfile profile;
  const Roles roles(step, *storage);
  for (Operation *op : storage->getInstructions())
    profile.numRecomputed += op->hasAttr(recomputedAttrName);

  auto classify = [&](const Storage &place, Value value, unsigned begin, unsigned end) {
    if (place.kept && (!value || value == place.values.back()))
      return MemoryComponent::Output;
    Operation *maker = value ? value.getDefiningOp() : nullptr;
    if (maker && maker->hasAttr(recomputedAttrName))
      return MemoryComponent::Recomputed;
    if (value && roles.gradients.contains(value))
      return MemoryComponent::Gradient;
    if (value && roles.isSaved(value, begin, end))
      return MemoryComponent::Saved;
    return MemoryComponent::Temporary;
  };
  for (const Storage &place : storage->getStorages()) {
    if (place.kind != Storage::Kind::Transient)
      continue;
    if (place.values.empty()) {
      profile.tenants.push_back({place.bytes, place.begin, place.end, MemoryComponent::Output, {}, nullptr});
      profile.buffers.push_back({place.bytes, place.begin, place.end});
      continue;
    }
    profile.buffers.push_back({place.bytes, place.begin, place.end});
    for (auto [i, value] : llvm::enumerate(place.values)) {
      unsigned begin = i ? roles.begin(value) : place.begin;
      unsigned end = i + 1 < place.values.size() ? roles.begin(place.values[i + 1]) : place.end;
      profile.tenants.push_back(
          {place.bytes, begin, end, classify(place, value, begin, end), value, value.getDefiningOp()});
    }
  }
  for (auto [i, op] : llvm::enumerate(storage->getInstructions()))
    if (auto known = facts.find(op); known != facts.end() && known->second.workspaceBytes) {
      uint64_t bytes = known->second.workspaceBytes;
      profile.tenants.push_back({bytes, unsigned(i), unsigned(i + 1), MemoryComponent::Workspace, {}, op});
      profile.buffers.push_back({bytes, uint32_t(i), uint32_t(i + 1)});
    }

  profile.live.assign(storage->getInstructions().size() + 1, {});
  for (const MemoryTenant &tenant : profile.tenants)
    for (unsigned i = tenant.begin; i < tenant.end && i < profile.live.size(); ++i)
      profile.live[i][unsigned(tenant.component)] += solve::alignTo(tenant.bytes, 64);
  for (auto [i, live] : llvm::enumerate(profile.live)) {
    uint64_t sum = 0;
    for (uint64_t bytes : live)
      sum += bytes;
    if (sum > profile.peakBytes) {
      profile.peakBytes = sum;
      profile.peakAt = i;
    }
  }
  return profile;
}

SmallVector<const MemoryTenant *> MemoryProfile::getAlive(unsigned instruction) const {
  SmallVector<const MemoryTenant *> alive;
  for (const MemoryTenant &tenant : tenants)
    if (tenant.begin <= instruction && instruction < tenant.end)
      alive.push_back(&tenant);
  llvm::stable_sort(alive, [](const MemoryTenant *a, const MemoryTenant *b) { return a->bytes > b->bytes; });
  return alive;
}

DenseIntElementsAttr MemoryProfile::sampleLive(MLIRContext *context, unsigned limit) const {
  const size_t rows = std::min<size_t>(live.size(), limit);
  auto sum = [](const std::array<uint64_t, numMemoryComponents> &bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), uint64_t(0));
  };
  SmallVector<int64_t> numbers;
  for (size_t row = 0; row < rows; ++row) {
    auto first = live.begin() + row * live.size() / rows, last = live.begin() + (row + 1) * live.size() / rows;
    auto fullest = std::max_element(first, last, [&](const auto &a, const auto &b) { return sum(a) < sum(b); });
    llvm::append_range(numbers, *fullest);
  }
  auto type = RankedTensorType::get({int64_t(rows), numMemoryComponents}, IntegerType::get(context, 64));
  return DenseIntElementsAttr::get(type, numbers);
}
