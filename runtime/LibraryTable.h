//===- LibraryTable.h - what cuBLASLt and cuDNN take -----------------------===//
//
// The written table: the compiler asks it before it plans a call (what is declined becomes a generated kernel), the
// runtime before it makes one, and the fake libraries enforce it. Every row says where it is from and whether a GPU has
// confirmed it.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_LIBRARYTABLE_H
#define LOWTIDE_RUNTIME_LIBRARYTABLE_H

#include "plan.pb.h"
#include "runtime/Status.h"

#include <cstdint>
#include <vector>

namespace lowtide::rt {

struct LibraryRule {
  const char *library;  ///< "cuBLASLt", "cuDNN"
  const char *takes;    ///< what is taken, in words
  const char *declines; ///< what a call that breaks the rule has
  const char *source;   ///< the vendor's document
  bool confirmed;       ///< on a GPU, by gpu-check
  /// By the library itself: it makes plans for what is taken, for a GPU that is described to it (`tools/dev libraries`;
  /// cuDNN 9.16 and 9.26, sm_80 and sm_90).
  bool planned = false;
};

/// Elements of an operand at most, and the largest size: kernels of the libraries count in 32 bits.
inline constexpr int64_t mostElements = (int64_t(1) << 31) - 1;

/// The rows of all kinds of calls, each kind's in the order in which they are asked. They lie with their kinds
/// (runtime/calls).
std::vector<const LibraryRule *> libraryRules();

/// The first rule that a call breaks, or null: then the library takes it. Fails where the call cannot be read. Operands
/// and results are counted only.
Expected<const LibraryRule *> declineCall(const plan::Call &call);

/// Whether the call can be read, and the CPU has a kernel for it.
bool hasCpuKernel(const plan::Call &call);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_LIBRARYTABLE_H
