//===- HostArray.h - an array read from a file -----------------------------===//
#ifndef LOWTIDE_RUNTIME_DATA_HOSTARRAY_H
#define LOWTIDE_RUNTIME_DATA_HOSTARRAY_H

#include "plan.pb.h"
#include "runtime/Status.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lowtide::rt {

/// A dense, row-major array. `bytes` holds exactly the product of `dims` elements; `owner` keeps them alive.
struct HostArray {
  plan::DType dtype = plan::DTYPE_UNSPECIFIED;
  std::vector<int64_t> dims;
  std::span<const uint8_t> bytes;
  std::shared_ptr<const void> owner;
  /// Set by readers of 8-bit images: a floating-point tensor takes value / 255.
  bool imageBytes = false;
};

/// "float32[1792, 64]", for messages.
std::string describe(plan::DType dtype, std::span<const int64_t> dims);

/// What stands before the values of a `.npy` file.
struct NpyHeader {
  plan::DType dtype = plan::DTYPE_UNSPECIFIED;
  std::vector<int64_t> dims;
  size_t size = 0;    ///< of the header itself, bytes: the values follow
  uint64_t bytes = 0; ///< of the values
};
/// Bytes that say how long a `.npy` header is, whatever its version.
constexpr size_t npyPrefix = 12;
/// Size of a header, in bytes, by its first `npyPrefix` bytes.
Expected<size_t> npyHeaderSize(std::span<const uint8_t> prefix);
/// Parses a header; what follows it is not looked at.
Expected<NpyHeader> parseNpyHeader(std::span<const uint8_t> file);

/// Parses a `.npy` file in memory: versions 1 to 3, little endian, C order; limits: header 64 KiB, rank 16.
Expected<HostArray> parseNpy(std::span<const uint8_t> file, std::shared_ptr<const void> owner);

struct NamedArray {
  std::string name;
  HostArray array;
};
/// Reads all arrays of a `.npz` archive in memory: stored or deflated members "<name>.npy", at most 10 000, inflating
/// to at most a thousand times their size. `inflatable`: bytes that members may still take once inflated, what they
/// take is subtracted; null: as many as they say.
Expected<std::vector<NamedArray>> parseNpz(std::span<const uint8_t> file, std::shared_ptr<const void> owner,
                                           uint64_t *inflatable = nullptr);
/// Bytes of memory that the machine could still give to this process.
uint64_t freeMemory();

/// Parses an idx file (MNIST): big-endian dimensions; unsigned bytes, or what else the format names.
Expected<HostArray> parseIdx(std::span<const uint8_t> file, std::shared_ptr<const void> owner);

/// Parses a shard of tokens as llm.c writes it: 256 int32 (magic 20240520 with uint16 tokens, 20240801 with uint32),
/// then the tokens. One dimension.
Expected<HostArray> parseTokenShard(std::span<const uint8_t> file, std::shared_ptr<const void> owner);

/// Takes a file as tokens without a header, uint16 or uint32, as `array.tofile` of numpy writes them.
Expected<HostArray> parseRawTokens(std::span<const uint8_t> file, plan::DType dtype, std::shared_ptr<const void> owner);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DATA_HOSTARRAY_H
