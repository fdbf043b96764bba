//===- VerifyLaunch.cpp - launches against what their kernels state --------===//

#include "runtime/CheckedMath.h"
#include "runtime/VerifyEntry.h"
#include "runtime/Workspace.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace lowtide::rt {
namespace {

constexpr uint32_t warpThreads = 32, maxBlockThreads = 1024;

Status refuse(std::string message) { return {StatusCode::VerifyFailed, std::move(message)}; }

} // namespace

Status checkKernelTarget(const plan::Plan &plan, const plan::Kernel &kernel) {
  const uint32_t threads = kernel.threads_per_block();
  if (isGpu(plan.target()) != (threads != 0))
    return refuse((threads ? "is for a GPU" : "is for the CPU") + std::string(", the plan for '") +
                  printable(plan.target()) + "'");
  if (threads % warpThreads || threads > maxBlockThreads)
    return refuse(std::to_string(threads) + " threads in a block; it must be a multiple of 32, at most 1024");
  return Status::ok();
}

Status checkLaunch(const plan::Plan &plan, const plan::Launch &launch) {
  if (launch.kernel() >= static_cast<uint32_t>(plan.kernels_size()))
    return refuse("kernel " + std::to_string(launch.kernel()) + " does not exist");
  const plan::Kernel &kernel = plan.kernels(static_cast<int>(launch.kernel()));
  const std::string name = "kernel '" + printable(kernel.symbol()) + "'";
  if (static_cast<uint32_t>(launch.reads_size()) != kernel.reads() ||
      static_cast<uint32_t>(launch.writes_size()) != kernel.writes())
    return refuse(name + " takes " + std::to_string(kernel.reads()) + " + " + std::to_string(kernel.writes()) +
                  " operands, the launch has " + std::to_string(launch.reads_size()) + " + " +
                  std::to_string(launch.writes_size()));
  if (launch.extent() < 0 || launch.grain() < 1)
    return refuse("extent " + std::to_string(launch.extent()) + ", grain " + std::to_string(launch.grain()));
  // Cannot wrap: checkKernels.
  uint64_t scratch = kernel.scratch_bytes() * countScratchParts(launch.extent(), launch.grain(), plan.threads_max());
  if (launch.scratch().bytes() != scratch)
    return refuse("scratch of " + std::to_string(launch.scratch().bytes()) + " bytes; " + name + " needs " +
                  std::to_string(scratch));
  return Status::ok();
}

Status checkAliases(const plan::Plan &plan, const Slices &reads, const Slices &writes) {
  std::vector<const plan::Slice *> results;
  for (const plan::Slice &slice : writes) {
    LOWTIDE_TRY(checkSlice(plan, slice));
    if (slice.bytes())
      results.push_back(&slice);
  }
  auto place = [](const plan::Slice *slice) { return std::tuple(slice->arena(), slice->offset()); };
  std::sort(results.begin(), results.end(), [&](auto *a, auto *b) { return place(a) < place(b); });
  if (std::adjacent_find(results.begin(), results.end(), [](auto *a, auto *b) { return overlap(*a, *b); }) !=
      results.end())
    return refuse("two of its results overlap");
  for (const plan::Slice &slice : reads) {
    LOWTIDE_TRY(checkSlice(plan, slice));
    // Results do not overlap each other: if any overlaps the operand, the last one that begins before its end does.
    const auto past = std::make_tuple(slice.arena(), slice.offset() + slice.bytes());
    auto it = std::lower_bound(results.begin(), results.end(), past, [&](auto *a, auto &b) { return place(a) < b; });
    if (it != results.begin() && overlap(**std::prev(it), slice) && !sameRange(**std::prev(it), slice))
      return refuse("a result overlaps an operand without being the same range");
  }
  return Status::ok();
}

} // namespace lowtide::rt
