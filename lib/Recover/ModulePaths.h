//===- ModulePaths.h - where a module is, in files of PyTorch's old exporter -----===//

#ifndef LOWTIDE_LIB_RECOVER_MODULEPATHS_H
#define LOWTIDE_LIB_RECOVER_MODULEPATHS_H

#include "lowtide/Recover/Evidence.h"

namespace lowtide {

/// Scopes of the old exporter list the modules that were called. A program that calls `self.model.decoder` itself
/// skips one: `/decoder/fc/MatMul` reads `model.decoder.fc.weight`. Parameters that kept their names tell where modules
/// are, those around them included.
class ModulePaths {
public:
  explicit ModulePaths(const ::onnx::GraphProto &graph);

  /// The path of the module whose scope is `scope`; `scope` itself where nothing else is known.
  std::string find(llvm::StringRef scope) const;
  /// The module that computed the value `name`; nullopt where the name does not tell.
  std::optional<std::string> findOfValue(llvm::StringRef name) const;
  /// Notes the path of each node that its name does not tell.
  void annotate(::onnx::GraphProto &graph) const;

private:
  void learn(llvm::StringRef scope, llvm::StringRef module);

  /// By scope; empty: parameters disagree.
  llvm::StringMap<std::string> paths;
};

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_MODULEPATHS_H
