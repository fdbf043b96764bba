//===- FrameworkTensor.cpp - parameters as the exporting framework knows them ===//

#include "runtime/checkpoint/FrameworkTensor.h"

#include "lowtide-rt/StepNames.h"
#include "runtime/Verify.h"
#include "runtime/data/Conversion.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <span>

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

/// Shape before the permutation.
std::vector<int64_t> unpermutedDims(const plan::Binding &binding, const plan::ParameterSource *source) {
  std::vector<int64_t> dims(binding.dims().begin(), binding.dims().end());
  if (isPermutation(source, binding))
    for (int i = 0; i < binding.dims_size(); ++i)
      dims[static_cast<size_t>(source->permutation(i))] = binding.dims(i);
  return dims;
}

/// Calls `visit(original element, stored element)` in the order of the original layout.
template <typename Visit>
void forElements(const plan::Binding &binding, const plan::ParameterSource &source, Visit &&visit) {
  size_t rank = static_cast<size_t>(binding.dims_size());
  std::vector<int64_t> dims = unpermutedDims(binding, &source), storedStride(rank, 1), stride(rank), index(rank, 0);
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

const plan::ParameterSource *findLayout(const plan::Plan &plan, std::span<const Tensor> persistent,
                                        const plan::Binding &binding) {
  if (const plan::ParameterSource *own = findSource(plan, binding.name()))
    return own;
  const size_t dot = binding.name().rfind('.');
  if (binding.kind() != plan::Binding::STATE || !isFloat(binding.dtype()) || dot == std::string::npos)
    return nullptr;
  const std::string parameter = binding.name().substr(0, dot);
  const plan::ParameterSource *source = findSource(plan, parameter);
  auto found = std::find_if(persistent.begin(), persistent.end(),
                            [&](const Tensor &tensor) { return tensor.binding->name() == parameter; });
  if (!source || found == persistent.end())
    return nullptr;
  const auto &dims = found->binding->dims();
  const bool fits = std::equal(binding.dims().begin(), binding.dims().end(), dims.begin(), dims.end(),
                               [](int64_t own, int64_t of) { return own == of || own == 1; });
  return fits ? source : nullptr;
}

/// Elements of a shape; nothing where it has none.
static std::optional<uint64_t> countElements(std::span<const int64_t> dims) {
  uint64_t count = 1;
  for (int64_t dim : dims)
    if (dim < 0 || __builtin_mul_overflow(count, static_cast<uint64_t>(dim), &count))
      return std::nullopt;
  return count;
}

std::vector<int64_t> originalDims(const plan::Binding &binding, const plan::ParameterSource *source) {
  std::vector<int64_t> dims = unpermutedDims(binding, source);
  if (!source || isPermutation(source, binding) || source->slice_size() || !source->original_dims_size())
    return dims;
  std::vector<int64_t> stated(source->original_dims().begin(), source->original_dims().end());
  return countElements(stated) == countElements(dims) ? stated : dims;
}

bool isCounter(const plan::ParameterSource &source) {
  const std::string &name = source.name(), leaf = "num_batches_tracked";
  const bool isNamed = name.ends_with("." + leaf) || name == leaf;
  return source.saved() && source.value_dtype() == plan::I64 && source.value().size() == sizeof(int64_t) &&
         (source.updates_per_step() || isNamed);
}

/// What a counter's steps add, in the arithmetic of int64 tensors.
static int64_t addSteps(int64_t value, const plan::ParameterSource &source, int64_t steps) {
  return static_cast<int64_t>(static_cast<uint64_t>(value) +
                              static_cast<uint64_t>(steps) * static_cast<uint64_t>(source.updates_per_step()));
}

Status setCounter(Session &session, const plan::ParameterSource &source, const HostArray &array, int64_t steps) {
  const std::vector<int64_t> dims(source.original_dims().begin(), source.original_dims().end());
  int64_t value;
  if (array.dtype != plan::I64 || array.dims != dims || array.bytes.size() != sizeof value)
    return badInput("tensor '" + printable(source.name()) + "' is " + describe(array.dtype, array.dims) +
                    ", the artifact has " + describe(plan::I64, dims));
  std::memcpy(&value, array.bytes.data(), sizeof value);
  session.counters()[source.name()] = addSteps(value, source, -steps);
  return Status::ok();
}

void addSavedEntries(const Session &session, int64_t steps, std::vector<SafetensorsEntry> &entries) {
  std::set<std::string> names;
  for (const SafetensorsEntry &entry : entries)
    names.insert(entry.name);
  for (const Tensor &tensor : session.persistent()) {
    const plan::ParameterSource *source = findSource(session.plan(), tensor.binding->name());
    const bool isConstant = tensor.binding->kind() == plan::Binding::CONSTANT;
    if (!source || (isConstant && !source->saved()))
      continue;
    const std::optional<CodedTensor> coded = findCoded(session, tensor, source);
    auto add = [&](const std::string &name) {
      if (names.insert(name).second)
        entries.push_back(coded ? codedEntry(name, *coded, *source) : frameworkEntry(name, tensor, source));
    };
    if (isConstant)
      add(source->name());
    for (const std::string &name : source->tied_names())
      add(name);
  }
  for (const plan::ParameterSource &source : session.plan().sources()) {
    const std::vector<int64_t> dims(source.original_dims().begin(), source.original_dims().end());
    std::optional<uint64_t> count = countElements(dims);
    const uint64_t size = elementBytes(source.value_dtype());
    if (!source.saved() || !size || !count || source.value().size() % size || source.value().size() / size != *count ||
        !names.insert(source.name()).second)
      continue;
    std::string bytes = source.value();
    if (isCounter(source)) {
      int64_t value;
      std::memcpy(&value, bytes.data(), sizeof value);
      const auto begun = session.counters().find(source.name());
      value = addSteps(begun == session.counters().end() ? value : begun->second, source, steps);
      std::memcpy(bytes.data(), &value, sizeof value);
    }
    SafetensorsEntry entry{source.name(), source.value_dtype(), dims, bytes.size(), {}};
    entry.write = [bytes](const SafetensorsEntry::Sink &sink) { return sink(bytes.data(), bytes.size()); };
    entries.push_back(std::move(entry));
  }
}

bool isScales(const plan::ParameterSource *source) {
  return source && !source->codec().empty() && source->scales().empty();
}

std::vector<float> CodedTensor::decode() const {
  std::vector<float> numbers(count);
  std::vector<float> factors(count / fewBitsBlock);
  std::memcpy(factors.data(), scales.data, factors.size() * sizeof(float));
  decodeFewBits(codec, codes.data, factors.data(), numbers);
  return numbers;
}

bool CodedTensor::encode(std::span<const float> numbers) const {
  std::vector<uint8_t> made(codes.bytes());
  std::vector<float> factors(count / fewBitsBlock);
  if (encodeFewBits(codec, numbers, made.data(), factors.data()))
    return false;
  std::memcpy(codes.data, made.data(), made.size());
  std::memcpy(scales.data, factors.data(), factors.size() * sizeof(float));
  return true;
}

std::vector<int64_t> codedDims(const plan::ParameterSource &source) {
  std::vector<int64_t> stated(source.original_dims().begin(), source.original_dims().end()),
      coded(source.coded_dims().begin(), source.coded_dims().end());
  return !source.slice_size() && countElements(stated) == countElements(coded) ? stated : coded;
}

std::optional<CodedTensor> findCoded(const Session &session, const Tensor &tensor,
                                     const plan::ParameterSource *source) {
  const std::optional<FewBits> codec = source ? findFewBits(source->codec()) : std::nullopt;
  if (!codec || source->scales().empty() || source->coded_dims_size() != 2)
    return std::nullopt;
  std::optional<uint64_t> count = countElements(std::vector<int64_t>{source->coded_dims(0), source->coded_dims(1)});
  if (!count || *count % fewBitsBlock || tensor.bytes() != *count / fewBitsBlock * blockBytes(*codec))
    return std::nullopt;
  for (const Tensor &other : session.persistent())
    if (other.binding->name() == source->scales() && other.binding->dtype() == plan::F32 &&
        other.bytes() == *count / fewBitsBlock * sizeof(float))
      return CodedTensor{*codec, tensor, other, *count};
  return std::nullopt;
}

SafetensorsEntry codedEntry(const std::string &name, const CodedTensor &coded, const plan::ParameterSource &source) {
  SafetensorsEntry entry{name, plan::F32, codedDims(source), coded.count * sizeof(float), {}};
  entry.write = [coded](const SafetensorsEntry::Sink &sink) -> Status {
    LOWTIDE_TRY(coded.bring(HostAccess::Read));
    const std::vector<float> numbers = coded.decode();
    return sink(numbers.data(), numbers.size() * sizeof(float));
  };
  return entry;
}

/// Of a tensor what is written at once.
static constexpr uint64_t writtenPiece = uint64_t(1) << 24;

SafetensorsEntry frameworkEntry(const std::string &name, const Tensor &tensor, const plan::ParameterSource *source) {
  SafetensorsEntry entry;
  entry.name = name;
  entry.dtype = tensor.binding->dtype();
  entry.dims = originalDims(*tensor.binding, source);
  entry.bytes = tensor.bytes();
  entry.write = [tensor, source](const SafetensorsEntry::Sink &sink) -> Status {
    // In pieces where nothing has to be put together: a file is to take no more memory than that.
    if (tensor.device && tensor.isWhole() && !isPermutation(source, *tensor.binding)) {
      for (uint64_t done = 0, piece = 0; done < tensor.bytes(); done += piece) {
        piece = std::min(tensor.bytes() - done, writtenPiece);
        LOWTIDE_TRY(tensor.device->bring(tensor.data + done, piece, HostAccess::Read));
        LOWTIDE_TRY(sink(tensor.data + done, piece));
        LOWTIDE_TRY(tensor.device->leave(tensor.data + done, piece));
      }
      return Status::ok();
    }
    LOWTIDE_TRY(tensor.bring(HostAccess::Read));
    std::vector<uint8_t> room;
    const uint8_t *numbers = tensor.view(room).data();
    if (!isPermutation(source, *tensor.binding))
      return sink(numbers, tensor.bytes());
    size_t element = elementBytes(tensor.binding->dtype());
    std::vector<uint8_t> turned(tensor.bytes());
    forElements(*tensor.binding, *source, [&](int64_t original, int64_t stored) {
      std::memcpy(turned.data() + static_cast<size_t>(original) * element,
                  numbers + static_cast<size_t>(stored) * element, element);
    });
    return sink(turned.data(), turned.size());
  };
  return entry;
}

bool fitsShape(const HostArray &array, const plan::Binding &binding, const plan::ParameterSource *source) {
  return array.dims == originalDims(binding, source) || array.dims == unpermutedDims(binding, source);
}

Status restore(const HostArray &array, const Tensor &tensor, const plan::ParameterSource *source) {
  if (array.dtype != tensor.binding->dtype() || !fitsShape(array, *tensor.binding, source))
    return badInput("is " + describe(array.dtype, array.dims) + " in the checkpoint, " +
                        describe(tensor.binding->dtype(), originalDims(*tensor.binding, source)) + " in the artifact",
                    "tensor '" + printable(tensor.binding->name()) + "'");
  LOWTIDE_TRY(tensor.bring(HostAccess::Overwrite));
  if (!isPermutation(source, *tensor.binding)) {
    tensor.write(array.bytes.data());
    return Status::ok();
  }
  size_t element = elementBytes(array.dtype);
  std::vector<uint8_t> joined(tensor.isWhole() ? 0 : tensor.bytes());
  uint8_t *numbers = tensor.isWhole() ? tensor.data : joined.data();
  forElements(*tensor.binding, *source, [&](int64_t original, int64_t stored) {
    std::memcpy(numbers + static_cast<size_t>(stored) * element,
                array.bytes.data() + static_cast<size_t>(original) * element, element);
  });
  if (!tensor.isWhole())
    tensor.write(numbers);
  return Status::ok();
}

Status restore(const HostArray &array, const CodedTensor &coded, const plan::ParameterSource &source) {
  const std::string place = "tensor '" + printable(source.name()) + "'";
  if (array.dtype != plan::F32 || array.dims != codedDims(source))
    return badInput("is " + describe(array.dtype, array.dims) + " in the checkpoint, " +
                        describe(plan::F32, codedDims(source)) + " in the artifact",
                    place);
  LOWTIDE_TRY(coded.bring(HostAccess::Change));
  std::vector<float> numbers(coded.count);
  std::memcpy(numbers.data(), array.bytes.data(), numbers.size() * sizeof(float));
  return coded.encode(numbers) ? Status::ok()
                               : badInput("holds a number that is not finite, for which there is no code", place);
}

Expected<std::vector<SafetensorsEntry>> gradientEntries(const Session &session, const std::string &entry) {
  LOWTIDE_TRY(session.download(entry));
  std::vector<SafetensorsEntry> entries;
  for (const Tensor &tensor : session.tensors(entry, plan::Binding::GRADIENT)) {
    const std::string &name = tensor.binding->name();
    entries.push_back(frameworkEntry(name, tensor, findSource(session.plan(), std::string(gradientParameter(name)))));
  }
  if (entries.empty())
    return Status(StatusCode::Usage,
                  "entry '" + printable(entry) + "' has no gradients; compile with --entries=gradient");
  return entries;
}

} // namespace lowtide::rt
