//===- OriginalNumbers.h - f32 numbers of weights held in 16 bits ----------===//
//
// A frozen weight that a step only reads rounded lies in memory in 16 bits. Its f32 numbers are never computed with,
// but checkpoints and exports hold them: they stay in the artifact (section `originals`) and are read there.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_ORIGINALNUMBERS_H
#define LOWTIDE_RUNTIME_ORIGINALNUMBERS_H

#include "plan.pb.h"
#include "runtime/Status.h"

#include <cstdint>
#include <span>
#include <vector>

namespace lowtide::rt {

/// The binding of every ParameterSource that says `keeps_original`, in the order of the plan's sources: in this order
/// the section `originals` has the f32 numbers of those that are `from_image`. Refuses a source without a CONSTANT
/// binding of bf16 or f16.
Expected<std::vector<const plan::Binding *>> findKeptOriginals(const plan::Plan &plan);

/// Bytes of the f32 numbers.
inline uint64_t originalBytes(const plan::Binding &narrow) { return 2 * narrow.slice().bytes(); }

/// The f32 numbers of one weight.
class OriginalNumbers {
public:
  /// `narrow`: the weight in 16 bits. `held`: its numbers, which must outlive this; empty where none are known yet.
  OriginalNumbers(const plan::Binding &narrow, std::span<const uint8_t> held);

  /// As `narrow`, of f32.
  const plan::Binding &binding() const { return binding_; }
  /// The numbers of `held` again.
  void reset();
  /// The f32 numbers of what lies in memory at `narrow`: those that are known, and, where they are not what was rounded
  /// to it, the 16-bit ones. `room` holds them where they had to be put together.
  std::span<const uint8_t> read(const uint8_t *narrow, std::vector<uint8_t> &room) const;
  /// Takes `from`, of the f32 binding's bytes, and rounds it into `narrow`.
  void write(const uint8_t *from, uint8_t *narrow);
  /// What of the numbers lies in the artifact, which may leave memory.
  std::span<const uint8_t> held() const { return held_; }

private:
  plan::Binding binding_;
  plan::DType narrowType_;
  std::span<const uint8_t> held_;
  std::vector<uint8_t> own_; ///< others than `held`
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_ORIGINALNUMBERS_H
