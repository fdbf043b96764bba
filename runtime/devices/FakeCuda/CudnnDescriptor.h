//===- CudnnDescriptor.h - descriptors of the fake cuDNN -------------------===//
//
// A descriptor is a map from attribute to values, read by whoever computes with it.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_FAKECUDA_CUDNNDESCRIPTOR_H
#define LOWTIDE_RUNTIME_DEVICES_FAKECUDA_CUDNNDESCRIPTOR_H

#include "runtime/devices/FakeCuda/Libraries.h"

#include <cstring>
#include <map>
#include <optional>
#include <vector>

namespace lowtide::rt::cuda::fake {

struct Value {
  cudnnBackendAttributeType_t type;
  std::vector<uint8_t> bytes;
};
struct Descriptor {
  cudnnBackendDescriptorType_t type;
  bool final = false;
  std::map<int, Value> values;
};

template <typename T> std::vector<T> list(const Descriptor &descriptor, int name) {
  std::vector<T> values;
  if (auto it = descriptor.values.find(name); it != descriptor.values.end()) {
    values.resize(it->second.bytes.size() / sizeof(T));
    std::memcpy(values.data(), it->second.bytes.data(), values.size() * sizeof(T));
  }
  return values;
}
template <typename T> std::optional<T> one(const Descriptor &descriptor, int name) {
  std::vector<T> values = list<T>(descriptor, name);
  return values.size() == 1 ? std::optional(values[0]) : std::nullopt;
}
/// A descriptor inside another one.
inline Descriptor *inner(const Descriptor &descriptor, int name) {
  std::optional<void *> handle = one<void *>(descriptor, name);
  return handle ? liveObject<Descriptor>(*handle) : nullptr;
}

struct TensorView {
  int64_t id = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  plan::DType dtype = plan::F32; ///< of floats
  std::vector<int64_t> dims, strides;
  bool isVirtual = false, isByValue = false;

  bool isPacked() const {
    int64_t dense = 1;
    for (size_t i = dims.size(); i-- > 0; dense *= dims[i])
      if (dims[i] != 1 && strides[i] != dense)
        return false;
    return true;
  }
  /// Packed, with dimension 1 as the innermost.
  bool isChannelsLast() const {
    int64_t dense = dims[1];
    bool fits = dims[1] == 1 || strides[1] == 1;
    for (size_t i = dims.size(); i-- > 0; dense *= i == 1 ? 1 : dims[i])
      fits &= i == 1 || dims[i] == 1 || strides[i] == dense;
    return fits;
  }
};

/// A finalized tensor of four or five dimensions.
inline std::optional<TensorView> readTensor(const Descriptor *descriptor) {
  if (!descriptor || !descriptor->final || descriptor->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR)
    return std::nullopt;
  TensorView view;
  auto type = one<int>(*descriptor, CUDNN_ATTR_TENSOR_DATA_TYPE);
  auto id = one<int64_t>(*descriptor, CUDNN_ATTR_TENSOR_UNIQUE_ID);
  view.dims = list<int64_t>(*descriptor, CUDNN_ATTR_TENSOR_DIMENSIONS);
  view.strides = list<int64_t>(*descriptor, CUDNN_ATTR_TENSOR_STRIDES);
  if (!type || !id || view.dims.size() < 4 || view.dims.size() > 5 || view.strides.size() != view.dims.size())
    return std::nullopt;
  view.id = *id;
  view.type = static_cast<cudnnDataType_t>(*type);
  view.dtype = *type == CUDNN_DATA_HALF       ? plan::F16
               : *type == CUDNN_DATA_BFLOAT16 ? plan::BF16
               : *type == CUDNN_DATA_DOUBLE   ? plan::F64
                                              : plan::F32;
  view.isVirtual = one<uint8_t>(*descriptor, CUDNN_ATTR_TENSOR_IS_VIRTUAL).value_or(0);
  view.isByValue = one<uint8_t>(*descriptor, CUDNN_ATTR_TENSOR_IS_BY_VALUE).value_or(0);
  return view;
}

/// A packed tensor in memory, channels first or last.
inline std::optional<TensorView> readPacked(const Descriptor *descriptor) {
  std::optional<TensorView> view = readTensor(descriptor);
  const bool isPacked = view && (view->isPacked() || view->isChannelsLast());
  return isPacked && !view->isVirtual && !view->isByValue ? view : std::nullopt;
}
/// Whether packed tensors agree in their layout, and in which.
enum class ImageLayout { Mixed, ChannelsFirst, ChannelsLast };
template <typename... Views> ImageLayout layoutOf(const Views &...views) {
  return (views.isPacked() && ...)         ? ImageLayout::ChannelsFirst
         : (views.isChannelsLast() && ...) ? ImageLayout::ChannelsLast
                                           : ImageLayout::Mixed;
}

} // namespace lowtide::rt::cuda::fake

#endif // LOWTIDE_RUNTIME_DEVICES_FAKECUDA_CUDNNDESCRIPTOR_H
