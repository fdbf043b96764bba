//===- Verify.cpp - the parts of the proof that concern the whole plan -----===//
//
// Arenas, kernels, bindings and what the entries share; each entry is then executed on shadow memory (VerifyEntry.cpp).
//
//===----------------------------------------------------------------------===//

#include "runtime/Verify.h"

#include "lowtide-rt/StepNames.h"
#include "runtime/CheckedMath.h"
#include "runtime/ExchangeBlocks.h"
#include "runtime/FileStaging.h"
#include "runtime/MemorySpaces.h"
#include "runtime/OriginalNumbers.h"
#include "runtime/VerifyEntry.h"
#include "runtime/Workspace.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace lowtide::rt {
namespace {

/// Whether parameters and optimizer state may lie there from step to step, though no instruction computes there.
bool mayHoldLasting(plan::Arena::Space space) {
  return space == plan::Arena::FILE || space == plan::Arena::HOST_PINNED;
}

constexpr uint64_t maxArenaBytes = uint64_t(1) << 46;
constexpr int maxArenas = 64, maxEntries = 64, maxKernels = 1000000, maxRank = 16;
constexpr size_t maxNameBytes = 4096;

Status refuse(std::string message, std::string where = {}) {
  return {StatusCode::VerifyFailed, std::move(message), std::move(where)};
}

Status checkArenas(const plan::Plan &plan) {
  if (plan.arenas_size() > maxArenas)
    return refuse(std::to_string(plan.arenas_size()) + " arenas; at most " + std::to_string(maxArenas) +
                  " are accepted");
  Checked sum;
  std::set<std::string> names;
  std::set<std::pair<int, int>> taken;
  for (const plan::Arena &arena : plan.arenas()) {
    std::string where = "arena '" + printable(arena.name()) + "'";
    if (!names.insert(arena.name()).second)
      return refuse("has the name of another arena", where);
    if (arena.role() < plan::Arena::PARAMS || arena.role() > plan::Arena::STAGING)
      return refuse("has no known role", where);
    if (arena.space() < plan::Arena::DEVICE || arena.space() > plan::Arena::FILE)
      return refuse("lies in no known space", where);
    const bool outlivesSteps = arena.role() == plan::Arena::PARAMS || arena.role() == plan::Arena::STATE;
    const bool mayBeElsewhere = arena.role() == plan::Arena::TRANSIENT || isOfRuntime(arena.role()) ||
                                (outlivesSteps && mayHoldLasting(arena.space()));
    if (arena.space() != plan::Arena::DEVICE && !mayBeElsewhere)
      return refuse(
          "is for " + plan::Arena::Role_Name(arena.role()) + " and lies in space " + showSpace(arena.space()) +
              "; what bindings lie in is in space device, but for parameters and optimizer state in a file or "
              "pinned memory of the host",
          where);
    if (!taken.emplace(arena.role(), arena.space()).second && arena.role() != plan::Arena::TRANSIENT)
      return refuse("is of a role of which a plan has one arena: " + plan::Arena::Role_Name(arena.role()), where);
    const bool isGpuMemory = isGpu(plan.target()) && arena.space() != plan::Arena::FILE;
    const uint64_t mostAlignment = isGpuMemory ? exchangeAlignment : uint64_t(1) << 21;
    if (!isPowerOfTwo(arena.alignment()) || arena.alignment() > mostAlignment)
      return refuse("alignment " + std::to_string(arena.alignment()) + " is not a power of two up to " +
                        (mostAlignment < 4096 ? std::to_string(mostAlignment) : "2 MiB"),
                    where);
    if (arena.bytes() > maxArenaBytes)
      return refuse(showSize(arena.bytes()) + " bytes; at most 2^46 are accepted", where);
    if (arena.image_bytes() > arena.bytes() || (arena.image_bytes() && arena.role() != plan::Arena::PARAMS))
      return refuse("image of " + showSize(arena.image_bytes()) + " bytes does not fit", where);
    sum += arena.bytes();
  }
  if (!sum.atMost(maxArenaBytes))
    return refuse("the arenas together take more than 2^46 bytes");
  return Status::ok();
}

/// The arenas of the runtime's own are those that the bindings of a plan for a GPU ask for, to the byte; a plan for a
/// CPU has one where values wait in a file.
Status checkExchange(const plan::Plan &plan) {
  BlockBytes blocks;
  for (const plan::Entry &entry : plan.entries())
    if (!blocks.include(listBoundTensors(entry)))
      return refuse("batch arrays and metrics take more than 2^46 bytes", "entry '" + printable(entry.name()) + "'");
  std::vector<plan::Arena> due;
  if (isGpu(plan.target()))
    due = listExchangeArenas(blocks);
  else if (countPlannedBytes(plan, plan::Arena::FILE))
    due.push_back(listFileStaging());
  for (const plan::Arena &arena : plan.arenas()) {
    if (!isOfRuntime(arena.role()))
      continue;
    const std::string where = "arena '" + printable(arena.name()) + "'";
    auto same = std::find_if(due.begin(), due.end(), [&](const plan::Arena &other) {
      return other.role() == arena.role() && other.space() == arena.space();
    });
    if (same == due.end())
      return refuse("of role " + plan::Arena::Role_Name(arena.role()) + " in space " + showSpace(arena.space()) +
                        ", which the runtime does not ask for in a plan for " + printable(plan.target()),
                    where);
    // Of staging memory any size does: it is filled as often as it takes.
    if (!isGpu(plan.target()) && (arena.bytes() % (2 * fileAlignment) || arena.alignment() < fileAlignment))
      return refuse("has " + showSize(arena.bytes()) + " bytes at a multiple of " + std::to_string(arena.alignment()) +
                        "; what passes to a file goes through two halves of it, of multiples of " +
                        std::to_string(fileAlignment),
                    where);
    const bool fits = arena.role() == plan::Arena::STAGING ? arena.bytes() > 0 : arena.bytes() == same->bytes();
    if (!fits)
      return refuse("has " + showSize(arena.bytes()) + " bytes; " + std::to_string(exchangeSlots) +
                        " blocks for the bindings of its entries take " + std::to_string(same->bytes()),
                    where);
    due.erase(same);
  }
  if (!due.empty())
    return refuse("the plan has no arena of role " + plan::Arena::Role_Name(due.front().role()) + " in space " +
                  showSpace(due.front().space()) +
                  (isGpu(plan.target()) ? ", through which a GPU gets its batches"
                                        : ", through which values pass to a file and back"));
  return Status::ok();
}

Status checkKernels(const plan::Plan &plan) {
  if (plan.kernels_size() > maxKernels)
    return refuse("more than " + std::to_string(maxKernels) + " kernels");
  for (const plan::Kernel &kernel : plan.kernels()) {
    std::string where = "kernel '" + printable(kernel.symbol()) + "'";
    if (kernel.symbol().empty() || kernel.symbol().size() > maxNameBytes)
      return refuse("has no proper symbol", where);
    if (kernel.scratch_bytes() && plan.threads_max() == 0)
      return refuse("needs scratch, and the plan says threads_max = 0", where);
    if (!(Checked(kernel.scratch_bytes()) * Checked(plan.threads_max())).atMost(maxArenaBytes))
      return refuse("scratch is too large", where);
    LOWTIDE_TRY(checkFootprints(plan, kernel).at(where));
  }
  return Status::ok();
}

/// Whether the arena is of a role and in a space that hold such a binding (plan.proto says what each is for).
Status checkHome(const plan::Binding &binding, const plan::Arena &arena) {
  const bool isForParams = arena.role() == plan::Arena::PARAMS;
  const bool isForState = arena.role() == plan::Arena::STATE;
  if (arena.space() != plan::Arena::DEVICE && !((isForParams || isForState) && mayHoldLasting(arena.space())))
    return refuse("lies in arena '" + printable(arena.name()) + "' in space " + showSpace(arena.space()) +
                  "; bindings lie in space device, or parameters and optimizer state in space file or host_pinned");
  if (isPersistent(binding) && !isForParams && !isForState)
    return refuse("outlives the step but lies in an arena that does not");
  if (!isPersistent(binding) && (isForParams || isForState))
    return refuse("ends with the step but lies in arena '" + printable(arena.name()) + "', which outlives it");
  if (binding.kind() == plan::Binding::PARAM && isForState)
    return refuse("is a parameter but lies in arena '" + printable(arena.name()) + "', which holds optimizer state");
  return Status::ok();
}

Status checkBinding(const plan::Plan &plan, const plan::Binding &binding) {
  if (binding.name().empty() || binding.name().size() > maxNameBytes)
    return refuse("has no proper name");
  if (binding.kind() < plan::Binding::PARAM || binding.kind() > plan::Binding::GRADIENT)
    return refuse("has no known kind");
  uint64_t element = elementBytes(binding.dtype());
  if (!element)
    return refuse("has no known element type");
  if (binding.dims_size() > maxRank)
    return refuse("rank " + std::to_string(binding.dims_size()) + "; at most 16 is accepted");
  std::optional<uint64_t> bytes = tensorBytes(binding);
  if (!bytes)
    return refuse("its dimensions are negative or their product is too large");
  const plan::Slice &slice = binding.slice();
  if (slice.bytes() != *bytes)
    return refuse("its slice has " + showSize(slice.bytes()) + " bytes, its shape needs " + std::to_string(*bytes));
  LOWTIDE_TRY(checkSlice(plan, slice));
  if (slice.offset() % element)
    return refuse("offset " + showSize(slice.offset()) + " is not a multiple of the element size");
  if (binding.batch_dim() < -1 || binding.batch_dim() >= binding.dims_size())
    return refuse("batch dimension " + std::to_string(binding.batch_dim()) + " is out of range");
  const plan::Arena &arena = plan.arenas(static_cast<int>(slice.arena()));
  if (binding.from_image() &&
      (!isPersistent(binding) || !(Checked(slice.offset()) + slice.bytes()).atMost(arena.image_bytes())))
    return refuse("claims bytes of the image that are not there");
  LOWTIDE_TRY(checkHome(binding, arena));
  const bool isResult = binding.kind() == plan::Binding::METRIC || binding.kind() == plan::Binding::OUTPUT ||
                        binding.kind() == plan::Binding::GRADIENT;
  if (binding.kind() == plan::Binding::GRADIENT && gradientParameter(binding.name()).empty())
    return refuse("is a gradient and is not called " + std::string(gradientPrefix) + "<parameter>");
  if (!isResult && slice.value() == 0)
    return refuse("is defined at the start of the step and has value number 0");
  if (isResult && slice.value() != 0)
    return refuse("is undefined until the step writes it and has value number " + std::to_string(slice.value()) +
                  " at the start");
  if (binding.final_value() == 0)
    return refuse("has no final value number");
  bool written = binding.final_value() != slice.value();
  if (written && binding.kind() == plan::Binding::CONSTANT)
    return refuse("is a constant and is written");
  if (binding.kind() == plan::Binding::SCALAR && *bytes != element)
    return refuse("is a scalar with more than one element");
  if (binding.pending() && (binding.kind() != plan::Binding::STATE || binding.from_image()))
    return refuse("is pending and no state of its own");
  return Status::ok();
}

/// Whether both start with the same number where neither starts with bytes of the image. NaN is the same as NaN.
bool sameStart(const plan::Binding &a, const plan::Binding &b) {
  const double x = a.initial_value(), y = b.initial_value();
  return std::memcmp(&x, &y, sizeof x) == 0;
}

std::string bindingPlace(const plan::Entry &entry, const plan::Binding &binding) {
  return "entry '" + printable(entry.name()) + "', binding '" + printable(binding.name()) + "'";
}

/// Whether the binding says that an update is pending: a flag that the host clears.
bool isPendingFlag(const plan::Plan &plan, const plan::Binding &binding) {
  return binding.pending() && binding.name() == pendingFlag && binding.dtype() == plan::BOOL &&
         binding.slice().bytes() == 1 &&
         plan.arenas(static_cast<int>(binding.slice().arena())).space() == plan::Arena::DEVICE;
}

/// What steps leave for the next one, an entry takes up.
Status checkPending(const plan::Plan &plan, const std::map<std::string, const plan::Binding *> &persistent) {
  bool isDeferred = false, isFlushed = false;
  for (const auto &[name, binding] : persistent)
    isDeferred |= binding->pending();
  for (const plan::Entry &entry : plan.entries())
    for (const plan::Binding &binding : entry.bindings()) {
      if (auto same = persistent.find(binding.name());
          isPersistent(binding) && same != persistent.end() && same->second->pending() != binding.pending())
        return refuse("is pending in one entry alone", bindingPlace(entry, binding));
      isFlushed |= entry.name() == flushEntry && isPendingFlag(plan, binding);
    }
  if (isDeferred && !isFlushed)
    return refuse("state is pending, and no entry '" + std::string(flushEntry) + "' with the flag '" +
                  std::string(pendingFlag) + "' takes it up");
  return Status::ok();
}

} // namespace

