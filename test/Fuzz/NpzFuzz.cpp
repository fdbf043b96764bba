//===- NpzFuzz.cpp - data files against hostile bytes ----------------------===//
//
// The first byte chooses the reader: .npz archive, .npy array, idx file.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/HostArray.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace lowtide::rt;
  if (size == 0)
    return 0;
  std::span<const uint8_t> file(data + 1, size - 1);
  switch (data[0] % 4) {
  case 0:
    (void)parseNpy(file, nullptr);
    break;
  case 1:
    (void)parseIdx(file, nullptr);
    break;
  default:
    (void)parseNpz(std::span(data, size), nullptr); // the first byte is the archive's own: seeds are plain files
  }
  return 0;
}
