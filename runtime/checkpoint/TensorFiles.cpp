//===- TensorFiles.cpp - parameters and state of a checkpoint --------------===//

#include "runtime/checkpoint/TensorFiles.h"

#include "runtime/Element.h"
#include "runtime/ShellQuote.h"
#include "runtime/checkpoint/Adapters.h"
#include "runtime/checkpoint/Finite.h"
#include "runtime/checkpoint/FrameworkTensor.h"

#include <algorithm>

namespace lowtide::rt {
namespace {

/// Which file a tensor goes to: 0 parameters and buffers, 1 optimizer state.
int fileOf(const Session &session, const Tensor &tensor) {
  const bool isFramework =
      tensor.binding->kind() != plan::Binding::STATE || findSource(session.plan(), tensor.binding->name());
  return isFramework ? 0 : 1;
}

} // namespace

Status writeTensorFiles(const Session &session, int64_t steps, const std::string &checkpoint) {
  std::vector<SafetensorsEntry> entries[2];
  const std::vector<Tensor> tensors = session.persistent();
  for (const Tensor &tensor : tensors)
    if (tensor.binding->kind() != plan::Binding::CONSTANT) {
      SafetensorsEntry entry =
          frameworkEntry(tensor.binding->name(), tensor, findLayout(session.plan(), tensors, *tensor.binding));
      entry.write = [&session, tensor, write = std::move(entry.write)](const SafetensorsEntry::Sink &sink) -> Status {
        LOWTIDE_TRY(write(sink));
        return session.leave(tensor);
      };
      entries[fileOf(session, tensor)].push_back(std::move(entry));
    }
  // With pairs the model stays what it was, and may be large: a checkpoint holds what is trained, and PEFT's files.
  const bool hasPairs = session.plan().adapters_size() != 0;
  if (hasPairs)
    LOWTIDE_TRY(writeAdapter(session, checkpoint));
  else
    addSavedEntries(session, steps, entries[0]);
  for (int i = 0; i < 2; ++i)
    LOWTIDE_TRY(writeSafetensors(checkpoint + "/" + checkpointFiles[i], entries[i], {{"format", "pt"}}));
  return Status::ok();
}

Expected<TensorFiles> TensorFiles::open(const std::string &checkpoint) {
  TensorFiles files;
  files.checkpoint_ = checkpoint;
  files.holdsStateAsStored_ = manifestFormat(checkpoint) < layoutFormat;
  for (int i = 0; i < 2; ++i) {
    Expected<std::map<std::string, HostArray>> arrays = readSafetensors(checkpoint + "/" + checkpointFiles[i]);
    if (!arrays)
      return arrays.takeStatus();
    files.arrays_[i] = std::move(*arrays);
  }
  return files;
}

const HostArray *TensorFiles::find(const Session &session, const Tensor &tensor) const {
  const auto &arrays = arrays_[fileOf(session, tensor)];
  auto found = arrays.find(tensor.binding->name());
  return found == arrays.end() ? nullptr : &found->second;
}

const plan::ParameterSource *TensorFiles::layoutOf(const Session &session, std::span<const Tensor> tensors,
                                                   const Tensor &tensor) const {
  return holdsStateAsStored_ ? findSource(session.plan(), tensor.binding->name())
                             : findLayout(session.plan(), tensors, *tensor.binding);
}

std::optional<Refusal> TensorFiles::check(const Session &session, bool isOtherModel) const {
  auto refuse = [&](Unloadable why, int file, std::string words) {
    const StatusCode code = why == Unloadable::NotFinite ? StatusCode::NonFinite : StatusCode::BadInput;
    return Refusal{why, Status(code, std::move(words), checkpoint_ + "/" + checkpointFiles[file])};
  };
  // Which does, where the parameters are those of the artifact.
  auto adviseWeights = [&] {
    return "; --init=" + quoteForShell(checkpoint_ + "/" + checkpointFiles[0]) + " starts from its weights";
  };
  std::map<std::string, bool> known;
  std::optional<Refusal> notFinite;
  const std::vector<Tensor> tensors = session.persistent();
  for (const Tensor &tensor : tensors) {
    const plan::Binding &binding = *tensor.binding;
    const bool isConstant = binding.kind() == plan::Binding::CONSTANT;
    const std::string name = "tensor '" + printable(binding.name()) + "'";
    const int file = fileOf(session, tensor);
    const HostArray *array = find(session, tensor);
    known[binding.name()] = true;
    if (!array) {
      if (isConstant)
        continue;
      return refuse(Unloadable::OtherModel, file,
                    "has no " + name + ": it is of another model" +
                        (file ? " or optimizer" + adviseWeights() : std::string()));
    }
    const plan::ParameterSource *source = layoutOf(session, tensors, tensor);
    const std::optional<CodedTensor> coded = findCoded(session, tensor, source);
    std::vector<int64_t> dims = coded ? codedDims(*source) : originalDims(binding, source);
    const plan::DType dtype = coded ? plan::F32 : binding.dtype();
    const std::string both =
        name + " is " + describe(array->dtype, array->dims) + " there, " + describe(dtype, dims) + " in the artifact: ";
    if (coded ? array->dims != dims : !fitsShape(*array, binding, source))
      return refuse(Unloadable::OtherModel, file, both + "it is of another model");
    if (array->dtype != dtype)
      return refuse(Unloadable::OtherPrecision, file, both + "it is of another precision" + adviseWeights());
    if (std::optional<uint64_t> at = firstNotFinite(array->dtype, array->bytes.data(), array->bytes.size());
        at && !notFinite && !startsNotFinite(session.artifact(), binding))
      notFinite = refuse(Unloadable::NotFinite, file,
                         NotFinite{binding.name(), binding.kind(), *at,
                                   loadElement(array->dtype, array->bytes.data() + *at * elementBytes(array->dtype))}
                             .str());
  }
  for (const plan::ParameterSource &source : session.plan().sources()) {
    known[source.name()] = true;
    for (const std::string &name : source.tied_names())
      known[name] = true;
  }
  if (isOtherModel)
    for (const auto &[name, array] : arrays_[0])
      if (!known.count(name))
        return refuse(Unloadable::OtherModel, 0,
                      "has a tensor '" + printable(name) + "' that the artifact lacks: it is of another model");
  return notFinite;
}

Status TensorFiles::restore(Session &session, int64_t steps) const {
  // What an older version wrote in another form counts from where the plan says.
  for (const plan::ParameterSource &source : session.plan().sources())
    if (auto found = arrays_[0].find(source.name()); isCounter(source) && found != arrays_[0].end())
      (void)setCounter(session, source, found->second, steps);
  LOWTIDE_TRY(session.download());
  const std::vector<Tensor> tensors = session.persistent();
  for (const Tensor &tensor : tensors)
    if (const HostArray *array = find(session, tensor)) {
      const plan::ParameterSource *source = layoutOf(session, tensors, tensor);
      const std::optional<CodedTensor> coded = findCoded(session, tensor, source);
      LOWTIDE_TRY(coded ? rt::restore(*array, *coded, *source) : rt::restore(*array, tensor, source));
      LOWTIDE_TRY(session.leave(tensor));
    }
  LOWTIDE_TRY(initializeNorms(session, /*withMagnitudes=*/false));
  return session.upload();
}

std::string TensorFiles::unused(const Session &session) const {
  std::map<std::string, bool> known;
  for (const Tensor &tensor : session.persistent())
    known[tensor.binding->name()] = true;
  auto other =
      std::find_if(arrays_[1].begin(), arrays_[1].end(), [&](const auto &each) { return !known.count(each.first); });
  return other == arrays_[1].end() ? std::string() : other->first;
}

} // namespace lowtide::rt
