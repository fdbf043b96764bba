//===- Outputs.cpp - what a step computed, as a file -----------------------===//

#include "Outputs.h"

#include "runtime/checkpoint/Safetensors.h"

namespace lowtide::run {

using namespace lowtide::rt;

Status dumpOutputs(const Session &session, const std::string &entry, const std::string &path) {
  LOWTIDE_TRY(session.download(entry));
  std::vector<SafetensorsEntry> entries;
  for (plan::Binding::Kind kind : {plan::Binding::METRIC, plan::Binding::OUTPUT, plan::Binding::GRADIENT})
    for (const Tensor &tensor : session.tensors(entry, kind)) {
      const plan::Binding &binding = *tensor.binding;
      entries.push_back({binding.name(),
                         binding.dtype(),
                         {binding.dims().begin(), binding.dims().end()},
                         tensor.bytes(),
                         [tensor](const SafetensorsEntry::Sink &sink) { return sink(tensor.data, tensor.bytes()); }});
    }
  return writeSafetensors(path, entries);
}

} // namespace lowtide::run
