//===- Sha256.h - the digest of sections and checkpoint files --------------===//
#ifndef LOWTIDE_RUNTIME_SHA256_H
#define LOWTIDE_RUNTIME_SHA256_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace lowtide::rt {

using Digest = std::array<uint8_t, 32>;

/// SHA-256 (FIPS 180-4) of a stream of bytes. Uses the processor's SHA instructions where there are any.
class Sha256 {
public:
  Sha256();
  void update(const void *data, size_t bytes);
  /// The digest of everything so far; the object must not be used afterwards.
  Digest finish();

  static Digest of(const void *data, size_t bytes);

private:
  uint32_t state_[8];
  uint8_t block_[64];
  size_t filled_ = 0;
  uint64_t total_ = 0;
};

/// Lower-case hexadecimal.
std::string toHex(const Digest &digest);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_SHA256_H
