//===- MemoryProfile.cpp - whose bytes are alive when ---------------------===//
//
// Storages (StepStorage) are buffers; the values that live in one after another
// are its tenants; each instruction's workspace is one more buffer.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Analysis/MemoryProfile.h"
#include "lowtide/Interfaces/BindingInterface.h"
#include "lowtide/Support/StableSort.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

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
  case MemoryComponent::Parameter:
    return "parameters";
  case MemoryComponent::State:
    return "optimizer state";
  case MemoryComponent::Batch:
    return "batch";
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

uint64_t lowtide::sumBytes(const LiveBytes &live) { return std::accumulate(live.begin(), live.end(), uint64_t(0)); }

MemoryRoles::MemoryRoles(func::FuncOp step, const StepStorage &storage) : forward(step) {
  for (auto [i, op] : llvm::enumerate(storage.getInstructions()))
    indexOf[op] = i;
  Operation *terminator = step.getBody().front().getTerminator();
  for (auto [i, returned] : llvm::enumerate(terminator->getOperands())) {
    auto binding = dyn_cast_or_null<BindingInterface>(step.getResultAttr(i, bindingAttrName));
    Operation *maker = StepStorage::getRoot(returned).getDefiningOp();
    if (StepStorage::isMove(maker))
      maker = StepStorage::getRoot(maker->getOperand(0)).getDefiningOp();
    if (binding && maker && binding.getBindingKind() == BindingKind::Param)
      for (Value operand : maker->getOperands())
        gradients.insert(StepStorage::getRoot(operand));
  }
  for (Operation *op : storage.getInstructions())
    if (!forward.ops.contains(op) && !op->hasTrait<OpTrait::IsTerminator>())
      forEachRead(*op, [&](OpOperand &, Value root) {
        if (Operation *maker = root.getDefiningOp(); maker && forward.ops.contains(maker)) {
          unsigned &at = lossAt[maker->getBlock()];
          at = std::max(at, indexOf.lookup(maker));
        }
      });
  for (const StorageLoop &loop : storage.getLoops())
    if (auto found = lossAt.find(loop.op->getBlock()); found != lossAt.end() && found->second == loop.head)
      found->second = loop.end;
}

unsigned MemoryRoles::findBegin(Value value) const {
  Operation *maker = value.getDefiningOp();
  return maker ? indexOf.lookup(maker) : indexOf.lookup(value.getParentBlock()->getParentOp()) + 1;
}

MemoryComponent MemoryRoles::classify(const Storage &place, unsigned position) const {
  if (place.values.empty() || (place.kept && position + 1 == place.values.size()))
    return MemoryComponent::Output;
  Value value = place.values[position];
  Operation *maker = value.getDefiningOp();
  if (maker && maker->hasAttr(recomputedAttrName))
    return MemoryComponent::Recomputed;
  // What the step was given is no activation, wherever it lay.
  if (StepStorage::isMove(maker) && isa<BlockArgument>(StepStorage::getRoot(maker->getOperand(0))))
    return MemoryComponent::Temporary;
  // An update may read an activation besides, one that waited in another memory among them.
  Value made = value;
  while (StepStorage::isMove(made.getDefiningOp()))
    made = StepStorage::getRoot(made.getDefiningOp()->getOperand(0));
  if (gradients.contains(value) && !forward.makes(made))
    return MemoryComponent::Gradient;
  // What is written over a value reads it: at that instruction it is still there.
  const bool isOverwritten = position + 1 < place.values.size();
  const auto loss = lossAt.find(value.getParentBlock());
  if (loss != lossAt.end() && forward.makes(value) && getBegin(place, position) <= loss->second &&
      getEnd(place, position) + isOverwritten > loss->second + 1)
    return MemoryComponent::Saved;
  return MemoryComponent::Temporary;
}

FailureOr<MemoryProfile> MemoryProfile::compute(func::FuncOp step, const FactsTable &facts, StaticBytes statics) {
  FailureOr<StepStorage> storage = StepStorage::compute(step, [&](Operation *op, unsigned result, unsigned operand) {
    auto known = facts.find(op);
    return known != facts.end() && known->second.mayOverwrite(result, operand);
  });
  if (failed(storage))
    return failure();
  MemoryProfile profile;
  profile.statics = statics;
  const MemoryRoles roles(step, *storage);
  for (const Storage &place : storage->getStorages()) {
    if (!place.isDeviceTransient())
      continue;
    if (place.values.empty()) {
      profile.tenants.push_back({place.bytes, place.begin, place.end, MemoryComponent::Output, {}, nullptr});
      profile.buffers.push_back({place.bytes, place.begin, place.end});
      continue;
    }
    profile.buffers.push_back({place.bytes, place.begin, place.end});
    for (auto [i, value] : llvm::enumerate(place.values))
      profile.tenants.push_back({place.bytes, roles.getBegin(place, i), roles.getEnd(place, i),
                                 roles.classify(place, i), value, value.getDefiningOp()});
  }
  for (auto [i, op] : llvm::enumerate(storage->getInstructions()))
    if (auto known = facts.find(op); known != facts.end() && known->second.workspaceBytes) {
      uint64_t bytes = known->second.workspaceBytes;
      profile.tenants.push_back({bytes, unsigned(i), unsigned(i + 1), MemoryComponent::Workspace, {}, op});
      profile.buffers.push_back({bytes, uint32_t(i), uint32_t(i + 1)});
    }

  profile.live.assign(storage->getInstructions().size() + 1, {});
  // What begins and ends there, then summed up; unsigned differences wrap back.
  for (const MemoryTenant &tenant : profile.tenants) {
    if (tenant.begin >= tenant.end || tenant.begin >= profile.live.size())
      continue;
    profile.live[tenant.begin][unsigned(tenant.component)] += solve::alignTo(tenant.bytes, 64);
    if (tenant.end < profile.live.size())
      profile.live[tenant.end][unsigned(tenant.component)] -= solve::alignTo(tenant.bytes, 64);
  }
  for (size_t i = 1; i < profile.live.size(); ++i)
    for (size_t component = 0; component < profile.live[i].size(); ++component)
      profile.live[i][component] += profile.live[i - 1][component];
  for (auto [i, live] : llvm::enumerate(profile.live)) {
    if (uint64_t sum = sumBytes(live); sum > profile.peakBytes) {
      profile.peakBytes = sum;
      profile.peakAt = i;
    }
  }
  return profile;
}

