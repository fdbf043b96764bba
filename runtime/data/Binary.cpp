//===- Binary.cpp - idx files and token shards -----------------------------===//

#include "runtime/CheckedMath.h"
#include "runtime/Verify.h"
#include "runtime/data/Conversion.h"
#include "runtime/data/HostArray.h"

#include <algorithm>
#include <cstring>

namespace lowtide::rt {

Expected<HostArray> parseIdx(std::span<const uint8_t> file, std::shared_ptr<const void> owner) {
  if (file.size() < 4 || file[0] != 0 || file[1] != 0)
    return badInput("not an idx file: it does not start with two zero bytes");
  size_t rank = file[3], header = 4 + 4 * rank;
  if (rank == 0 || rank > 16 || file.size() < header)
    return badInput("idx header of rank " + std::to_string(rank) + " is out of range or truncated");
  if (file[2] != 0x08 && file[2] != 0x09)
    return badInput("idx element type " + std::to_string(file[2]) + "; unsigned and signed bytes (8, 9) are accepted");
  HostArray array;
  array.dtype = file[2] == 0x08 ? plan::U8 : plan::I8;
  array.imageBytes = file[2] == 0x08 && rank > 1;
  Checked count = 1;
  for (size_t d = 0; d < rank; ++d) {
    const uint8_t *p = file.data() + 4 + 4 * d;
    array.dims.push_back(int64_t(p[0]) << 24 | int64_t(p[1]) << 16 | int64_t(p[2]) << 8 | int64_t(p[3]));
    count *= Checked::fromSigned(array.dims.back());
  }
  if (count.get() != file.size() - header)
    return badInput("truncated or extended: " + describe(array.dtype, array.dims) + " in a file with " +
                    std::to_string(file.size() - header) + " bytes of values");
  array.bytes = file.subspan(header);
  array.owner = std::move(owner);
  return array;
}

Expected<HostArray> parseTokenShard(std::span<const uint8_t> file, std::shared_ptr<const void> owner) {
  constexpr size_t header = 256 * 4;
  if (file.size() < header)
    return badInput("a token shard of " + std::to_string(file.size()) + " bytes is shorter than its header");
  int32_t fields[3];
  std::memcpy(fields, file.data(), sizeof fields);
  HostArray array;
  if (fields[0] == 20240520 && fields[1] == 1)
    array.dtype = plan::U16;
  else if (fields[0] == 20240801 && fields[1] == 7)
    array.dtype = plan::U32;
  else
    return badInput("token shard with magic " + std::to_string(fields[0]) + ", version " + std::to_string(fields[1]) +
                    "; known are 20240520, 1 (16-bit tokens) and 20240801, 7 (32-bit tokens)");
  Checked bytes = Checked::fromSigned(fields[2]) * elementBytes(array.dtype);
  if (bytes.get() != file.size() - header)
    return badInput("truncated or extended: " + std::to_string(fields[2]) + " tokens stated, " +
                    std::to_string(file.size() - header) + " bytes follow");
  array.dims = {fields[2]};
  array.bytes = file.subspan(header);
  array.owner = std::move(owner);
  return array;
}

Expected<HostArray> parseRawTokens(std::span<const uint8_t> file, plan::DType dtype,
                                   std::shared_ptr<const void> owner) {
  const uint64_t size = elementBytes(dtype);
  if (file.size() % size)
    return badInput(std::to_string(file.size()) + " bytes are no whole number of " + describe(dtype) + " tokens");
  HostArray array;
  array.dtype = dtype;
  array.dims = {static_cast<int64_t>(file.size() / size)};
  array.bytes = file;
  array.owner = std::move(owner);
  return array;
}

} // namespace lowtide::rt
