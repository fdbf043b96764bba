//===- CudnnOperations.cpp - operations over tensors of one cuDNN graph ----===//

#include "runtime/devices/Cuda/CudnnOperations.h"

#include <utility>

namespace lowtide::rt::cuda {

namespace {

GraphTensor::Dims packed(const GraphTensor::Dims &dims) {
  GraphTensor::Dims strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i-- > 0;)
    strides[i] = strides[i + 1] * dims[i + 1];
  return strides;
}

} // namespace

GraphTensor CudnnOperations::tensor(cudnnDataType_t type, GraphTensor::Dims dims, GraphTensor::Dims strides,
                                    int64_t alignment, bool isVirtual, bool isByValue) {
  GraphTensor made;
  made.strides = strides.empty() ? packed(dims) : std::move(strides);
  made.dims = std::move(dims);
  if (status_.isOk())
    keep(builder_.tensor(nextId_++, type, made.dims, made.strides, alignment, isVirtual, isByValue, made.descriptor));
  return made;
}

GraphTensor CudnnOperations::real(cudnnDataType_t type, GraphTensor::Dims dims, CUdeviceptr address,
                                  GraphTensor::Dims strides) {
  ids_.push_back(nextId_);
  addresses_.push_back(address);
  return tensor(type, std::move(dims), std::move(strides), alignmentOf(address), false, false);
}

GraphTensor CudnnOperations::number(const float *value) {
  ids_.push_back(nextId_);
  addresses_.push_back(reinterpret_cast<CUdeviceptr>(value));
  return tensor(CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {}, sizeof(float), false, true);
}

GraphTensor CudnnOperations::inside(GraphTensor::Dims dims, cudnnDataType_t type, GraphTensor::Dims strides) {
  return tensor(type, std::move(dims), std::move(strides), 16, true, false);
}

void CudnnOperations::add(cudnnBackendDescriptorType_t type, std::initializer_list<Part> parts) {
  auto make = [&]() -> Status {
    LOWTIDE_TRY(status_);
    cudnnBackendDescriptor_t operation = nullptr;
    LOWTIDE_TRY(builder_.create(type, operation));
    for (const Part &part : parts)
      LOWTIDE_TRY(builder_.set(operation, part.name, CUDNN_TYPE_BACKEND_DESCRIPTOR, part.value));
    LOWTIDE_TRY(builder_.finalize(operation));
    operations_.push_back(operation);
    return Status::ok();
  };
  keep(make());
}

cudnnBackendDescriptor_t CudnnOperations::pointwiseMode(cudnnPointwiseMode_t mode, cudnnDataType_t math, int64_t axis) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  auto make = [&]() -> Status {
    LOWTIDE_TRY(status_);
    LOWTIDE_TRY(builder_.create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, descriptor));
    LOWTIDE_TRY(builder_.set(descriptor, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode));
    LOWTIDE_TRY(builder_.set(descriptor, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, math));
    if (axis >= 0)
      LOWTIDE_TRY(builder_.set(descriptor, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis));
    return builder_.finalize(descriptor);
  };
  keep(make());
  return descriptor;
}

void CudnnOperations::pointwise(cudnnPointwiseMode_t mode, const GraphTensor &x, const GraphTensor &b,
                                const GraphTensor &y) {
  add(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
      {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwiseMode(mode, CUDNN_DATA_FLOAT)},
       {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.descriptor},
       {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b.descriptor},
       {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y.descriptor}});
}

GraphTensor CudnnOperations::pointwise(cudnnPointwiseMode_t mode, const GraphTensor &x, const GraphTensor &b) {
  GraphTensor y = inside(x.dims);
  pointwise(mode, x, b, y);
  return y;
}

GraphTensor CudnnOperations::pointwise(cudnnPointwiseMode_t mode, const GraphTensor &x) {
  GraphTensor y = inside(x.dims);
  add(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
      {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwiseMode(mode, CUDNN_DATA_FLOAT)},
       {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.descriptor},
       {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y.descriptor}});
  return y;
}

GraphTensor CudnnOperations::selectCausal(const GraphTensor &x, const GraphTensor &otherwise) {
  GraphTensor index[2];
  for (int64_t i : {0, 1}) {
    index[i] = inside(x.dims, CUDNN_DATA_INT32);
    add(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
        {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
          pointwiseMode(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, 2 + i)},
         {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.descriptor},
         {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, index[i].descriptor}});
  }
  GraphTensor visible = inside(x.dims, CUDNN_DATA_BOOLEAN), y = inside(x.dims);
  add(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
      {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwiseMode(CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN)},
       {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, index[0].descriptor},
       {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, index[1].descriptor},
       {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, visible.descriptor}});
  add(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
      {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwiseMode(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT)},
       {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.descriptor},
       {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, otherwise.descriptor},
       {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, visible.descriptor},
       {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y.descriptor}});
  return y;
}

void CudnnOperations::reduce(cudnnReduceTensorOp_t with, const GraphTensor &x, const GraphTensor &y) {
  cudnnBackendDescriptor_t how = nullptr;
  auto make = [&]() -> Status {
    LOWTIDE_TRY(status_);
    LOWTIDE_TRY(builder_.create(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, how));
    LOWTIDE_TRY(builder_.set(how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, with));
    LOWTIDE_TRY(builder_.set(how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT));
    return builder_.finalize(how);
  };
  keep(make());
  add(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_REDUCTION_DESC, how},
                                                     {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x.descriptor},
                                                     {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y.descriptor}});
}

void CudnnOperations::matmul(const GraphTensor &a, const GraphTensor &b, const GraphTensor &c) {
  cudnnBackendDescriptor_t how = nullptr;
  auto make = [&]() -> Status {
    LOWTIDE_TRY(status_);
    LOWTIDE_TRY(builder_.create(CUDNN_BACKEND_MATMUL_DESCRIPTOR, how));
    LOWTIDE_TRY(builder_.set(how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT));
    return builder_.finalize(how);
  };
  keep(make());
  add(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_MATMUL_DESC, how},
                                                  {CUDNN_ATTR_OPERATION_MATMUL_ADESC, a.descriptor},
                                                  {CUDNN_ATTR_OPERATION_MATMUL_BDESC, b.descriptor},
                                                  {CUDNN_ATTR_OPERATION_MATMUL_CDESC, c.descriptor}});
}

GraphTensor CudnnOperations::transpose(const GraphTensor &x, cudnnDataType_t type) {
  GraphTensor::Dims dims = x.dims, strides = x.strides;
  std::swap(dims[2], dims[3]);
  std::swap(strides[2], strides[3]);
  GraphTensor y = inside(std::move(dims), type, std::move(strides));
  add(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
      {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x.descriptor}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y.descriptor}});
  return y;
}

} // namespace lowtide::rt::cuda
