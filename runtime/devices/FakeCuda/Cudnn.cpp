//===- Cudnn.cpp - cuDNN's backend API of the fake device ------------------===//
//
// Descriptors are maps from attribute to values. Finalizing an execution plan reads its operation and refuses
// what the documents do; executing it computes with the runtime's own kernels, which get workspace of their own (the
// engines of the real library need other sizes).
//
//===----------------------------------------------------------------------===//

#include "runtime/Verify.h"
#include "runtime/Workspace.h"
#include "runtime/calls/Conv/ConvShape.h"
#include "runtime/devices/FakeCuda/CudnnFusion.h"

#include "runtime/Element.h"

#include <algorithm>
#include <cstring>

namespace lowtide::rt::cuda::fake {
namespace {

Machine &machine() { return Machine::get(); }

#define ENTER(name) LOWTIDE_FAKE_ENTER(cudnnStatus_t, name)

struct Handle {
  Stream *stream = nullptr;
};
size_t elementSize(cudnnBackendAttributeType_t type) {
  switch (type) {
  case CUDNN_TYPE_INT64:
  case CUDNN_TYPE_DOUBLE:
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    return 8;
  case CUDNN_TYPE_BOOLEAN:
    return 1;
  default:
    return 4;
  }
}

cudnnStatus_t create(cudnnHandle_t *handle) {
  ENTER(cudnnCreate);
  return makeObject<Handle, cudnnStatus_t>(handle, "cuDNN handle");
}
cudnnStatus_t destroy(cudnnHandle_t handle) { return releaseObject<Handle, cudnnStatus_t>("cudnnDestroy", handle); }
cudnnStatus_t getProperty(libraryPropertyType property, int *value) {
  ENTER(cudnnGetProperty);
  *value = property == MAJOR_VERSION ? 9 : property == MINOR_VERSION ? 16 : 0;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t setStream(cudnnHandle_t handle, CUstream stream) {
  ENTER(cudnnSetStream);
  Handle *to = liveObject<Handle>(handle);
  Stream *queue = liveObject<Stream>(stream);
  if (!to || !queue)
    return CUDNN_STATUS_BAD_PARAM;
  to->stream = queue;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t createDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *descriptor) {
  ENTER(cudnnBackendCreateDescriptor);
  Descriptor *made = machine().make<Descriptor>("cuDNN descriptor");
  made->type = type;
  *descriptor = made;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t destroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return releaseObject<Descriptor, cudnnStatus_t>("cudnnBackendDestroyDescriptor", descriptor);
}
cudnnStatus_t setAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type, int64_t count, const void *values) {
  ENTER(cudnnBackendSetAttribute);
  Descriptor *descriptor = liveObject<Descriptor>(handle);
  if (!descriptor || descriptor->final || count < 1)
    return CUDNN_STATUS_BAD_PARAM;
  const auto *bytes = static_cast<const uint8_t *>(values);
  descriptor->values[name] = {type, {bytes, bytes + static_cast<size_t>(count) * elementSize(type)}};
  return CUDNN_STATUS_SUCCESS;
}

/// What a convolution asks for.
struct Convolution {
  ConvShape shape;
  int64_t ids[3] = {}; ///< x, w, y
};

std::optional<Convolution> readConvolution(const Descriptor &operation) {
  using Kind = ConvShape::Kind;
  int x, w, y, conv;
  Convolution result;
  ConvShape &shape = result.shape;
  switch (operation.type) {
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    shape.kind = Kind::Forward, conv = 702, w = 703, x = 704, y = 705;
    break;
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    shape.kind = Kind::InputGrad, conv = 708, w = 709, x = 710, y = 711;
    break;
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
    shape.kind = Kind::FilterGrad, conv = 714, w = 715, x = 716, y = 717;
    break;
  default:
    return std::nullopt;
  }
  auto input = readPacked(inner(operation, x)), filter = readPacked(inner(operation, w)),
       output = readPacked(inner(operation, y));
  const Descriptor *desc = inner(operation, conv);
  if (!input || !filter || !output || !desc || !desc->final || input->dims.size() != filter->dims.size() ||
      input->dims.size() != output->dims.size())
    return std::nullopt;
  const ImageLayout layout = layoutOf(*input, *filter, *output);
  if (layout == ImageLayout::Mixed)
    return std::nullopt;
  shape.channelsLast = layout == ImageLayout::ChannelsLast;
  size_t spatial = input->dims.size() - 2, leading = ConvShape::spatial - spatial;
  auto numbers = [&](int name) { return list<int64_t>(*desc, name); };
  std::vector<int64_t> pre = numbers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
                       post = numbers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS),
                       stride = numbers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
                       dilation = numbers(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  if (pre.size() != spatial || post.size() != spatial || stride.size() != spatial || dilation.size() != spatial ||
      one<int64_t>(*desc, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) != static_cast<int64_t>(spatial) ||
      one<int>(*desc, CUDNN_ATTR_CONVOLUTION_COMP_TYPE) != CUDNN_DATA_FLOAT ||
      one<int>(*desc, CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION)
    return std::nullopt;
  shape.batch = input->dims[0];
  shape.channels = filter->dims[1];
  if (shape.channels < 1 || input->dims[1] % shape.channels)
    return std::nullopt;
  shape.groups = input->dims[1] / shape.channels;
  if (filter->dims[0] % shape.groups || output->dims[1] != filter->dims[0] || output->dims[0] != shape.batch)
    return std::nullopt;
  shape.outChannels = filter->dims[0] / shape.groups;
  for (size_t i = 0; i < spatial; ++i) {
    size_t to = leading + i;
    shape.input[to] = input->dims[2 + i], shape.filter[to] = filter->dims[2 + i],
    shape.output[to] = output->dims[2 + i];
    shape.stride[to] = stride[i], shape.padBegin[to] = pre[i], shape.dilation[to] = dilation[i];
    int64_t padded = shape.input[to] + pre[i] + post[i], reach = (shape.filter[to] - 1) * dilation[i] + 1;
    if (stride[i] < 1 || padded < reach || (padded - reach) / stride[i] + 1 != shape.output[to])
      return std::nullopt;
    // Part of the real engines want both sides alike: uneven only where even ones would change the result's size.
    const int64_t even = shape.input[to] + 2 * pre[i] - reach;
    if (pre[i] != post[i] && even >= 0 && even / stride[i] + 1 == shape.output[to])
      return std::nullopt;
  }
  const TensorView &made = shape.kind == Kind::Forward ? *output : shape.kind == Kind::InputGrad ? *input : *filter;
  const TensorView &read = shape.kind == Kind::Forward ? *input : *output;
  shape.dtype = read.dtype, shape.resultDtype = made.dtype;
  result.ids[0] = input->id, result.ids[1] = filter->id, result.ids[2] = output->id;
  if (declineConv(shape, false))
    return std::nullopt;
  return result;
}

/// The graph of an execution plan.
const Descriptor *graphOf(const Descriptor &plan) {
  const Descriptor *configuration = inner(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  // The fake's configurations hold their graph as attribute `CUDNN_ATTR_ENGINECFG_ENGINE`.
  return configuration ? inner(*configuration, CUDNN_ATTR_ENGINECFG_ENGINE) : nullptr;
}

/// Whether the fake computes a graph: one operation, or a fused pattern.
bool isTaken(const Descriptor &graph) {
  const Descriptor *operation = inner(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  return operation ? operation->final && readConvolution(*operation) : readFusion(graph).has_value();
}

/// The engines that heuristics list, as they come: results differ from run to run, more workspace than anybody has, and
/// the one that is to be taken.
enum Engine : int64_t { HastyEngine, VastEngine, GoodEngine, numEngines };

/// Of a configuration or an engine.
int64_t engineOf(const Descriptor &descriptor) {
  return one<int64_t>(descriptor, CUDNN_ATTR_ENGINE_GLOBAL_INDEX).value_or(-1);
}

int64_t workspaceOf(const Descriptor &configuration) {
  // What cuDNN 9.26 asks for a convolution on Hopper's tensor cores.
  constexpr int64_t convRest = 131;
  const Descriptor *graph = inner(configuration, CUDNN_ATTR_ENGINECFG_ENGINE);
  if (!graph)
    return 0;
  if (engineOf(configuration) == VastEngine)
    return int64_t(1) << 60;
  if (std::optional<Fusion> fusion = readFusion(*graph))
    return static_cast<int64_t>(fusion->workspaceBytes());
  const Descriptor *operation = inner(*graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  std::optional<Convolution> conv = operation ? readConvolution(*operation) : std::nullopt;
  return conv && isNarrow(conv->shape.dtype) ? convRest : 0;
}

template <typename T>
void put(Descriptor &descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T &value) {
  const auto *bytes = reinterpret_cast<const uint8_t *>(&value);
  descriptor.values[name] = {type, {bytes, bytes + sizeof value}};
}

cudnnStatus_t finalize(cudnnBackendDescriptor_t handle) {
  ENTER(cudnnBackendFinalize);
  Descriptor *descriptor = liveObject<Descriptor>(handle);
  if (!descriptor || descriptor->final)
    return CUDNN_STATUS_BAD_PARAM;
  const Descriptor *graph = nullptr;
  if (descriptor->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
    graph = descriptor;
  else if (descriptor->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
    graph = graphOf(*descriptor);
  else if (descriptor->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR)
    descriptor->final = true;
  if (descriptor->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR && !readTensor(descriptor)) {
    descriptor->final = false;
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  bool needsGraph = descriptor->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR ||
                    descriptor->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
  if (needsGraph && (!graph || !isTaken(*graph)))
    return CUDNN_STATUS_NOT_SUPPORTED;
  descriptor->final = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t getAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t, int64_t requested, int64_t *count, void *values) {
  ENTER(cudnnBackendGetAttribute);
  Descriptor *descriptor = liveObject<Descriptor>(handle);
  if (!descriptor || requested < 1)
    return CUDNN_STATUS_BAD_PARAM;
  *count = 1;
  switch (name) {
  case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
    Descriptor *graph = inner(*descriptor, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    if (!descriptor->final || !graph)
      return CUDNN_STATUS_BAD_PARAM;
    *count = std::min<int64_t>(requested, numEngines);
    for (int64_t engine = 0; engine < *count; ++engine) {
      Descriptor *configuration = liveObject<Descriptor>(static_cast<void **>(values)[engine]);
      if (!configuration)
        return CUDNN_STATUS_BAD_PARAM;
      put(*configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph);
      put(*configuration, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, engine);
      configuration->final = true;
    }
    return CUDNN_STATUS_SUCCESS;
  }
  case CUDNN_ATTR_ENGINECFG_ENGINE: {
    Descriptor *engine = liveObject<Descriptor>(*static_cast<void **>(values));
    if (!descriptor->final || !engine)
      return CUDNN_STATUS_BAD_PARAM;
    put(*engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, engineOf(*descriptor));
    return CUDNN_STATUS_SUCCESS;
  }
  case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
    *count = engineOf(*descriptor) == HastyEngine;
    if (*count)
      *static_cast<cudnnBackendNumericalNote_t *>(values) = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    return CUDNN_STATUS_SUCCESS;
  case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
  case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
  case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: {
    const bool isPlan = name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE;
    const Descriptor *configuration = isPlan ? inner(*descriptor, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG) : descriptor;
    if (!configuration)
      return CUDNN_STATUS_BAD_PARAM;
    const int64_t number = name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX ? engineOf(*descriptor) : workspaceOf(*configuration);
    std::memcpy(values, &number, sizeof number);
    return CUDNN_STATUS_SUCCESS;
  }
  default:
    return CUDNN_STATUS_BAD_PARAM;
  }
}

/// Copies a tensor of `count` images of `channels` × `inside` elements to channels last, or back.
void moveChannels(const void *from, void *to, uint64_t size, int64_t count, int64_t channels, int64_t inside,
                  bool toLast) {
  machine().pool().run(count, [&](int64_t image, unsigned) {
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < inside; ++i) {
        auto first = static_cast<uint64_t>((image * channels + c) * inside + i) * size,
             last = static_cast<uint64_t>((image * inside + i) * channels + c) * size;
        std::memcpy(static_cast<uint8_t *>(to) + (toLast ? last : first),
                    static_cast<const uint8_t *>(from) + (toLast ? first : last), size);
      }
  });
}

/// A convolution on x, w, y of the CPU's kernels, which have channels first: others go through copies.
class FakeConv {
public:
  FakeConv(const ConvShape &shape, std::span<void *const, 3> at, uint64_t workspaceBytes)
      : shape_(shape), workspace_(workspaceBytes / 8 + 8) {
    std::copy(at.begin(), at.end(), at_);
    std::copy(at.begin(), at.end(), first_);
    for (size_t i = 0; i < 3 && shape.channelsLast; ++i) {
      copies_[i].resize(static_cast<size_t>(counts(i)[0] * counts(i)[1] * counts(i)[2]) * size(i) / 8 + 8);
      first_[i] = copies_[i].data();
    }
    auto start = (reinterpret_cast<uintptr_t>(workspace_.data()) + 63) & ~uintptr_t(63);
    std::vector<const void *> reads;
    for (size_t i : {0, 2, 1}) // an image comes before the filter
      if (i != written())
        reads.push_back(first_[i]);
    if (shape.kind == ConvShape::Kind::Forward)
      reads = {first_[0], first_[1]};
    std::vector<void *> writes = {first_[written()]};
    CallOperands operands{reads, writes, reinterpret_cast<void *>(start)};
    call_ = isNarrow(shape.dtype)                       ? prepareNarrowConv(shape, operands)
            : shape.kind == ConvShape::Kind::FilterGrad ? prepareConvFilterGrad(shape, operands)
                                                        : prepareConv(shape, operands);
  }
  void run() {
    for (size_t i = 0; i < 3 && shape_.channelsLast; ++i)
      if (i != written())
        move(at_[i], first_[i], i, false);
    runPrepared(*call_);
    if (shape_.channelsLast)
      move(first_[written()], at_[written()], written(), true);
  }

private:
  size_t written() const {
    using Kind = ConvShape::Kind;
    return shape_.kind == Kind::Forward ? 2 : shape_.kind == Kind::InputGrad ? 0 : 1;
  }
  uint64_t size(size_t i) const { return elementBytes(i == written() ? shape_.resultDtype : shape_.dtype); }
  /// Images (filters), channels, elements of one.
  std::array<int64_t, 3> counts(size_t i) const {
    int64_t inputs = shape_.groups * shape_.channels, outputs = shape_.groups * shape_.outChannels;
    return i == 0   ? std::array{shape_.batch, inputs, ConvShape::volume(shape_.input)}
           : i == 1 ? std::array{outputs, shape_.channels, ConvShape::volume(shape_.filter)}
                    : std::array{shape_.batch, outputs, ConvShape::volume(shape_.output)};
  }
  void move(const void *from, void *to, size_t i, bool toLast) const {
    auto [count, channels, inside] = counts(i);
    moveChannels(from, to, size(i), count, channels, inside, toLast);
  }

  ConvShape shape_;
  void *at_[3], *first_[3];
  std::vector<uint64_t> workspace_, copies_[3];
  std::shared_ptr<PreparedCall> call_;
};

cudnnStatus_t execute(cudnnHandle_t handle, cudnnBackendDescriptor_t planHandle, cudnnBackendDescriptor_t packHandle) {
  ENTER(cudnnBackendExecute);
  Handle *library = liveObject<Handle>(handle);
  Descriptor *plan = liveObject<Descriptor>(planHandle), *pack = liveObject<Descriptor>(packHandle);
  if (!library || !library->stream || !plan || !plan->final || !pack || !pack->final)
    return CUDNN_STATUS_BAD_PARAM;
  const Descriptor *graph = graphOf(*plan);
  const Descriptor *found = graph ? inner(*graph, CUDNN_ATTR_OPERATIONGRAPH_OPS) : nullptr;
  std::vector<int64_t> ids = list<int64_t>(*pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  std::vector<void *> pointers = list<void *>(*pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  if (std::optional<Fusion> fusion = graph && !found ? readFusion(*graph) : std::nullopt) {
    auto workspace = one<void *>(*pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    if (fusion->workspaceBytes() && !machine().holds(workspace.value_or(nullptr), fusion->workspaceBytes(), false))
      return CUDNN_STATUS_BAD_PARAM;
    return fusion->enqueue(*library->stream, ids, pointers, workspace.value_or(nullptr));
  }
  std::optional<Convolution> operation = found ? readConvolution(*found) : std::nullopt;
  if (!operation)
    return CUDNN_STATUS_NOT_SUPPORTED;
  void *at[3] = {};
  for (int i = 0; i < 3; ++i)
    for (size_t j = 0; j < ids.size() && j < pointers.size(); ++j)
      if (ids[j] == operation->ids[i])
        at[i] = pointers[j];
  if (!at[0] || !at[1] || !at[2])
    return CUDNN_STATUS_BAD_PARAM;
  const ConvShape &shape = operation->shape;
  uint64_t element = elementBytes(shape.dtype), resultElement = elementBytes(shape.resultDtype);
  using Kind = ConvShape::Kind;
  bool inside =
      machine().holds(at[0], shape.inputElements() * (shape.kind == Kind::InputGrad ? resultElement : element),
                      false) &&
      machine().holds(at[1], shape.filterElements() * (shape.kind == Kind::FilterGrad ? resultElement : element),
                      false) &&
      machine().holds(at[2], shape.outputElements() * (shape.kind == Kind::Forward ? resultElement : element), false);
  if (!inside)
    return CUDNN_STATUS_BAD_PARAM;
  Expected<uint64_t> workspace = convWorkspace(shape);
  if (!workspace)
    return CUDNN_STATUS_NOT_SUPPORTED;
  auto conv = std::make_shared<FakeConv>(shape, std::span<void *const, 3>(at), *workspace);
  machine().enqueue(*library->stream, [conv] {
    conv->run();
    return std::string();
  });
  return CUDNN_STATUS_SUCCESS;
}

} // namespace

CudnnApi cudnnApi() {
  CudnnApi api;
  api.cudnnCreate = create;
  api.cudnnDestroy = destroy;
  api.cudnnGetProperty = getProperty;
  api.cudnnSetStream = setStream;
  api.cudnnBackendCreateDescriptor = createDescriptor;
  api.cudnnBackendDestroyDescriptor = destroyDescriptor;
  api.cudnnBackendFinalize = finalize;
  api.cudnnBackendSetAttribute = setAttribute;
  api.cudnnBackendGetAttribute = getAttribute;
  api.cudnnBackendExecute = execute;
  return api;
}

} // namespace lowtide::rt::cuda::fake
