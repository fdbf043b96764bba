//===- VerifyLaunch.cpp - launches against what their kernels state --------===//
//
// The verifier cannot look into machine code. A kernel states which bytes it touches (its footprint, made from the
// description that its code is made from); every launch has to be one that it states.
//
//===----------------------------------------------------------------------===//

#include "runtime/CheckedMath.h"
#include "runtime/VerifyEntry.h"
#include "runtime/Workspace.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace lowtide::rt {
namespace {

/// What the addresses of a GPU kernel's arrays are multiples of: it may load 16 bytes at once.
constexpr uint64_t gpuAlignment = 16;
constexpr uint32_t warpThreads = 32, maxBlockThreads = 1024;

using Tensors = google::protobuf::RepeatedPtrField<plan::Footprint::Tensor>;

Status refuse(std::string message) { return {StatusCode::VerifyFailed, std::move(message)}; }

Status checkTensors(const Tensors &tensors, uint32_t count, const char *what) {
  if (static_cast<uint32_t>(tensors.size()) != count)
    return refuse("its footprint has " + std::to_string(tensors.size()) + " " + what + ", the kernel " +
                  std::to_string(count));
  for (const plan::Footprint::Tensor &tensor : tensors) {
    const uint64_t element = elementBytes(tensor.dtype());
    if (!element || !(Checked(element) * Checked(tensor.elements())).get())
      return refuse(std::string("its footprint has ") + what + " of no known size");
  }
  return Status::ok();
}

/// Whether slices of these sizes are what the footprint states.
bool haveSizes(const Slices &slices, const Tensors &tensors) {
  return std::equal(slices.begin(), slices.end(), tensors.begin(), tensors.end(),
                    [](const plan::Slice &slice, const plan::Footprint::Tensor &tensor) {
                      return slice.bytes() == elementBytes(tensor.dtype()) * tensor.elements();
                    });
}

/// "512 + 64 bytes" of a launch's operands, or of a footprint's.
std::string listBytes(const Slices &slices) {
  std::string text;
  for (const plan::Slice &slice : slices)
    text += (text.empty() ? "" : " + ") + showSize(slice.bytes());
  return text.empty() ? "0" : text;
}
std::string listBytes(const Tensors &tensors) {
  std::string text;
  for (const plan::Footprint::Tensor &tensor : tensors)
    text += (text.empty() ? "" : " + ") + std::to_string(elementBytes(tensor.dtype()) * tensor.elements());
  return text.empty() ? "0" : text;
}

Status checkAlignment(const plan::Plan &plan, const Slices &slices, const Tensors &tensors, bool isGpuKernel,
                      const char *what) {
  for (int i = 0; i < slices.size(); ++i) {
    const uint64_t needed = isGpuKernel ? gpuAlignment : elementBytes(tensors[i].dtype());
    if (slices[i].offset() % needed || plan.arenas(static_cast<int>(slices[i].arena())).alignment() < needed)
      return refuse(std::string(what) + " " + std::to_string(i) + " at offset " + showSize(slices[i].offset()) +
                    " does not lie at a multiple of " + std::to_string(needed) + " bytes");
  }
  return Status::ok();
}

/// A kernel may read an operand at any time: a result lies where one does only if the footprint says so.
Status checkInPlace(const plan::Launch &launch, const plan::Footprint &stated) {
  using Place = std::tuple<uint32_t, uint64_t, int>; // arena, offset, number of the result
  std::vector<Place> results;
  for (int i = 0; i < launch.writes_size(); ++i)
    if (launch.writes(i).bytes())
      results.emplace_back(launch.writes(i).arena(), launch.writes(i).offset(), i);
  std::sort(results.begin(), results.end());
  std::vector<std::pair<uint32_t, uint32_t>> allowed;
  for (const plan::Footprint::InPlace &pair : stated.in_place())
    allowed.emplace_back(pair.result(), pair.operand());
  std::sort(allowed.begin(), allowed.end());
  for (int i = 0; i < launch.reads_size(); ++i) {
    const plan::Slice &slice = launch.reads(i);
    // Results that overlap are refused elsewhere: one begins here.
    auto it = std::lower_bound(results.begin(), results.end(), Place(slice.arena(), slice.offset(), 0));
    if (it == results.end() || !sameRange(launch.writes(std::get<2>(*it)), slice))
      continue;
    const std::pair pair(static_cast<uint32_t>(std::get<2>(*it)), static_cast<uint32_t>(i));
    if (!std::binary_search(allowed.begin(), allowed.end(), pair))
      return refuse("result " + std::to_string(pair.first) + " lies where operand " + std::to_string(i) +
                    " does, which its kernel may read after that");
  }
  return Status::ok();
}

} // namespace

