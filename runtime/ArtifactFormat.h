//===- ArtifactFormat.h - the bytes at the front of a `.tide` file ---------===//
//
// A fixed header, a section table, and sections that start on 4 KiB boundaries; the gaps are zero. All numbers are
// little endian. The reader and the writer share this page and nothing else. Described for people in docs/artifact.md.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_ARTIFACTFORMAT_H
#define LOWTIDE_RUNTIME_ARTIFACTFORMAT_H

#include <cstdint>

namespace lowtide::rt::format {

inline constexpr char magic[8] = {'L', 'O', 'W', 'T', 'I', 'D', 'E', '\0'};
inline constexpr uint32_t version = 1;
inline constexpr uint64_t sectionAlignment = 4096;
inline constexpr uint32_t maxSections = 16;

/// Offset 0 of the file.
struct Header {
  char magic[8];
  uint32_t version;
  uint32_t sectionCount;
  uint64_t featureBits;    ///< bits that a reader must know; none are defined yet
  uint64_t fileBytes;      ///< size of the whole file
  uint8_t tableDigest[32]; ///< SHA-256 of the 32 bytes above and of the section table
};
static_assert(sizeof(Header) == 64);

/// Follows the header, `sectionCount` times.
struct Section {
  char name[32]; ///< padded with NUL
  uint64_t offset;
  uint64_t bytes;
  uint8_t digest[32]; ///< SHA-256 of the section's bytes
};
static_assert(sizeof(Section) == 80);
static_assert(sizeof(Header) + maxSections * sizeof(Section) <= sectionAlignment);

} // namespace lowtide::rt::format

#endif // LOWTIDE_RUNTIME_ARTIFACTFORMAT_H
