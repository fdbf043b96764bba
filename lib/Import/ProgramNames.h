//===- ProgramNames.h - what the exported program called what a node reads -------===//

#ifndef LOWTIDE_LIB_IMPORT_PROGRAMNAMES_H
#define LOWTIDE_LIB_IMPORT_PROGRAMNAMES_H

#include "Evidence.h"

namespace lowtide {

/// Exporters merge nodes and tensors that are equal, and keep the notes of whoever reads them: two reads of one value
/// that the program calls `exp` and `sub` were two values.
class ProgramNames {
public:
  ProgramNames(const ::onnx::GraphProto &graph, const Signature &signature);

  /// What the program called operand `operand` of `node`; empty: the notes do not tell.
  std::string find(const ::onnx::NodeProto &node, int operand) const;
  /// Whether the file has no value, tensor or parameter of this name.
  bool isLost(llvm::StringRef name) const { return !known.contains(name) && !signature.findPlaceholder(name); }
  /// Whether some node's operation reads the parameter.
  bool isMentioned(const SignatureEntry &entry) const { return mentioned.contains(entry.placeholder); }

private:
  const Signature &signature;
  llvm::StringSet<> known, integers, mentioned;
};

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_PROGRAMNAMES_H
