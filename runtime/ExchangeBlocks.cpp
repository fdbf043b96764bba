//===- ExchangeBlocks.cpp - what host and GPU hand each other per step -----===//

#include "runtime/ExchangeBlocks.h"

#include "runtime/CheckedMath.h"
#include "runtime/Verify.h"

#include <algorithm>
#include <unordered_set>

namespace lowtide::rt {

std::vector<Travel> findTravels(std::span<const BoundTensor> bindings) {
  std::unordered_set<std::string_view> parameters;
  for (const BoundTensor &binding : bindings)
    if (binding.kind == plan::Binding::PARAM)
      parameters.insert(binding.name);
  // The state "<param>.<slot>" is a parameter's; names of parameters have dots themselves.
  auto isOfParameter = [&](std::string_view name) {
    for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1))
      if (parameters.count(name.substr(0, dot)))
        return true;
    return false;
  };
  std::vector<Travel> travels;
  for (const BoundTensor &binding : bindings) {
    Travel travel = Travel::None;
    if (binding.kind == plan::Binding::BATCH || binding.kind == plan::Binding::SCALAR)
      travel = Travel::In;
    else if (binding.kind == plan::Binding::METRIC ||
             (binding.kind == plan::Binding::STATE && binding.bytes == binding.elementBytes &&
              !isOfParameter(binding.name)))
      travel = Travel::Out;
    travels.push_back(binding.bytes ? travel : Travel::None);
  }
  return travels;
}

bool BlockBytes::include(std::span<const BoundTensor> bindings) {
  // A plan takes 2^46 bytes at most.
  constexpr uint64_t most = uint64_t(1) << 46;
  const std::vector<Travel> travels = findTravels(bindings);
  Checked inBytes = exchangeAlignment, outBytes = exchangeAlignment;
  for (size_t i = 0; i < bindings.size(); ++i) {
    if (travels[i] == Travel::None)
      continue;
    if (bindings[i].bytes > most)
      return false;
    (travels[i] == Travel::In ? inBytes : outBytes) += alignUp(bindings[i].bytes, exchangeAlignment);
  }
  if (!inBytes.atMost(most) || !outBytes.atMost(most))
    return false;
  in = std::max(in, *inBytes.get());
  out = std::max(out, *outBytes.get());
  return true;
}

std::vector<BoundTensor> listBoundTensors(const plan::Entry &entry) {
  std::vector<BoundTensor> bindings;
  for (const plan::Binding &binding : entry.bindings())
    bindings.push_back({binding.kind(), binding.name(), binding.slice().bytes(), elementBytes(binding.dtype())});
  return bindings;
}

std::vector<plan::Arena> listExchangeArenas(const BlockBytes &blocks) {
  std::vector<plan::Arena> arenas;
  auto add = [&](const char *name, plan::Arena::Role role, plan::Arena::Space space, uint64_t bytes) {
    plan::Arena &arena = arenas.emplace_back();
    arena.set_name(name);
    arena.set_role(role);
    arena.set_space(space);
    arena.set_bytes(bytes);
    arena.set_alignment(exchangeAlignment);
  };
  const uint64_t in = exchangeSlots * blocks.in, out = exchangeSlots * blocks.out;
  add("exchange_in", plan::Arena::EXCHANGE_IN, plan::Arena::DEVICE, in);
  add("exchange_out", plan::Arena::EXCHANGE_OUT, plan::Arena::DEVICE, out);
  add("exchange_in_host", plan::Arena::EXCHANGE_IN, plan::Arena::HOST_PINNED, in);
  add("exchange_out_host", plan::Arena::EXCHANGE_OUT, plan::Arena::HOST_PINNED, out);
  add("staging", plan::Arena::STAGING, plan::Arena::HOST_PINNED, stagingBytes);
  return arenas;
}

void addExchangeArenas(plan::Plan &plan) {
  BlockBytes blocks;
  for (const plan::Entry &entry : plan.entries())
    (void)blocks.include(listBoundTensors(entry));
  for (const plan::Arena &arena : listExchangeArenas(blocks))
    *plan.add_arenas() = arena;
}

} // namespace lowtide::rt