bool isPersistent(const plan::Binding &binding) {
  return binding.kind() == plan::Binding::PARAM || binding.kind() == plan::Binding::STATE ||
         binding.kind() == plan::Binding::CONSTANT;
}

uint64_t elementBytes(plan::DType dtype) {
  switch (dtype) {
  case plan::F64:
  case plan::I64:
  case plan::U64:
    return 8;
  case plan::F32:
  case plan::I32:
  case plan::U32:
    return 4;
  case plan::F16:
  case plan::BF16:
  case plan::I16:
  case plan::U16:
    return 2;
  case plan::I8:
  case plan::U8:
  case plan::BOOL:
    return 1;
  default:
    return 0;
  }
}

std::optional<uint64_t> tensorBytes(const plan::Binding &binding) {
  Checked bytes = elementBytes(binding.dtype());
  for (int64_t dim : binding.dims())
    bytes *= Checked::fromSigned(dim);
  return bytes.get();
}

Status checkSlice(const plan::Plan &plan, const plan::Slice &slice) {
  if (slice.arena() >= static_cast<uint32_t>(plan.arenas_size()))
    return refuse("arena " + std::to_string(slice.arena()) + " does not exist");
  const plan::Arena &arena = plan.arenas(static_cast<int>(slice.arena()));
  if (isOfRuntime(arena.role()))
    return refuse("a slice lies in arena '" + printable(arena.name()) + "', which is the runtime's own");
  if (!(Checked(slice.offset()) + slice.bytes()).atMost(arena.bytes()))
    return refuse("bytes " + showSize(slice.offset()) + " + " + showSize(slice.bytes()) + " lie outside arena '" +
                  printable(arena.name()) + "' of " + std::to_string(arena.bytes()) + " bytes");
  return Status::ok();
}

