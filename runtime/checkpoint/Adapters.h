//===- Adapters.h - low-rank pairs in PEFT's files, and merged -------------===//
//
// adapter_model.safetensors and adapter_config.json as PEFT's `save_pretrained` writes them: a checkpoint of a run that
// trains pairs is a folder for `PeftModel.from_pretrained`.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_CHECKPOINT_ADAPTERS_H
#define LOWTIDE_RUNTIME_CHECKPOINT_ADAPTERS_H

#include "runtime/Session.h"
#include "runtime/checkpoint/Manifest.h"

#include <string>
#include <vector>

namespace lowtide::rt {

/// What PEFT puts in front of a module's name.
inline constexpr const char *adapterPrefix = "base_model.model.";

/// What PEFT calls a parameter of a layer that has a pair: fc.base_layer.bias for fc.bias.
std::string baseLayerName(const std::string &name);

/// alpha / rank, or alpha / √rank; `rank` is the first dimension of the pair's A.
double adapterScale(const plan::Adapter &adapter, int64_t rank);

/// Writes both files into `folder`: pairs and magnitudes, biases of their layers that are trained, and the tensors of
/// modules in which something else is trained.
Status writeAdapter(const Session &session, const std::string &folder);

/// Sets the constants that are norms of weights (plan.Adapter.norm) to what the weights of a session have now, on the
/// host, and `withMagnitudes` what is trained from there on.
Status initializeNorms(const Session &session, bool withMagnitudes);

/// Whether `path` is a folder, or a file of PEFT's name, that `loadAdapter` is to read.
bool isAdapterPath(const std::string &path);
/// Sets the pairs of a bound session to what PEFT's files hold (a folder with both, or adapter_model.safetensors
/// alone), and what else is trained where it is there. Refuses pairs that the artifact lacks or has in another shape,
/// and a configuration with another scale, with magnitudes where there are none, or of pairs that mean something else
/// than a sum with the model file's weights. Everything is looked at before
/// anything is changed; `notes` says what was kept.
Status loadAdapter(Session &session, const std::string &path, std::vector<std::string> &notes);

/// A weight with its pair added, and its outputs of the magnitudes that are trained, in the layout and type of its
/// binding.
struct MergedWeight {
  const plan::Binding *binding;
  std::vector<uint8_t> bytes;
  Tensor tensor() { return {binding, bytes.data()}; }
};
/// All weights that have a pair. Refuses one that something reads without the pair.
Expected<std::vector<MergedWeight>> mergeAdapters(const Session &session);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CHECKPOINT_ADAPTERS_H
