//===- SafetensorsFuzz.cpp - checkpoints against hostile bytes -------------===//
#include "runtime/checkpoint/Safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto arrays = lowtide::rt::parseSafetensors({data, size}, nullptr);
  if (arrays)
    for (const lowtide::rt::NamedArray &array : *arrays)
      if (!array.array.bytes.empty() &&
          (array.array.bytes.data() < data || array.array.bytes.data() + array.array.bytes.size() > data + size))
        __builtin_trap(); // a tensor outside its file
  return 0;
}
