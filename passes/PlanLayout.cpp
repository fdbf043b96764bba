//===- PlanLayout.cpp - where bound tensors lie ---------------------------===//
//
// A cursor per arena; the order of visits is the order of addresses.
//
//===----------------------------------------------------------------------===//
#include "PlanLayout.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/RuntimeQuery/ExchangeArenas.h"
#include "lowtide/Solve/Packing/Packing.h"

using namespace mlir;
using namespace lowtide;

enum : unsigned { ParamsArena, StateArena, IOArena };

std::optional<BindingFacts> BindingFacts::get(Attribute binding) {
  auto bound = dyn_cast_or_null<BindingInterface>(binding);
  if (!bound)
    return std::nullopt;
  return BindingFacts{static_cast<plan::BindingKind>(bound.getBindingKind()),
                      bound.getName(),
                      bound.getInitialValue(),
                      bound.isFromFile(),
                      bound.getBatchDim(),
                      bound.isPending()};
}

Attribute PlanLayout::getKey(const BindingFacts &facts, Type type) {
  if (facts.isPersistent())
    return facts.name;
  Builder b(type.getContext());
  return b.getArrayAttr({b.getI64IntegerAttr(int64_t(facts.kind)), facts.name, TypeAttr::get(type)});
}

LogicalResult PlanLayout::place(const BindingFacts &facts, Type type, unsigned arena, func::FuncOp entry) {
  uint64_t bytes = *getTensorBytes(type);
  auto [it, fresh] = places.try_emplace(getKey(facts, type), Place{type, arena, arenas[arena].bytes});
  if (!fresh) {
    if (it->second.type != type)
      return entry.emitError() << facts.name << " has type " << type << ", in another entry " << it->second.type;
    return success();
  }
  if (bytes > (uint64_t(1) << 46) || arenas[arena].bytes > (uint64_t(1) << 46))
    return entry.emitError() << "bound tensors need more than 2^46 bytes at " << facts.name;
  arenas[arena].bytes = solve::alignTo(arenas[arena].bytes + bytes, arenas[arena].alignment);
  if (facts.fromFile)
    arenas[arena].imageBytes = arenas[arena].bytes;
  return success();
}

FailureOr<PlanLayout> PlanLayout::compute(ArrayRef<func::FuncOp> entries, const TargetInfo &target) {
  PlanLayout layout;
  layout.arenas = {{plan::ArenaRole::Params, "params"}, {plan::ArenaRole::State, "state"}, {plan::ArenaRole::IO, "io"}};

  // Visits arguments in order; `pick` says which arena takes one now.
  auto visit = [&](auto pick) -> LogicalResult {
    for (func::FuncOp entry : entries)
      for (BlockArgument arg : entry.getArguments()) {
        unsigned number = arg.getArgNumber();
        std::optional<BindingFacts> facts = BindingFacts::get(entry.getArgAttr(number, train::bindingAttrName));
        if (!facts || facts->isResult())
          return entry.emitError("argument ") << number << " has no binding that an argument may have";
        if (!getTensorBytes(arg.getType()))
          return entry.emitError("argument ") << number << " is no static tensor of numbers";
        std::optional<unsigned> arena = pick(*facts, arg.getType(), entry.getArgAttr(number, train::groupAttrName));
        if (arena && failed(layout.place(*facts, arg.getType(), *arena, entry)))
          return failure();
      }
    return success();
  };

  // Groups in the order in which they are met; parameters without one come first.
  llvm::SetVector<Attribute> groups;
  groups.insert(Attribute());
  // Where parameters and optimizer state lie, in the memory that the type says.
  auto pickLasting = [&](plan::ArenaRole role, Type type) {
    const Space space = getSpace(type);
    return space == Space::Device ? (role == plan::ArenaRole::Params ? ParamsArena : StateArena)
                                  : layout.getOther(role, space);
  };
  if (failed(visit([&](const BindingFacts &facts, Type, Attribute group) -> std::optional<unsigned> {
        if (facts.kind == plan::BindingKind::Param)
          groups.insert(group);
        return std::nullopt;
      })))
    return failure();
  for (Attribute current : groups)
    if (failed(visit([&](const BindingFacts &facts, Type type, Attribute group) -> std::optional<unsigned> {
          if (facts.kind != plan::BindingKind::Param || group != current)
            return std::nullopt;
          return pickLasting(plan::ArenaRole::Params, type);
        })))
      return failure();
  if (failed(visit([&](const BindingFacts &facts, Type type, Attribute) -> std::optional<unsigned> {
        if (facts.kind == plan::BindingKind::Param)
          return std::nullopt;
        switch (facts.getComponent()) {
        case MemoryComponent::Parameter:
          return pickLasting(plan::ArenaRole::Params, type);
        case MemoryComponent::State:
          return pickLasting(plan::ArenaRole::State, type);
        default:
          return IOArena;
        }
      })))
    return failure();
  for (func::FuncOp entry : entries)
    for (unsigned i = 0; i < entry.getNumResults(); ++i) {
      std::optional<BindingFacts> facts = BindingFacts::get(entry.getResultAttr(i, train::bindingAttrName));
      if (facts && facts->kind == plan::BindingKind::Metric &&
          failed(layout.place(*facts, entry.getResultTypes()[i], IOArena, entry)))
        return failure();
    }
  layout.numBound = layout.arenas.size();
  if (target.isGpu() && failed(layout.addExchange(entries)))
    return failure();
  return layout;
}

