//===- ExchangeArenas.cpp - arenas that are the runtime's own -------------===//

#include "lowtide/RuntimeQuery/ExchangeArenas.h"
#include "lowtide/Serialize/PlanProto.h"
#include "runtime/ExchangeBlocks.h"
#include "runtime/FileStaging.h"

using namespace mlir;
using namespace lowtide;

struct ExchangeArenas::State {
  std::vector<rt::BoundTensor> bindings;
  rt::BlockBytes blocks;
};

ExchangeArenas::ExchangeArenas() : state(std::make_unique<State>()) {}
ExchangeArenas::~ExchangeArenas() = default;

void ExchangeArenas::addBinding(plan::BindingKind kind, StringRef name, RankedTensorType type) {
  const uint64_t elementBytes = getElementBytes(type.getElementType());
  state->bindings.push_back(
      {plan::Binding::Kind(kind), name, uint64_t(type.getNumElements()) * elementBytes, elementBytes});
}

LogicalResult ExchangeArenas::endEntry() {
  const bool isCounted = state->blocks.include(state->bindings);
  state->bindings.clear();
  return success(isCounted);
}

static RuntimeArena convert(const plan::Arena &arena) {
  return {plan::ArenaRole(arena.role()), plan::ArenaSpace(arena.space()), arena.name(), arena.bytes(),
          arena.alignment()};
}

std::vector<RuntimeArena> ExchangeArenas::list() const {
  std::vector<RuntimeArena> arenas;
  for (const plan::Arena &arena : rt::listExchangeArenas(state->blocks))
    arenas.push_back(convert(arena));
  return arenas;
}

RuntimeArena lowtide::getFileStaging(uint64_t largestBytes) { return convert(rt::listFileStaging(largestBytes)); }