Status verifyPlan(const plan::Plan &plan, VerifyReport *report) {
  if (plan.format_version() != planFormatVersion)
    return {StatusCode::Unsupported, "plan format " + std::to_string(plan.format_version()) + "; this runtime reads " +
                                         std::to_string(planFormatVersion) +
                                         ": compile the model again or take the runtime of that release"};
  LOWTIDE_TRY(checkArenas(plan));
  LOWTIDE_TRY(checkKernels(plan));
  if (plan.threads_max() > 4096)
    return refuse("threads_max " + std::to_string(plan.threads_max()) + "; at most 4096 is accepted");
  if (plan.entries_size() == 0 || plan.entries_size() > maxEntries)
    return refuse(std::to_string(plan.entries_size()) + " entries; between 1 and 64 are accepted");

  // What outlives a step is shared by all entries: one name, one place.
  std::map<std::string, const plan::Binding *> persistent;
  std::set<std::string> entryNames;
  for (const plan::Entry &entry : plan.entries()) {
    if (entry.name().empty() || entry.name().size() > maxNameBytes || !entryNames.insert(entry.name()).second)
      return refuse("entry name '" + printable(entry.name()) + "' is empty, too long or taken");
    // A parameter may be called like a number of the step: `step`, `lr`, `loss`.
    std::set<std::pair<int, std::string>> names;
    for (const plan::Binding &binding : entry.bindings()) {
      LOWTIDE_TRY(checkBinding(plan, binding).at(bindingPlace(entry, binding)));
      if (!names.emplace(isPersistent(binding) ? 0 : int(binding.kind()), binding.name()).second)
        return refuse("is bound twice", bindingPlace(entry, binding));
      if (!isPersistent(binding))
        continue;
      auto [it, fresh] = persistent.try_emplace(binding.name(), &binding);
      const plan::Binding &other = *it->second;
      if (!fresh && (!sameRange(other.slice(), binding.slice()) || other.dtype() != binding.dtype()))
        return refuse("lies elsewhere in another entry", bindingPlace(entry, binding));
      if (!fresh && (other.from_image() != binding.from_image() || !sameStart(other, binding)))
        return refuse("starts with another value in another entry", bindingPlace(entry, binding));
    }
  }
  LOWTIDE_TRY(checkPending(plan, persistent));
  LOWTIDE_TRY(checkExchange(plan));
  if (Expected<std::vector<const plan::Binding *>> kept = findKeptOriginals(plan); !kept)
    return kept.takeStatus();
  std::vector<const plan::Binding *> shared;
  for (const auto &[name, binding] : persistent)
    shared.push_back(binding);

  if (report)
    *report = {};
  for (int i = 0; i < plan.entries_size(); ++i) {
    VerifyReport::EntryReport entryReport;
    VerifyReport::Place place{i, {}};
    Status status = verifyEntry(plan, plan.entries(i), shared, entryReport, place);
    if (report && !place.instruction.empty())
      report->failure = place;
    LOWTIDE_TRY(std::move(status).at("entry '" + printable(plan.entries(i).name()) + "'"));
    if (report)
      report->entries.push_back(entryReport);
  }
  return Status::ok();
}

} // namespace lowtide::rt
