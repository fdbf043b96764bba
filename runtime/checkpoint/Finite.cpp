//===- Finite.cpp - whether what a step keeps is finite --------------------===//

#include "runtime/checkpoint/Finite.h"

#include "runtime/Element.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace lowtide::rt {
namespace {

/// All bits of the exponent set: NaN or infinite. Blocks, so that the search for one does not keep a loop from vectors.
template <typename Word, Word exponent> std::optional<uint64_t> search(const void *data, uint64_t bytes) {
  const auto *at = static_cast<const uint8_t *>(data);
  const uint64_t count = bytes / sizeof(Word);
  constexpr uint64_t block = 1024;
  auto load = [&](uint64_t i) {
    Word word;
    std::memcpy(&word, at + i * sizeof(Word), sizeof word);
    return word;
  };
  for (uint64_t begin = 0; begin < count; begin += block) {
    const uint64_t end = std::min(count, begin + block);
    Word found = 0;
    for (uint64_t i = begin; i < end; ++i)
      found |= static_cast<Word>((load(i) & exponent) == exponent);
    if (found)
      for (uint64_t i = begin; i < end; ++i)
        if ((load(i) & exponent) == exponent)
          return i;
  }
  return std::nullopt;
}

} // namespace

std::optional<uint64_t> firstNotFinite(plan::DType dtype, const void *data, uint64_t bytes) {
  switch (dtype) {
  case plan::F64:
    return search<uint64_t, 0x7ff0000000000000>(data, bytes);
  case plan::F32:
    return search<uint32_t, 0x7f800000>(data, bytes);
  case plan::F16:
    return search<uint16_t, 0x7c00>(data, bytes);
  case plan::BF16:
    return search<uint16_t, 0x7f80>(data, bytes);
  default:
    return std::nullopt;
  }
}

bool startsNotFinite(const Artifact &artifact, const plan::Binding &binding) {
  if (!binding.from_image())
    return !std::isfinite(binding.initial_value());
  // Of halves the upper one says so, whose binding is the plan's own.
  const plan::Binding *own = &binding;
  for (const plan::Entry &entry : artifact.plan().entries())
    for (const plan::Binding &each : entry.bindings())
      if (each.kind() == binding.kind() && each.name() == binding.name())
        own = &each;
  const plan::Slice &slice = own->slice();
  uint64_t before = 0;
  for (uint32_t arena = 0; arena < slice.arena(); ++arena)
    before += artifact.plan().arenas(static_cast<int>(arena)).image_bytes();
  if (before + slice.offset() + slice.bytes() > artifact.params().size())
    return false;
  return firstNotFinite(own->dtype(), artifact.params().data() + before + slice.offset(), slice.bytes()).has_value();
}

/// Of a tensor what is in memory at once: whole elements.
static constexpr uint64_t pieceBytes = uint64_t(1) << 24;

Expected<std::optional<NotFinite>> findNotFinite(const Session &session, bool withNan) {
  for (const Tensor &tensor : session.persistent()) {
    const plan::Binding &binding = *tensor.binding;
    if (binding.kind() == plan::Binding::CONSTANT)
      continue;
    if (!tensor.isWhole())
      LOWTIDE_TRY(tensor.bring(HostAccess::Read));
    std::vector<uint8_t> room;
    const std::span<const uint8_t> numbers = tensor.view(room);
    for (uint64_t begin = 0; begin < numbers.size(); begin += pieceBytes) {
      const std::span<const uint8_t> piece = numbers.subspan(begin, std::min(pieceBytes, numbers.size() - begin));
      if (tensor.isWhole())
        LOWTIDE_TRY(session.bring(piece, HostAccess::Read));
      const uint64_t size = elementBytes(binding.dtype());
      if (std::optional<uint64_t> at = firstNotFinite(binding.dtype(), piece.data(), piece.size())) {
        const double value = loadElement(binding.dtype(), piece.data() + *at * size);
        if ((withNan && std::isnan(value)) || !startsNotFinite(session.artifact(), binding))
          return std::optional(NotFinite{binding.name(), binding.kind(), begin / size + *at, value});
      }
      if (tensor.isWhole())
        LOWTIDE_TRY(session.leave(piece));
    }
    if (!tensor.isWhole())
      LOWTIDE_TRY(session.leave(tensor));
  }
  return std::optional<NotFinite>();
}

std::string NotFinite::str() const {
  char text[64];
  std::snprintf(text, sizeof text, "%g (element %llu)", std::isnan(value) ? std::fabs(value) : value,
                static_cast<unsigned long long>(element));
  return std::string(kind == plan::Binding::PARAM ? "parameter '" : "state '") + printable(tensor) + "' holds " + text;
}

} // namespace lowtide::rt
