//===- InitialState.cpp - first values from a framework's own file ---------===//

#include "runtime/checkpoint/InitialState.h"

#include "runtime/Element.h"
#include "runtime/MappedFile.h"
#include "runtime/checkpoint/FrameworkTensor.h"

#include <map>
#include <set>

namespace lowtide::rt {
namespace {

bool isFloat(plan::DType dtype) {
  return dtype == plan::F32 || dtype == plan::F64 || dtype == plan::F16 || dtype == plan::BF16;
}

/// The same numbers in another float type.
HostArray convert(const HostArray &from, plan::DType to) {
  const size_t width = elementBytes(from.dtype), wanted = elementBytes(to), count = from.bytes.size() / width;
  auto bytes = std::make_shared<std::vector<uint8_t>>(count * wanted);
  for (size_t i = 0; i < count; ++i)
    storeElement(to, bytes->data() + i * wanted, loadElement(from.dtype, from.bytes.data() + i * width));
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

} // namespace

Status loadInitialState(Session &session, const std::string &path, std::vector<std::string> &notes) {
  Expected<MappedFile> mapped = MappedFile::open(path);
  if (!mapped)
    return mapped.takeStatus();
  auto file = std::make_shared<MappedFile>(std::move(*mapped));
  Expected<std::vector<NamedArray>> parsed = parseSafetensors(file->bytes(), file);
  if (!parsed)
    return parsed.takeStatus().at(path);
  std::map<std::string, HostArray> arrays;
  for (NamedArray &entry : *parsed)
    arrays.emplace(entry.name, std::move(entry.array));

  struct Assignment {
    Tensor tensor;
    const plan::ParameterSource *source;
    const HostArray *array;
  };
  std::vector<Assignment> assignments;
  std::set<std::string> missing, kept, unused;
  size_t converted = 0;
  for (const auto &[name, array] : arrays)
    unused.insert(name);
  for (const Tensor &tensor : session.persistent()) {
    const plan::Binding &binding = *tensor.binding;
    const plan::ParameterSource *source = findSource(session.plan(), binding.name());
    const bool isParameter = binding.kind() == plan::Binding::PARAM;
    if (!isParameter && !source)
      continue; // optimizer state begins as it does
    const HostArray *array = nullptr;
    std::vector<std::string> names = {binding.name()};
    if (source)
      names.insert(names.end(), source->tied_names().begin(), source->tied_names().end());
    for (const std::string &name : names)
      if (auto found = arrays.find(name); found != arrays.end()) {
        unused.erase(name);
        array = array ? array : &found->second;
      }
    if (!array) {
      (isParameter ? missing : kept).insert(binding.name());
      continue;
    }
    const std::vector<int64_t> dims = originalDims(binding, source);
    const bool fits = array->dtype == binding.dtype() || (isFloat(array->dtype) && isFloat(binding.dtype()));
    if (array->dims != dims || !fits)
      return badInput("tensor '" + printable(binding.name()) + "' is " + describe(array->dtype, array->dims) +
                          ", the artifact has " + describe(binding.dtype(), dims),
                      path);
    converted += array->dtype != binding.dtype();
    assignments.push_back({tensor, source, array});
  }
  if (!missing.empty())
    return badInput("has no " + listSome(missing) + "; it holds " +
                        (unused.empty() ? "nothing else" : listSome(unused)) +
                        ", and names must be those of the exported module",
                    path);
  LOWTIDE_TRY(session.download());
  for (const Assignment &assignment : assignments) {
    const plan::DType wanted = assignment.tensor.binding->dtype();
    LOWTIDE_TRY(restore(assignment.array->dtype == wanted ? *assignment.array : convert(*assignment.array, wanted),
                        assignment.tensor, assignment.source));
  }
  LOWTIDE_TRY(session.upload());
  if (converted)
    notes.push_back(path + ": " + std::to_string(converted) + " tensors were converted to the artifact's type");
  if (!kept.empty())
    notes.push_back(path + " has no " + listSome(kept) + ", which the step keeps as the model file has them");
  if (!unused.empty())
    notes.push_back(path + ": the step does not read " + listSome(unused));
  return Status::ok();
}

} // namespace lowtide::rt
