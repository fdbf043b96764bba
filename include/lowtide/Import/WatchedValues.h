//===- WatchedValues.h - what modules return, as outputs of a model ---------------===//

#ifndef LOWTIDE_IMPORT_WATCHEDVALUES_H
#define LOWTIDE_IMPORT_WATCHEDVALUES_H

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

/// Makes outputs of the model of all values that leave a module, as far as exporters say where a node came from
/// (`pkg.torch.onnx.name_scopes`, or names of PyTorch's old exporter). Outputs that it has already are among the
/// result. Empty: the file names no module.
std::vector<WatchedValue> watchModules(::onnx::ModelProto &model);

} // namespace lowtide

#endif // LOWTIDE_IMPORT_WATCHEDVALUES_H
