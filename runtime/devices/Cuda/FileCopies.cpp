//===- FileCopies.cpp - between a GPU's memory and a file ------------------===//

#include "runtime/devices/Cuda/FileCopies.h"

#include "runtime/FileStaging.h"
#include "runtime/MemorySpaces.h"

#include <algorithm>

namespace lowtide::rt::cuda {

Status FileCopies::open(const plan::Plan &plan, const BindOptions &options, std::span<uint8_t> staging) {
  // Pinned memory begins at a page; whatever gave it, copies that pass the page cache do.
  const uint64_t skipped =
      alignToFile(reinterpret_cast<uintptr_t>(staging.data())) - reinterpret_cast<uintptr_t>(staging.data());
  staging = staging.subspan(std::min<uint64_t>(skipped, staging.size()));
  constexpr uint64_t halves = 2 * fileAlignment;
  staging = staging.first(staging.size() / halves * halves);
  if (staging.empty() && countPlannedBytes(plan, plan::Arena::FILE))
    return {StatusCode::VerifyFailed, "arenas lie in a file, and there is no staging memory through which copies pass"};
  return arenas_.open(plan, options, staging);
}

uint64_t FileCopies::countPieces(uint64_t bytes) const {
  const uint64_t piece = file()->stagedForWriting().size();
  return (bytes + piece - 1) / piece;
}

Status FileCopies::enqueueWrite(uint64_t offset, CUdeviceptr from, uint64_t bytes, CUstream stream) {
  const std::span<uint8_t> staged = file()->stagedForWriting();
  for (uint64_t done = 0; done < bytes; done += staged.size()) {
    const uint64_t piece = std::min<uint64_t>(staged.size(), bytes - done);
    LOWTIDE_CUDA(api_, driver, cuMemcpyDtoHAsync, staged.data(), from + done, piece, stream);
    LOWTIDE_TRY(enqueueHost({this, Transfer::Kind::Write, offset + done, piece}, stream));
  }
  return Status::ok();
}

Status FileCopies::enqueueRead(CUdeviceptr to, uint64_t offset, uint64_t bytes, CUstream stream) {
  const std::span<uint8_t> staged = file()->stagedForReading();
  for (uint64_t done = 0; done < bytes; done += staged.size()) {
    const uint64_t piece = std::min<uint64_t>(staged.size(), bytes - done);
    LOWTIDE_TRY(enqueueHost({this, Transfer::Kind::Read, offset + done, piece}, stream));
    LOWTIDE_CUDA(api_, driver, cuMemcpyHtoDAsync, to + done, staged.data(), piece, stream);
  }
  return Status::ok();
}

Status FileCopies::enqueuePoison(CUstream stream) {
  return file() ? enqueueHost({this, Transfer::Kind::Poison, 0, 0}, stream) : Status::ok();
}

Status FileCopies::enqueueHost(const Transfer &transfer, CUstream stream) {
  Transfer &kept = transfers_.try_emplace({transfer.kind, transfer.offset, transfer.bytes}, transfer).first->second;
  return api_.check(api_.driver.cuLaunchHostFunc(stream, execute, &kept), "cuLaunchHostFunc");
}

void FileCopies::execute(void *given) {
  const Transfer &transfer = *static_cast<Transfer *>(given);
  FileCopies &copies = *transfer.copies;
  if (copies.hasFailed_.load(std::memory_order_acquire))
    return;
  Status status = transfer.kind == Transfer::Kind::Write  ? copies.file()->writeStaged(transfer.offset, transfer.bytes)
                  : transfer.kind == Transfer::Kind::Read ? copies.file()->readStaged(transfer.offset, transfer.bytes)
                                                          : copies.arenas_.poison();
  if (status.isOk())
    return;
  const std::lock_guard<std::mutex> lock(copies.failing_);
  if (copies.failure_.isOk())
    copies.failure_ = std::move(status);
  copies.hasFailed_.store(true, std::memory_order_release);
}

Status FileCopies::failure() const {
  if (!hasFailed_.load(std::memory_order_acquire))
    return Status::ok();
  const std::lock_guard<std::mutex> lock(failing_);
  return failure_;
}

} // namespace lowtide::rt::cuda
