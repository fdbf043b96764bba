//===- TensorFiles.h - parameters and state of a checkpoint ----------------===//
#ifndef LOWTIDE_RUNTIME_CHECKPOINT_TENSORFILES_H
#define LOWTIDE_RUNTIME_CHECKPOINT_TENSORFILES_H

#include "runtime/Session.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/data/HostArray.h"

#include <map>
#include <span>
#include <vector>

namespace lowtide::rt {

/// Writes params.safetensors and optimizer.safetensors: what the host sees of the session now, after `steps` steps.
Status writeTensorFiles(const Session &session, int64_t steps, const std::string &checkpoint);

/// The two files, mapped; looked at before anything of a session is changed.
class TensorFiles {
public:
  static Expected<TensorFiles> open(const std::string &checkpoint);

  /// Whether the session takes them; nothing: it does. `isOtherModel`: both were made from files, and not from one.
  std::optional<Refusal> check(const Session &session, bool isOtherModel) const;
  /// Copies into the session what `check` found right, also parameters that its artifact only reads, and hands it to
  /// the device. The files are of `steps` steps.
  Status restore(Session &session, int64_t steps) const;
  /// Optimizer state that the session has no place for; empty: there is none.
  std::string unused(const Session &session) const;

private:
  const HostArray *find(const Session &session, const Tensor &tensor) const;
  const plan::ParameterSource *layoutOf(const Session &session, std::span<const Tensor> tensors,
                                        const Tensor &tensor) const;

  std::string checkpoint_;
  std::map<std::string, HostArray> arrays_[2]; ///< parallel to checkpointFiles
  bool holdsStateAsStored_ = false;            ///< not in the layout of the parameters: of an older format
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CHECKPOINT_TENSORFILES_H