uint64_t MemoryProfile::getSavedBytes() const {
  uint64_t bytes = 0;
  for (const MemoryTenant &tenant : tenants)
    if (tenant.component == MemoryComponent::Saved)
      bytes += tenant.bytes;
  return bytes;
}

uint64_t MemoryProfile::getSnapshotBytes() const {
  uint64_t bytes = 0;
  for (const MemoryTenant &tenant : tenants)
    if (!tenant.value && !tenant.op && tenant.begin == 0 && tenant.end >= live.size())
      bytes += solve::alignTo(tenant.bytes, 64);
  return bytes;
}

uint64_t MemoryProfile::getBytes(MemoryComponent component, unsigned instruction) const {
  switch (component) {
  case MemoryComponent::Parameter:
    return statics.parameters;
  case MemoryComponent::State:
    return statics.state;
  case MemoryComponent::Batch:
    return statics.batch;
  default:
    return live[instruction][unsigned(component)];
  }
}

SmallVector<const MemoryTenant *> MemoryProfile::getAlive(unsigned instruction) const {
  SmallVector<const MemoryTenant *> alive;
  for (const MemoryTenant &tenant : tenants)
    if (tenant.begin <= instruction && instruction < tenant.end)
      alive.push_back(&tenant);
  sortStably(alive, [](const MemoryTenant *a, const MemoryTenant *b) { return a->bytes > b->bytes; });
  return alive;
}

std::string lowtide::describeTensor(Value value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << value.getType() << " of " << formatBytes(getTensorBytes(value.getType()).value_or(0));
  Operation *maker = StepStorage::getRoot(value).getDefiningOp();
  if (std::string place = maker ? getResponsiblePlace(maker->getLoc()) : ""; !place.empty())
    os << " from '" << place << "'";
  return text;
}

/// What the bytes are; of what was in another memory that it is loaded.
static StringRef describeRole(const MemoryTenant &tenant) {
  const bool isLoaded =
      tenant.component == MemoryComponent::Temporary && StepStorage::isMove(tenant.value.getDefiningOp());
  return isLoaded ? "loaded" : getName(tenant.component);
}

std::string lowtide::describePeak(const MemoryProfile &profile, unsigned limit) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << formatBytes(profile.getDeviceBytes());
  llvm::ListSeparator comma(", ", ": ");
  auto add = [&](MemoryComponent component) {
    if (uint64_t bytes = profile.getBytes(component, profile.getPeakAt()))
      os << comma << formatBytes(bytes) << " of " << getName(component);
  };
  // What is there all the time comes first.
  for (unsigned c = numTransientComponents; c < numMemoryComponents; ++c)
    add(MemoryComponent(c));
  if (uint64_t bytes = profile.getStatics().exchange)
    os << comma << formatBytes(bytes) << " of exchange blocks";
  for (unsigned c = 0; c < numTransientComponents; ++c)
    add(MemoryComponent(c));
  llvm::ListSeparator largest(", ", "; the largest: ");
  for (const MemoryTenant *tenant : profile.getAlive(profile.getPeakAt()))
    if (tenant->value && limit) {
      os << largest << describeTensor(tenant->value) << " (" << describeRole(*tenant) << ")";
      --limit;
    }
  return text;
}

DenseIntElementsAttr MemoryProfile::sampleLive(MLIRContext *context, unsigned limit) const {
  const size_t rows = std::min<size_t>(live.size(), limit);
  SmallVector<int64_t> numbers;
  for (size_t row = 0; row < rows; ++row) {
    auto first = live.begin() + row * live.size() / rows, last = live.begin() + (row + 1) * live.size() / rows;
    auto fullest =
        std::max_element(first, last, [](const LiveBytes &a, const LiveBytes &b) { return sumBytes(a) < sumBytes(b); });
    llvm::append_range(numbers, *fullest);
  }
  auto type = RankedTensorType::get({int64_t(rows), numTransientComponents}, IntegerType::get(context, 64));
  return DenseIntElementsAttr::get(type, numbers);
}
