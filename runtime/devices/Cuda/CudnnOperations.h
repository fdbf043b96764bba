//===- CudnnOperations.h - operations over tensors of one cuDNN graph ------===//
//
// A graph of several operations, whose intermediate tensors stay on the chip ("virtual").
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CUDA_CUDNNOPERATIONS_H
#define LOWTIDE_RUNTIME_DEVICES_CUDA_CUDNNOPERATIONS_H

#include "runtime/devices/Cuda/CudnnGraph.h"

namespace lowtide::rt::cuda {

/// A tensor of four dimensions as a graph sees it.
struct GraphTensor {
  using Dims = std::vector<int64_t>;

  cudnnBackendDescriptor_t descriptor = nullptr;
  Dims dims, strides;
};

/// Collects operations in the order in which they are made, and the tensors that have addresses. The first failure is
/// kept (`status`); what is made after it means nothing.
class CudnnOperations {
public:
  CudnnOperations(const Api &api, Resources &resources) : builder_(api, resources) {}

  /// A tensor in memory, packed unless `strides` say otherwise.
  GraphTensor real(cudnnDataType_t type, GraphTensor::Dims dims, CUdeviceptr address, GraphTensor::Dims strides = {});
  /// One f32 number, read from the host when the graph is enqueued: `value` must live as long.
  GraphTensor number(const float *value);
  /// A tensor that is never in memory, in the layout `strides` (empty: packed).
  GraphTensor inside(GraphTensor::Dims dims, cudnnDataType_t type = CUDNN_DATA_FLOAT, GraphTensor::Dims strides = {});

  GraphTensor pointwise(cudnnPointwiseMode_t mode, const GraphTensor &x, const GraphTensor &b);
  GraphTensor pointwise(cudnnPointwiseMode_t mode, const GraphTensor &x);
  /// Into a tensor that is there already; x and `b` have its dimensions, or 1.
  void pointwise(cudnnPointwiseMode_t mode, const GraphTensor &x, const GraphTensor &b, const GraphTensor &y);
  /// Where row ≥ column (the last two dimensions) x, else `otherwise`.
  GraphTensor selectCausal(const GraphTensor &x, const GraphTensor &otherwise);
  /// Over the dimensions in which `y` has fewer elements.
  void reduce(cudnnReduceTensorOp_t with, const GraphTensor &x, const GraphTensor &y);
  /// c = a · b over the last two dimensions; heads of b may be shared by several of a.
  void matmul(const GraphTensor &a, const GraphTensor &b, const GraphTensor &c);
  /// x with its last two dimensions exchanged, as elements of `type`: the same memory in another order.
  GraphTensor transpose(const GraphTensor &x, cudnnDataType_t type);

  const Status &status() const { return status_; }
  std::span<const cudnnBackendDescriptor_t> operations() const { return operations_; }
  std::span<const int64_t> ids() const { return ids_; }
  std::span<const CUdeviceptr> addresses() const { return addresses_; }

private:
  struct Part {
    cudnnBackendAttributeName_t name;
    cudnnBackendDescriptor_t value;
  };
  GraphTensor tensor(cudnnDataType_t type, GraphTensor::Dims dims, GraphTensor::Dims strides, int64_t alignment,
                     bool isVirtual, bool isByValue);
  void add(cudnnBackendDescriptorType_t type, std::initializer_list<Part> parts);
  cudnnBackendDescriptor_t pointwiseMode(cudnnPointwiseMode_t mode, cudnnDataType_t math, int64_t axis = -1);
  void keep(Status status) {
    if (status_.isOk())
      status_ = std::move(status);
  }

  CudnnBuilder builder_;
  Status status_;
  int64_t nextId_ = 1;
  std::vector<cudnnBackendDescriptor_t> operations_;
  std::vector<int64_t> ids_;
  std::vector<CUdeviceptr> addresses_;
};

} // namespace lowtide::rt::cuda

#endif // LOWTIDE_RUNTIME_DEVICES_CUDA_CUDNNOPERATIONS_H
