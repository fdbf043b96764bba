//===- ConvCall.cpp - a convolution of the plan on cuDNN -------------------===//
//
// One operation of the graph API: forward, data gradient or filter gradient on packed tensors, sums in f32. Dimensions
// are listed N C [D] H W in any case; channels last are strides.
// A bias is added by a pointwise operation of its own, in place.
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cuda/CudnnGraph.h"
#include "runtime/devices/Cuda/LibraryCall.h"

namespace lowtide::rt::cuda {
namespace {

enum Operand : int64_t { Input = 'x', Filter = 'w', Output = 'y', Bias = 'b', Sum = 's' };

class ConvCall final : public LibraryCall {
public:
  ConvCall(const Api &api, cudnnHandle_t handle, const ConvShape &shape, const CallAddresses &addresses)
      : api_(api), handle_(handle), shape_(shape), addresses_(addresses) {}

  Status prepare(Resources &resources);
  Status enqueue(CUstream stream) override;
  std::string choice() const override { return conv_.choice(); }

private:
  Status prepareConv(Resources &resources, CudnnBuilder &builder);
  Status prepareBias(Resources &resources, CudnnBuilder &builder);
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
  CudnnGraph conv_, bias_;
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

Status ConvCall::prepare(Resources &resources) {
  CudnnBuilder builder(api_, resources);
  LOWTIDE_TRY(prepareConv(resources, builder));
  return addresses_.reads.size() > 2 ? prepareBias(resources, builder) : Status::ok();
}

Status ConvCall::prepareConv(Resources &resources, CudnnBuilder &builder) {
  using Kind = ConvShape::Kind;
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

  // What the output's size leaves of the input behind the last tap is no padding: the end needs none beyond it.
  ConvShape::Dims post{};
  for (size_t i = 0; i < ConvShape::spatial; ++i)
    post[i] =
        std::max<int64_t>(0, (shape_.output[i] - 1) * shape_.stride[i] + (shape_.filter[i] - 1) * shape_.dilation[i] +
                                 1 - shape_.input[i] - shape_.padBegin[i]);
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
  return conv_.prepare(api_, resources, handle_, {&operation, 1}, ids, pointers, addresses_.workspace,
                       addresses_.workspaceBytes, shape_.dtype == plan::F32);
}

Status ConvCall::prepareBias(Resources &resources, CudnnBuilder &builder) {
  CUdeviceptr y = addresses_.writes[0], b = addresses_.reads[2];
  int64_t channels = shape_.groups * shape_.outChannels;
  cudnnBackendDescriptor_t before = nullptr, bias = nullptr, behind = nullptr, add = nullptr, operation = nullptr;
  std::vector<int64_t> whole = dims(shape_.batch, channels, shape_.output);
  LOWTIDE_TRY(tensor(builder, Output, dataType(shape_.resultDtype), whole, alignmentOf(y), before));
  LOWTIDE_TRY(tensor(builder, Bias, dataType(shape_.resultDtype), dims(1, channels, {1, 1, 1}), alignmentOf(b), bias));
  LOWTIDE_TRY(tensor(builder, Sum, dataType(shape_.resultDtype), whole, alignmentOf(y), behind));
  LOWTIDE_TRY(builder.create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, add));
  LOWTIDE_TRY(builder.set(add, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, CUDNN_POINTWISE_ADD));
  LOWTIDE_TRY(builder.set(add, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT));
  LOWTIDE_TRY(builder.finalize(add));
  LOWTIDE_TRY(builder.create(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, operation));
  LOWTIDE_TRY(builder.set(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, add));
  LOWTIDE_TRY(builder.set(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, before));
  LOWTIDE_TRY(builder.set(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, bias));
  LOWTIDE_TRY(builder.set(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, behind));
  LOWTIDE_TRY(builder.finalize(operation));
  const int64_t ids[] = {Output, Bias, Sum};
  const CUdeviceptr pointers[] = {y, b, y};
  return bias_.prepare(api_, resources, handle_, {&operation, 1}, ids, pointers, addresses_.workspace,
                       addresses_.workspaceBytes, false);
}

Status ConvCall::enqueue(CUstream stream) {
  LOWTIDE_TRY(conv_.enqueue(api_, handle_, stream));
  return addresses_.reads.size() > 2 ? bias_.enqueue(api_, handle_, stream) : Status::ok();
}

} // namespace

Expected<std::unique_ptr<LibraryCall>> prepareCudnnConv(const Api &api, Resources &resources, cudnnHandle_t handle,
                                                        const ConvShape &shape, const CallAddresses &addresses) {
  auto call = std::make_unique<ConvCall>(api, handle, shape, addresses);
  LOWTIDE_TRY(call->prepare(resources));
  return std::unique_ptr<LibraryCall>(std::move(call));
}

} // namespace lowtide::rt::cuda
