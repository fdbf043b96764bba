//===- CudnnFusion.h - graphs of several operations on the fake cuDNN ------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_FAKECUDA_CUDNNFUSION_H
#define LOWTIDE_RUNTIME_DEVICES_FAKECUDA_CUDNNFUSION_H

#include "runtime/devices/FakeCuda/CudnnDescriptor.h"

#include "runtime/calls/Attention/AttentionShape.h"

#include <span>

namespace lowtide::rt::cuda::fake {

/// A fused attention: its operations are computed one after the other, as they are written, on whole tensors of f32
/// that are rounded to their types. What the table (runtime/LibraryTable.h) declines is not taken.
class Fusion {
public:
  /// What a deterministic derivative keeps: the cotangents of the scores in 16 bits.
  uint64_t workspaceBytes() const;
  /// Tensors in memory are at `pointers`, told apart by `ids`. `workspace` is overwritten with NaN: what the real
  /// library leaves there is its own business.
  cudnnStatus_t enqueue(Stream &stream, std::span<const int64_t> ids, std::span<void *const> pointers,
                        void *workspace) const;

private:
  friend std::optional<Fusion> readFusion(const Descriptor &graph);

  enum class Kind { Pointwise, Matmul, Reduction, Reshape };
  struct Step {
    Kind kind;
    int mode = 0;                       ///< of pointwise operations and reductions
    int64_t axis = 0;                   ///< of GEN_INDEX
    int x = -1, b = -1, t = -1, y = -1; ///< tensors; matmul: a, b, –, c
  };
  using Buffers = std::vector<std::vector<float>>;

  int find(const Descriptor &operation, int name);
  bool readStep(const Descriptor &operation);
  bool isWellFormed() const;
  bool readShape();
  void runStep(const Step &step, Buffers &buffers) const;
  void runPointwise(const Step &step, Buffers &buffers) const;
  void runMatmul(const Step &step, Buffers &buffers) const;
  void runReduction(const Step &step, Buffers &buffers) const;

  std::vector<TensorView> tensors_;
  std::vector<Step> steps_;
  AttentionShape shape_;
};

/// Nothing where the graph is no attention that the fake library takes.
std::optional<Fusion> readFusion(const Descriptor &graph);

} // namespace lowtide::rt::cuda::fake

#endif // LOWTIDE_RUNTIME_DEVICES_FAKECUDA_CUDNNFUSION_H
