//===- ExchangeBlocks.h - what host and GPU hand each other per step -------===//
//
// Before a step its batch arrays and scalars go to the device in one block, after it metrics come back in another.
// There are blocks for two steps of each kind, on either side: one step may be under way while the host prepares the
// next. They are arenas of the plan, which the compiler sizes and the verifier checks by the rules below.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_EXCHANGEBLOCKS_H
#define LOWTIDE_RUNTIME_EXCHANGEBLOCKS_H

#include "plan.pb.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace lowtide::rt {

/// Blocks of each kind, and what parts of a block begin at multiples of: what every copy engine likes. The first part
/// holds the number of the step.
inline constexpr unsigned exchangeSlots = 2;
inline constexpr uint64_t exchangeAlignment = 256;
/// Of the pinned memory through which parameters and state travel.
inline constexpr uint64_t stagingBytes = uint64_t(8) << 20;

/// What the exchange has to know of a binding.
struct BoundTensor {
  plan::Binding::Kind kind;
  std::string_view name;
  uint64_t bytes, elementBytes;
};

enum class Travel : uint8_t { None, In, Out };

/// Which way each binding of an entry travels: batch arrays and scalars go in, metrics come out, and so does state that
/// belongs to the step as a whole (a single number, such as the loss scale, that is no slot of a parameter's state).
std::vector<Travel> findTravels(std::span<const BoundTensor> bindings);

/// Bytes of one block of each kind.
struct BlockBytes {
  uint64_t in = exchangeAlignment, out = exchangeAlignment;

  /// Grows to what an entry needs. False: its bytes are too many to count.
  [[nodiscard]] bool include(std::span<const BoundTensor> bindings);
};

/// The bindings of an entry as the exchange sees them; views of the entry.
std::vector<BoundTensor> listBoundTensors(const plan::Entry &entry);

/// The arenas of a plan for a GPU that are the runtime's own.
std::vector<plan::Arena> listExchangeArenas(const BlockBytes &blocks);

/// Adds them to a plan whose entries are complete.
void addExchangeArenas(plan::Plan &plan);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_EXCHANGEBLOCKS_H
