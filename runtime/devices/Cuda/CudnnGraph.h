//===- CudnnGraph.h - an operation graph of cuDNN, made executable ---------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CUDA_CUDNNGRAPH_H
#define LOWTIDE_RUNTIME_DEVICES_CUDA_CUDNNGRAPH_H

#include "plan.pb.h"
#include "runtime/devices/Cuda/Resources.h"

#include <span>
#include <string>
#include <vector>

namespace lowtide::rt::cuda {

/// Builds descriptors of cuDNN's backend API; they live as long as `resources`.
class CudnnBuilder {
public:
  CudnnBuilder(const Api &api, Resources &resources) : api_(api), resources_(resources) {}

  Status create(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t &descriptor);
  template <typename T>
  Status set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
             std::span<const T> values) {
    return set(descriptor, name, type, static_cast<int64_t>(values.size()), values.data());
  }
  template <typename T>
  Status set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
             const T &value) {
    return set(descriptor, name, type, 1, &value);
  }
  Status finalize(cudnnBackendDescriptor_t descriptor);

  /// A packed tensor in the order of its dimensions, at a multiple of `alignment` bytes; operands are told apart by
  /// `id`.
  Status tensor(int64_t id, cudnnDataType_t type, std::span<const int64_t> dims, int64_t alignment,
                cudnnBackendDescriptor_t &descriptor);
  /// With strides in elements; virtual: never in memory; by value: one number in the host's memory.
  Status tensor(int64_t id, cudnnDataType_t type, std::span<const int64_t> dims, std::span<const int64_t> strides,
                int64_t alignment, bool isVirtual, bool isByValue, cudnnBackendDescriptor_t &descriptor);

private:
  Status set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
             int64_t count, const void *values);

  const Api &api_;
  Resources &resources_;
};

cudnnDataType_t dataType(plan::DType dtype);
/// The largest power of two up to 256 that divides the address.
int64_t alignmentOf(CUdeviceptr address);

/// Operations with an engine chosen for them and the addresses of their operands.
class CudnnGraph {
public:
  /// Takes the first engine of the heuristics (then of the fallbacks) that is deterministic, fits the workspace and can
  /// be made into a plan. `ids` and `addresses` are parallel; `strict`: f32 operands are not rounded to TF32.
  Status prepare(const Api &api, Resources &resources, cudnnHandle_t handle,
                 std::span<const cudnnBackendDescriptor_t> operations, std::span<const int64_t> ids,
                 std::span<const CUdeviceptr> addresses, CUdeviceptr workspace, uint64_t workspaceBytes, bool strict);
  /// Takes the engine that was chosen for the same operations at other addresses, which are aligned as well.
  Status prepareLike(const CudnnGraph &other, const Api &api, Resources &resources, std::span<const int64_t> ids,
                     std::span<const CUdeviceptr> addresses, CUdeviceptr workspace);
  Status enqueue(const Api &api, cudnnHandle_t handle, CUstream stream) const;
  const std::string &choice() const { return choice_; }

private:
  Status bind(CudnnBuilder &builder, std::span<const int64_t> ids, std::span<const CUdeviceptr> addresses,
              CUdeviceptr workspace);

  cudnnBackendDescriptor_t plan_ = nullptr, variantPack_ = nullptr;
  std::string choice_;
};

} // namespace lowtide::rt::cuda

#endif // LOWTIDE_RUNTIME_DEVICES_CUDA_CUDNNGRAPH_H