unsigned PlanLayout::getOther(plan::ArenaRole role, Space space) {
  auto *found = llvm::find_if(
      arenas, [&](const Arena &arena) { return arena.role == role && arena.space == plan::ArenaSpace(space); });
  if (found == arenas.end()) {
    arenas.push_back({role, (plan::stringifyArenaRole(role) + "_" + getSpaceName(space)).str(), 0, 0,
                      plan::ArenaSpace(space), getAlignment(space)});
    found = &arenas.back();
  }
  return unsigned(found - arenas.begin());
}

LogicalResult PlanLayout::addExchange(ArrayRef<func::FuncOp> entries) {
  ExchangeArenas exchange;
  for (func::FuncOp entry : entries) {
    for (BlockArgument arg : entry.getArguments())
      if (auto facts = BindingFacts::get(entry.getArgAttr(arg.getArgNumber(), train::bindingAttrName)))
        exchange.addBinding(facts->kind, facts->name.getValue(), cast<RankedTensorType>(arg.getType()));
    for (auto [i, type] : llvm::enumerate(entry.getResultTypes()))
      if (auto facts = BindingFacts::get(entry.getResultAttr(i, train::bindingAttrName));
          facts && facts->kind == plan::BindingKind::Metric)
        exchange.addBinding(facts->kind, facts->name.getValue(), cast<RankedTensorType>(type));
    if (failed(exchange.endEntry()))
      return entry.emitError("its batch arrays and metrics take more than 2^46 bytes");
  }
  for (const RuntimeArena &arena : exchange.list())
    arenas.push_back({arena.role, arena.name, arena.bytes, /*imageBytes=*/0, arena.space, arena.alignment});
  return success();
}

StaticBytes PlanLayout::getStaticBytes() const {
  StaticBytes bytes;
  bytes.parameters = arenas[ParamsArena].bytes;
  bytes.state = arenas[StateArena].bytes;
  bytes.batch = arenas[IOArena].bytes;
  for (const Arena &arena : getRuntimeArenas())
    bytes.exchange += arena.space == plan::ArenaSpace::Device ? arena.bytes : 0;
  return bytes;
}

uint64_t PlanLayout::getBoundBytes(Space space) const {
  uint64_t bytes = 0;
  for (const Arena &arena : getBoundArenas())
    bytes += arena.space == plan::ArenaSpace(space) ? arena.bytes : 0;
  return bytes;
}

plan::SliceAttr PlanLayout::getSlice(const BindingFacts &facts, Type type, uint64_t value) const {
  const Place &place = places.at(getKey(facts, type));
  return plan::SliceAttr::get(type.getContext(), FlatSymbolRefAttr::get(type.getContext(), arenas[place.arena].name),
                              place.offset, *getTensorBytes(type), value);
}
