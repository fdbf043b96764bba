//===- Averages.cpp - averaged weights in the place of weights -------------===//

#include "runtime/checkpoint/Averages.h"

#include "runtime/Element.h"
#include "runtime/checkpoint/FrameworkTensor.h"

#include <map>

namespace lowtide::rt {

Expected<Averages> Averages::find(Session &session) {
  std::map<std::string, Tensor> tensors;
  for (const Tensor &tensor : session.persistent())
    tensors[tensor.binding->name()] = tensor;
  Averages found(session);
  for (const auto &[name, tensor] : tensors)
    if (auto average = tensors.find(name + ".ema"); tensor.binding->kind() == plan::Binding::PARAM &&
                                                    average != tensors.end() &&
                                                    average->second.binding->kind() == plan::Binding::STATE)
      found.pairs_.push_back({tensor, average->second, {}});
  auto updates = tensors.find("ema_updates");
  if (found.pairs_.empty() || updates == tensors.end())
    return Status(StatusCode::Usage, "the artifact keeps no averages of its weights: compile with --ema=0.999 and the "
                                     "entry train");
  found.updates_ = updates->second;
  return found;
}

/// The numbers of `from` in another float type.
static std::vector<uint8_t> convert(const Tensor &from, plan::DType to) {
  std::vector<uint8_t> numbers = from.read();
  const plan::DType dtype = from.binding->dtype();
  if (dtype == to)
    return numbers;
  const uint64_t width = elementBytes(dtype), count = numbers.size() / width;
  std::vector<uint8_t> converted(count * elementBytes(to));
  for (uint64_t i = 0; i < count; ++i)
    storeElement(to, converted.data() + i * elementBytes(to), loadElement(dtype, numbers.data() + i * width));
  return converted;
}

Status Averages::enter() {
  LOWTIDE_TRY(session_->download());
  LOWTIDE_TRY(updates_.bring(HostAccess::Read));
  const bool hasAny = loadElement(updates_.binding->dtype(), updates_.data) > 0;
  for (Pair &pair : pairs_) {
    LOWTIDE_TRY(pair.weight.bring(HostAccess::Change));
    LOWTIDE_TRY(pair.average.bring(HostAccess::Read));
    pair.kept = pair.weight.read();
    if (hasAny)
      pair.weight.write(convert(pair.average, pair.weight.binding->dtype()).data());
    LOWTIDE_TRY(session_->leave(pair.weight));
    LOWTIDE_TRY(session_->leave(pair.average));
  }
  return session_->upload();
}

Status Averages::leave() {
  LOWTIDE_TRY(session_->download());
  for (Pair &pair : pairs_) {
    LOWTIDE_TRY(pair.weight.bring(HostAccess::Overwrite));
    pair.weight.write(pair.kept.data());
    LOWTIDE_TRY(session_->leave(pair.weight));
    pair.kept = {};
  }
  return session_->upload();
}

Status Averages::write(const std::string &path, int64_t steps) {
  LOWTIDE_TRY(enter());
  LOWTIDE_TRY(session_->download());
  std::vector<SafetensorsEntry> entries;
  for (const Tensor &tensor : session_->persistent()) {
    const plan::ParameterSource *source = findSource(session_->plan(), tensor.binding->name());
    const bool isBuffer = tensor.binding->kind() == plan::Binding::STATE && source;
    if (tensor.binding->kind() == plan::Binding::PARAM || isBuffer)
      entries.push_back(frameworkEntry(tensor.binding->name(), tensor, source));
  }
  addSavedEntries(*session_, steps, entries);
  Status written = writeSafetensors(path, entries, {{"format", "pt"}});
  LOWTIDE_TRY(leave());
  return written;
}

} // namespace lowtide::rt
