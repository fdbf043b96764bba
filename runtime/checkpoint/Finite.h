//===- Finite.h - whether what a step keeps is finite ----------------------===//
#ifndef LOWTIDE_RUNTIME_CHECKPOINT_FINITE_H
#define LOWTIDE_RUNTIME_CHECKPOINT_FINITE_H

#include "runtime/Session.h"

#include <optional>
#include <string>

namespace lowtide::rt {

/// An element that is NaN or infinite.
struct NotFinite {
  std::string tensor;
  plan::Binding::Kind kind;
  uint64_t element = 0; ///< in the order in which it is stored
  double value = 0;

  /// "parameter 'fc.weight' holds nan (element 17)".
  std::string str() const;
};

/// The first element of `bytes` bytes that is not finite; nothing for integers.
std::optional<uint64_t> firstNotFinite(plan::DType dtype, const void *data, uint64_t bytes);
/// Whether a tensor has such elements from the start, and so may keep them: a bound that begins as infinity.
bool startsNotFinite(const Artifact &artifact, const plan::Binding &binding);
/// The first parameter or state whose values, as the host sees them, are not finite. What starts so is left out;
/// `withNan`: unless it is NaN, which no bound is.
Expected<std::optional<NotFinite>> findNotFinite(const Session &session, bool withNan = false);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CHECKPOINT_FINITE_H
