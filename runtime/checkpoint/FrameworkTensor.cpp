//===- FrameworkTensor.cpp - parameters as the exporting framework knows them ===//

#include "runtime/checkpoint/FrameworkTensor.h"

#include "runtime/Verify.h"

#include <algorithm>
#include <cstring>

namespace lowtide::rt {
namespace {

bool isPermutation(const plan::ParameterSource *source, const plan::Binding &binding) {
  if (!source || source->permutation_size() == 0 || source->permutation_size() != binding.dims_size())
    return false;
  std::vector<int64_t> sorted(source->permutation().begin(), source->permutation().end());
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<int64_t>(i))
      return false;
  return true;
}

/// Calls `visit(original element, stored element)` in the order of the original layout.
template <typename Visit>
void forElements(const plan::Binding &binding, const plan::ParameterSource &source, Visit &&visit) {
  size_t rank = static_cast<size_t>(binding.dims_size());
  std::vector<int64_t> dims = originalDims(binding, &source), storedStride(rank, 1), stride(rank), index(rank, 0);
  for (size_t i = rank; i-- > 1;)
    storedStride[i - 1] = storedStride[i] * binding.dims(static_cast<int>(i));
  int64_t count = 1;
  for (size_t i = 0; i < rank; ++i) {
    stride[static_cast<size_t>(source.permutation(static_cast<int>(i)))] = storedStride[i];
    count *= dims[i];
  }
  int64_t stored = 0;
  for (int64_t original = 0; original < count; ++original) {
    visit(original, stored);
    for (size_t d = rank; d-- > 0;) {
      stored += stride[d];
      if (++index[d] < dims[d])
        break;
      stored -= stride[d] * dims[d];
      index[d] = 0;
    }
  }
}

} // namespace

const plan::ParameterSource *findSource(const plan::Plan &plan, const std::string &name) {
  for (const plan::ParameterSource &source : plan.sources())
    if (source.name() == name)
      return &source;
  return nullptr;
}

std::vector<int64_t> originalDims(const plan::Binding &binding, const plan::ParameterSource *source) {
  std::vector<int64_t> dims(binding.dims().begin(), binding.dims().end());
  if (isPermutation(source, binding))
    for (int i = 0; i < binding.dims_size(); ++i)
      dims[static_cast<size_t>(source->permutation(i))] = binding.dims(i);
  return dims;
}

SafetensorsEntry frameworkEntry(const std::string &name, const Tensor &tensor, const plan::ParameterSource *source) {
  SafetensorsEntry entry;
  entry.name = name;
  entry.dtype = tensor.binding->dtype();
  entry.dims = originalDims(*tensor.binding, source);
  entry.bytes = tensor.bytes();
  entry.write = [tensor, source](const SafetensorsEntry::Sink &sink) -> Status {
    if (!isPermutation(source, *tensor.binding))
      return sink(tensor.data, tensor.bytes());
    size_t element = elementBytes(tensor.binding->dtype());
    std::vector<uint8_t> turned(tensor.bytes());
    forElements(*tensor.binding, *source, [&](int64_t original, int64_t stored) {
      std::memcpy(turned.data() + static_cast<size_t>(original) * element,
                  tensor.data + static_cast<size_t>(stored) * element, element);
    });
    return sink(turned.data(), turned.size());
  };
  return entry;
}

Status restore(const HostArray &array, const Tensor &tensor, const plan::ParameterSource *source) {
  std::vector<int64_t> dims = originalDims(*tensor.binding, source);
  if (array.dtype != tensor.binding->dtype() || array.dims != dims)
    return badInput("is " + describe(array.dtype, array.dims) + " in the checkpoint, " +
                        describe(tensor.binding->dtype(), dims) + " in the artifact",
                    "tensor '" + printable(tensor.binding->name()) + "'");
  if (!isPermutation(source, *tensor.binding)) {
    std::memcpy(tensor.data, array.bytes.data(), array.bytes.size());
    return Status::ok();
  }
  size_t element = elementBytes(array.dtype);
  forElements(*tensor.binding, *source, [&](int64_t original, int64_t stored) {
    std::memcpy(tensor.data + static_cast<size_t>(stored) * element,
                array.bytes.data() + static_cast<size_t>(original) * element, element);
  });
  return Status::ok();
}

Status writeGradients(const Session &session, const std::string &entry, const std::string &path) {
  LOWTIDE_TRY(session.download(entry));
  std::vector<SafetensorsEntry> entries;
  for (const Tensor &tensor : session.tensors(entry, plan::Binding::OUTPUT)) {
    const std::string &name = tensor.binding->name();
    if (name.rfind("grad/", 0) == 0)
      entries.push_back(frameworkEntry(name, tensor, findSource(session.plan(), name.substr(5))));
  }
  if (entries.empty())
    return {StatusCode::Usage, "entry '" + printable(entry) + "' has no outputs named grad/<parameter>"};
  return writeSafetensors(path, entries);
}

} // namespace lowtide::rt
