//===- CudnnConv.cpp - a convolution of the plan on cuDNN -----------------===//
//
// One operation of the graph API: forward, data gradient or filter gradient on packed tensors, sums in f32. Dimensions
// are listed N C [D] H W in any case; channels last are strides.
//
//===----------------------------------------------------------------------===//

#include "runtime/calls/Conv/ConvShape.h"
#include "runtime/devices/Cuda/CudnnGraph.h"
#include "runtime/devices/Cuda/LibraryCall.h"

namespace lowtide::rt::cuda {
namespace {

enum Operand : int64_t { Input = 'x', Filter = 'w', Output = 'y' };

class ConvCall final : public LibraryCall {
public:
  ConvCall(const Api &api, cudnnHandle_t handle, const ConvShape &shape, const CallAddresses &addresses)
      : api_(api), handle_(handle), shape_(shape), addresses_(addresses) {}

  Status prepare(Resources &resources);
  Status enqueue(CUstream stream) override { return graph_.enqueue(api_, handle_, stream); }
  std::string choice() const override { return graph_.choice(); }

private:
  int64_t padEnd(size_t dim) const;
  /// Leading spatial dimensions of one are left out, except that two are kept.
  std::vector<int64_t> spatial(const ConvShape::Dims &dims) const {
    return {dims.begin() + static_cast<ptrdiff_t>(leading()), dims.end()};
  }
  size_t leading() const { return shape_.input[0] == 1 && shape_.filter[0] == 1 && shape_.output[0] == 1 ? 1 : 0; }
  std::vector<int64_t> dims(int64_t first, int64_t second, const ConvShape::Dims &rest) const {
    std::vector<int64_t> all = {first, second}, space = spatial(rest);
    all.insert(all.end(), space.begin(), space.end());
    return all;
  }
  Status tensor(CudnnBuilder &builder, int64_t id, cudnnDataType_t type, const std::vector<int64_t> &dims,
                int64_t alignment, cudnnBackendDescriptor_t &descriptor) const;