Status checkFootprints(const plan::Plan &plan, const plan::Kernel &kernel) {
  const uint32_t threads = kernel.threads_per_block();
  if (isGpu(plan.target()) != (threads != 0))
    return refuse((threads ? "is for a GPU" : "is for the CPU") + std::string(", the plan for '") +
                  printable(plan.target()) + "'");
  if (threads % warpThreads || threads > maxBlockThreads)
    return refuse(std::to_string(threads) + " threads in a block; it must be a multiple of 32, at most 1024");
  if (kernel.footprints().empty())
    return refuse("states no footprint, so no launch of it can be proved: compile the model again");
  for (const plan::Footprint &footprint : kernel.footprints()) {
    if (footprint.extent() < 0 || footprint.grain() < 1)
      return refuse("its footprint has extent " + std::to_string(footprint.extent()) + ", grain " +
                    std::to_string(footprint.grain()));
    LOWTIDE_TRY(checkTensors(footprint.reads(), kernel.reads(), "operands"));
    LOWTIDE_TRY(checkTensors(footprint.writes(), kernel.writes(), "results"));
    for (const plan::Footprint::InPlace &pair : footprint.in_place())
      if (pair.result() >= kernel.writes() || pair.operand() >= kernel.reads())
        return refuse("its footprint has result " + std::to_string(pair.result()) + " in place of operand " +
                      std::to_string(pair.operand()) + "; there is no such pair");
  }
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
  for (const Slices *operands : {&launch.reads(), &launch.writes()})
    for (const plan::Slice &slice : *operands)
      LOWTIDE_TRY(checkSlice(plan, slice));
  if (launch.extent() < 0 || launch.grain() < 1)
    return refuse("extent " + std::to_string(launch.extent()) + ", grain " + std::to_string(launch.grain()));
  auto found = std::find_if(kernel.footprints().begin(), kernel.footprints().end(), [&](const plan::Footprint &stated) {
    return stated.extent() == launch.extent() && stated.grain() == launch.grain() &&
           haveSizes(launch.reads(), stated.reads()) && haveSizes(launch.writes(), stated.writes());
  });
  if (found == kernel.footprints().end()) {
    const plan::Footprint &stated = kernel.footprints(0);
    return refuse(name + " states extent " + std::to_string(stated.extent()) + " by " + std::to_string(stated.grain()) +
                  " over " + listBytes(stated.reads()) + " bytes to " + listBytes(stated.writes()) +
                  "; the launch has extent " + std::to_string(launch.extent()) + " by " +
                  std::to_string(launch.grain()) + " over " + listBytes(launch.reads()) + " bytes to " +
                  listBytes(launch.writes()));
  }
  const bool isGpuKernel = kernel.threads_per_block() != 0;
  LOWTIDE_TRY(checkAlignment(plan, launch.reads(), found->reads(), isGpuKernel, "operand"));
  LOWTIDE_TRY(checkAlignment(plan, launch.writes(), found->writes(), isGpuKernel, "result"));
  LOWTIDE_TRY(checkInPlace(launch, *found));
  // Cannot wrap: checkKernels.
  uint64_t scratch = kernel.scratch_bytes() * countScratchParts(launch.extent(), launch.grain(), plan.threads_max());
  if (launch.scratch().bytes() != scratch)
    return refuse("scratch of " + showSize(launch.scratch().bytes()) + " bytes; " + name + " needs " +
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
