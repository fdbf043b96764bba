//===- FileCopies.h - between a GPU's memory and a file --------------------===//
//
// By pieces through pinned memory: a copy of the device and a function of the host for each piece, one after the other
// on a stream, so that graphs hold them and events order them as they do every copy.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CUDA_FILECOPIES_H
#define LOWTIDE_RUNTIME_DEVICES_CUDA_FILECOPIES_H

#include "runtime/devices/Cuda/Api.h"
#include "runtime/devices/Spill/FileArenas.h"

#include <atomic>
#include <map>
#include <mutex>
#include <tuple>

namespace lowtide::rt::cuda {

class FileCopies {
public:
  explicit FileCopies(const Api &api) : api_(api) {}
  FileCopies(const FileCopies &) = delete;
  FileCopies &operator=(const FileCopies &) = delete;

  /// Makes the file, if an arena lies in one. `staging`: pinned memory.
  Status open(const plan::Plan &plan, const BindOptions &options, std::span<uint8_t> staging);
  /// Null: no arena lies in one.
  SpillFile *file() const { return arenas_.file(); }
  const FileArenas &arenas() const { return arenas_; }

  /// Enqueues a copy of device memory to the file, or back. All copies to the file of a program are on one stream, and
  /// all from it: they share pinned memory. What stays enqueued, as in a graph, is called while this lives.
  Status enqueueWrite(uint64_t offset, CUdeviceptr from, uint64_t bytes, CUstream stream);
  Status enqueueRead(CUdeviceptr to, uint64_t offset, uint64_t bytes, CUstream stream);
  /// Fills what a step finds undefined.
  Status enqueuePoison(CUstream stream);
  /// Pieces in which so many bytes are moved.
  uint64_t countPieces(uint64_t bytes) const;

  /// What went wrong first. After that no piece is moved, and what steps computed is worth nothing.
  Status failure() const;

private:
  /// What the host does for one piece.
  struct Transfer {
    FileCopies *copies;
    enum class Kind { Write, Read, Poison } kind;
    uint64_t offset, bytes;
  };
  Status enqueueHost(const Transfer &transfer, CUstream stream);
  static void execute(void *transfer);

  const Api &api_;
  FileArenas arenas_;
  /// Each at an address that stays: the same copies are enqueued again and again.
  std::map<std::tuple<Transfer::Kind, uint64_t, uint64_t>, Transfer> transfers_;
  std::atomic<bool> hasFailed_ = false;
  mutable std::mutex failing_;
  Status failure_;
};

} // namespace lowtide::rt::cuda

#endif // LOWTIDE_RUNTIME_DEVICES_CUDA_FILECOPIES_H