  const Api &api_;
  cudnnHandle_t handle_;
  ConvShape shape_;
  CallAddresses addresses_;
  CudnnGraph graph_;
};

Status ConvCall::tensor(CudnnBuilder &builder, int64_t id, cudnnDataType_t type, const std::vector<int64_t> &dims,
                        int64_t alignment, cudnnBackendDescriptor_t &descriptor) const {
  if (!shape_.channelsLast)
    return builder.tensor(id, type, dims, alignment, descriptor);
  std::vector<int64_t> strides(dims.size());
  int64_t step = dims[1];
  strides[1] = 1;
  for (size_t i = dims.size(); i-- > 2; step *= dims[i])
    strides[i] = step;
  strides[0] = step;
  return builder.tensor(id, type, dims, strides, alignment, false, false, descriptor);
}

/// Padding after a dimension. As much as in front where the output's size allows it: part of the engines take nothing
/// else. Otherwise no more than the last tap reaches.
int64_t ConvCall::padEnd(size_t dim) const {
  const int64_t begin = shape_.padBegin[dim], reach = (shape_.filter[dim] - 1) * shape_.dilation[dim] + 1;
  const int64_t steps = shape_.input[dim] + 2 * begin - reach;
  if (steps >= 0 && steps / shape_.stride[dim] + 1 == shape_.output[dim])
    return begin;
  return std::max<int64_t>(0, (shape_.output[dim] - 1) * shape_.stride[dim] + reach - shape_.input[dim] - begin);
}

Status ConvCall::prepare(Resources &resources) {
  using Kind = ConvShape::Kind;
  CudnnBuilder builder(api_, resources);
  CUdeviceptr x = addresses_.reads[0], w = addresses_.reads[1], y = addresses_.writes[0];
  if (shape_.kind == Kind::InputGrad)
    y = addresses_.reads[0], w = addresses_.reads[1], x = addresses_.writes[0];
  else if (shape_.kind == Kind::FilterGrad)
    x = addresses_.reads[0], y = addresses_.reads[1], w = addresses_.writes[0];
  auto type = [&](Kind result) { return dataType(shape_.kind == result ? shape_.resultDtype : shape_.dtype); };
  cudnnBackendDescriptor_t input = nullptr, filter = nullptr, output = nullptr;
  LOWTIDE_TRY(tensor(builder, Input, type(Kind::InputGrad),
                     dims(shape_.batch, shape_.groups * shape_.channels, shape_.input), alignmentOf(x), input));
  LOWTIDE_TRY(tensor(builder, Filter, type(Kind::FilterGrad),
                     dims(shape_.groups * shape_.outChannels, shape_.channels, shape_.filter), alignmentOf(w), filter));
  LOWTIDE_TRY(tensor(builder, Output, type(Kind::Forward),
                     dims(shape_.batch, shape_.groups * shape_.outChannels, shape_.output), alignmentOf(y), output));

  ConvShape::Dims post{};
  for (size_t i = 0; i < ConvShape::spatial; ++i)
    post[i] = padEnd(i);
  cudnnBackendDescriptor_t conv = nullptr, operation = nullptr;
  LOWTIDE_TRY(builder.create(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, conv));
  auto list = [&](cudnnBackendAttributeName_t name, const ConvShape::Dims &values) {
    std::vector<int64_t> numbers = spatial(values);
    return builder.set(conv, name, CUDNN_TYPE_INT64, std::span<const int64_t>(numbers));
  };
  LOWTIDE_TRY(builder.set(conv, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64,
                          static_cast<int64_t>(ConvShape::spatial - leading())));
  LOWTIDE_TRY(builder.set(conv, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT));
  LOWTIDE_TRY(
      builder.set(conv, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION));
  LOWTIDE_TRY(list(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, shape_.padBegin));
  LOWTIDE_TRY(list(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, post));
  LOWTIDE_TRY(list(CUDNN_ATTR_CONVOLUTION_DILATIONS, shape_.dilation));
  LOWTIDE_TRY(list(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, shape_.stride));
  LOWTIDE_TRY(builder.finalize(conv));

  struct Names {
    cudnnBackendDescriptorType_t operation;
    cudnnBackendAttributeName_t alpha, beta, conv, x, w, y;
  };
  static constexpr Names forward = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
  static constexpr Names data = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
  static constexpr Names weights = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
  const Names &names = shape_.kind == Kind::Forward ? forward : shape_.kind == Kind::InputGrad ? data : weights;
  LOWTIDE_TRY(builder.create(names.operation, operation));
  LOWTIDE_TRY(builder.set(operation, names.conv, CUDNN_TYPE_BACKEND_DESCRIPTOR, conv));
  LOWTIDE_TRY(builder.set(operation, names.x, CUDNN_TYPE_BACKEND_DESCRIPTOR, input));
  LOWTIDE_TRY(builder.set(operation, names.w, CUDNN_TYPE_BACKEND_DESCRIPTOR, filter));
  LOWTIDE_TRY(builder.set(operation, names.y, CUDNN_TYPE_BACKEND_DESCRIPTOR, output));
  LOWTIDE_TRY(builder.set(operation, names.alpha, CUDNN_TYPE_FLOAT, 1.0f));
  LOWTIDE_TRY(builder.set(operation, names.beta, CUDNN_TYPE_FLOAT, 0.0f));
  LOWTIDE_TRY(builder.finalize(operation));
  const int64_t ids[] = {Input, Filter, Output};
  const CUdeviceptr pointers[] = {x, w, y};
  return graph_.prepare(api_, resources, handle_, {&operation, 1}, ids, pointers, addresses_.workspace,
                        addresses_.workspaceBytes, shape_.dtype == plan::F32);
}

} // namespace

Expected<std::unique_ptr<LibraryCall>> prepareCudnnConv(Libraries &libraries, const ConvShape &shape,
                                                        const CallAddresses &addresses) {
  Expected<cudnnHandle_t> handle = libraries.openCudnn();
  if (!handle)
    return handle.takeStatus();
  auto call = std::make_unique<ConvCall>(libraries.api(), *handle, shape, addresses);
  LOWTIDE_TRY(call->prepare(libraries.resources()));
  return std::unique_ptr<LibraryCall>(std::move(call));
}

} // namespace lowtide::rt::cuda
