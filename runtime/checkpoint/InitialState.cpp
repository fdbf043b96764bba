//===- InitialState.cpp - first values from a framework's own file ---------===//

#include "runtime/checkpoint/InitialState.h"

#include "runtime/RandomInit.h"
#include "runtime/Verify.h"
#include "runtime/checkpoint/Adapters.h"
#include "runtime/checkpoint/Finite.h"
#include "runtime/checkpoint/FrameworkTensor.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/data/Conversion.h"

#include <algorithm>
#include <map>
#include <set>

namespace lowtide::rt {
namespace {

/// The same numbers in another float type; one that is beyond the type's largest is an error.
Expected<HostArray> convert(const HostArray &from, plan::DType to) {
  Expected<Conversion> conversion = Conversion::create(from.dtype, to);
  if (!conversion)
    return conversion.takeStatus();
  const uint64_t width = elementBytes(from.dtype);
  const auto count = static_cast<int64_t>(from.bytes.size() / width);
  auto bytes = std::make_shared<std::vector<uint8_t>>(static_cast<uint64_t>(count) * elementBytes(to));
  if (int64_t done = conversion->convert(from.bytes.data(), bytes->data(), count); done < count)
    return badInput("element " + std::to_string(done) + ", " +
                    elementText(from.dtype, from.bytes.data() + static_cast<uint64_t>(done) * width) +
                    ", is beyond the largest " + describe(to));
  HostArray made;
  made.dtype = to;
  made.dims = from.dims;
  made.bytes = *bytes;
  made.owner = bytes;
  return made;
}

std::string listSome(const std::set<std::string> &names) {
  constexpr size_t shown = 8;
  std::string text;
  size_t count = 0;
  for (const std::string &name : names)
    if (count++ < shown)
      text += (text.empty() ? "'" : ", '") + printable(name) + "'";
  return text + (names.size() > shown ? " and " + std::to_string(names.size() - shown) + " more" : "");
}

bool isSame(const HostArray &one, const HostArray &other) {
  return one.dtype == other.dtype && one.dims == other.dims && std::ranges::equal(one.bytes, other.bytes);
}

/// Moves what the step holds as a constant of the model file out of `unused`; returns those of which `arrays` has other
/// numbers. Numbers of fewer bits are compared as such.
std::set<std::string> findOtherConstants(const Session &session, const std::map<std::string, HostArray> &arrays,
                                         std::set<std::string> &unused) {
  std::set<std::string> others;
  for (const plan::ParameterSource &source : session.plan().sources()) {
    const auto found = arrays.find(source.name());
    if (found == arrays.end() || !unused.count(source.name()) || source.value().empty())
      continue;
    HostArray own;
    own.dtype = source.value_dtype();
    own.dims.assign(source.original_dims().begin(), source.original_dims().end());
    own.bytes = {reinterpret_cast<const uint8_t *>(source.value().data()), source.value().size()};
    if (found->second.dtype != own.dtype && isFloat(found->second.dtype) && isFloat(own.dtype))
      if (Expected<HostArray> made = convert(own, found->second.dtype))
        own = std::move(*made);
    unused.erase(source.name());
    if (!isSame(own, found->second))
      others.insert(source.name());
  }
  return others;
}

Status load(Session &session, const std::string &path, bool isAdapter, std::vector<std::string> &notes) {
  Expected<std::map<std::string, HostArray>> arrays = readSafetensors(path);
  if (!arrays)
    return arrays.takeStatus();
  // PEFT's tensors under another file's name.
  if (!isAdapter && std::any_of(arrays->begin(), arrays->end(),
                                [](const auto &array) { return array.first.starts_with(adapterPrefix); }))
    return loadAdapter(session, path, notes);

  struct Assignment {
    Tensor tensor;
    const plan::ParameterSource *source;
    HostArray array;
    std::optional<CodedTensor> coded; ///< the array, f32 by now, is to be encoded
  };
  std::vector<Assignment> assignments;
  std::set<std::string> missing, kept, unused, pairs;
  for (const plan::Adapter &adapter : session.plan().adapters())
    pairs.insert({adapter.a(), adapter.b(), adapter.magnitude()});
  const std::string prefix = isAdapter ? adapterPrefix : "";
  size_t converted = 0, encoded = 0;
  for (const auto &[name, array] : *arrays)
    unused.insert(name);
  for (const Tensor &tensor : session.persistent()) {
    const plan::Binding &binding = *tensor.binding;
    const plan::ParameterSource *source = findSource(session.plan(), binding.name());
    const bool isParameter = binding.kind() == plan::Binding::PARAM;
    if ((!isParameter && (!source || startsAsNorm(session.plan(), binding))) || isScales(source))
      continue; // optimizer state begins as it does
    const HostArray *array = nullptr;
    std::vector<std::string> names = {binding.name()};
    if (source)
      names.insert(names.end(), source->tied_names().begin(), source->tied_names().end());
    if (isAdapter)
      names.push_back(baseLayerName(binding.name()));
    for (const std::string &name : names)
      if (auto found = arrays->find(prefix + name); found != arrays->end()) {
        unused.erase(found->first);
        if (array && !isSame(*array, found->second))
          return badInput("'" + printable(name) + "' is not '" + printable(binding.name()) +
                              "', and the artifact holds both as one (tied): export the module in which they are two",
                          path);
        array = array ? array : &found->second;
      }
    if (!array) {
      // Of the model itself PEFT saves what is trained; of pairs a framework's own file holds nothing.
      if (isAdapter ? pairs.count(binding.name()) : isParameter && !pairs.count(binding.name()))
        missing.insert(binding.name());
      else if (isAdapter ? isParameter : !isParameter)
        kept.insert(binding.name());
      continue;
    }
    const std::optional<CodedTensor> coded = findCoded(session, tensor, source);
    const std::vector<int64_t> dims = coded ? codedDims(*source) : originalDims(binding, source);
    const plan::DType dtype = coded ? plan::F32 : binding.dtype();
    const bool fits = array->dtype == dtype || (isFloat(array->dtype) && isFloat(dtype));
    if (array->dims != dims || !fits)
      return badInput("tensor '" + printable(binding.name()) + "' is " + describe(array->dtype, array->dims) +
                          ", the artifact has " + describe(dtype, dims),
                      path);
    assignments.push_back({tensor, source, *array, coded});
    if (array->dtype == dtype)
      continue;
    Expected<HostArray> made = convert(*array, dtype);
    if (!made)
      return badInput("tensor '" + printable(binding.name()) + "': " + made.status().str(), path);
    assignments.back().array = std::move(*made);
    ++converted;
  }
  if (!missing.empty())
    return badInput("has no " + listSome(missing) + "; it holds " +
                        (unused.empty() ? "nothing else" : listSome(unused)) + ", and names must be those of " +
                        (isAdapter ? "the layers that --lora named" : "the exported module"),
                    path);
  for (const plan::ParameterSource &source : session.plan().sources())
    if (auto found = arrays->find(source.name()); !isAdapter && isCounter(source) && found != arrays->end()) {
      unused.erase(found->first);
      if (Status status = setCounter(session, source, found->second, /*steps=*/0); !status.isOk())
        return std::move(status).at(path);
    }
  std::set<std::string> homeless;
  for (const std::string &name : unused)
    if (isAdapter && name.find(".lora_") != std::string::npos)
      homeless.insert(name);
  if (!homeless.empty())
    return badInput("holds pairs that the artifact has no place for: " + listSome(homeless) +
                        "; compile with --lora for these layers, too",
                    path);
  LOWTIDE_TRY(session.download());
  for (const Assignment &assignment : assignments) {
    LOWTIDE_TRY(assignment.coded ? restore(assignment.array, *assignment.coded, *assignment.source)
                                 : restore(assignment.array, assignment.tensor, assignment.source));
    encoded += assignment.coded.has_value();
  }
  LOWTIDE_TRY(initializeNorms(session, /*withMagnitudes=*/!isAdapter));
  Expected<std::optional<NotFinite>> notFinite = findNotFinite(session);
  if (!notFinite)
    return notFinite.takeStatus();
  if (*notFinite)
    return Status(StatusCode::NonFinite, (*notFinite)->str() + ": no run can start from there", path);
  LOWTIDE_TRY(session.upload());
  if (converted)
    notes.push_back(path + ": " + std::to_string(converted) + " tensors were converted to the artifact's type");
  if (encoded)
    notes.push_back(path + ": " + std::to_string(encoded) + " frozen matrices were encoded as the artifact holds them");
  if (!kept.empty())
    notes.push_back(path + " has no " + listSome(kept) + ", which the step keeps as the model file has them");
  if (const std::set<std::string> others = findOtherConstants(session, *arrays, unused); !others.empty())
    notes.push_back(path + " has other numbers for " + listSome(others) +
                    ", which the step computes with as the model file has them: export the module again for these");
  if (!unused.empty())
    notes.push_back(path + ": the step does not read " + listSome(unused));
  return Status::ok();
}

} // namespace

Status loadInitialState(Session &session, const std::string &path, std::vector<std::string> &notes) {
  return load(session, path, /*isAdapter=*/false, notes);
}

Status loadAdapterTensors(Session &session, const std::string &path, std::vector<std::string> &notes) {
  return load(session, path, /*isAdapter=*/true, notes);
}

} // namespace lowtide::rt
