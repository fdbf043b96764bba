//===- NamedRange.h - names in a profiler's timeline -----------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CUDA_NAMEDRANGE_H
#define LOWTIDE_RUNTIME_DEVICES_CUDA_NAMEDRANGE_H

namespace lowtide::rt::cuda {

/// While it lives, what this thread hands to the GPU bears the name in NVIDIA's profilers (NVTX). Costs a branch where
/// no profiler listens; one is looked for once.
class NamedRange {
public:
  /// `name` is read at once.
  explicit NamedRange(const char *name);
  ~NamedRange();
  NamedRange(const NamedRange &) = delete;
  NamedRange &operator=(const NamedRange &) = delete;
};

} // namespace lowtide::rt::cuda

#endif // LOWTIDE_RUNTIME_DEVICES_CUDA_NAMEDRANGE_H
