//===- ArtifactFuzz.cpp - the loader against hostile files -----------------===//
//
// Header, section table and digests as they come. Digests stop nearly every input here; PlanFuzz goes after them.
//
//===----------------------------------------------------------------------===//
#include "runtime/Artifact.h"

#include <cstring>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::vector<uint64_t> aligned((size + 7) / 8);
  std::memcpy(aligned.data(), data, size);
  auto artifact = lowtide::rt::Artifact::fromBytes({reinterpret_cast<const uint8_t *>(aligned.data()), size});
  if (artifact)
    (void)(*artifact)->entry("train");
  return 0;
}
