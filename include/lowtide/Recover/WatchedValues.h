//===- WatchedValues.h - what modules return, as outputs of a model ---------------===//

#ifndef LOWTIDE_RECOVER_WATCHEDVALUES_H
#define LOWTIDE_RECOVER_WATCHEDVALUES_H

#include <string>
#include <vector>

namespace onnx {
class ModelProto;
} // namespace onnx

namespace lowtide {

/// A value that a module computes and another one reads.
struct WatchedValue {
  std::string name;
  /// Paths of the modules that it leaves, `h.0`, `h.0.mlp`: each of them may return it.
  std::vector<std::string> modules;
};

/// All values that leave a module, in the order of their nodes, as far as exporters say where a node came from
/// (`pkg.torch.onnx.name_scopes`, or names of PyTorch's old exporter). Empty: the file names no module.
std::vector<WatchedValue> findModuleOutputs(const ::onnx::ModelProto &model);

/// Makes values outputs of the model, and returns those that were none before.
std::vector<std::string> addOutputs(::onnx::ModelProto &model, const std::vector<std::string> &names);

} // namespace lowtide

#endif // LOWTIDE_RECOVER_WATCHEDVALUES_H
