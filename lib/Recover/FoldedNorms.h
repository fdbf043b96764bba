//===- FoldedNorms.h - batch norms that cleaners folded away ----------------------===//

#ifndef LOWTIDE_LIB_RECOVER_FOLDEDNORMS_H
#define LOWTIDE_LIB_RECOVER_FOLDEDNORMS_H

#include "onnx/onnx_pb.h"

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace lowtide {

class ModelView;
class Signature;

/// Batch norms that a cleaner folded into the layer before.
struct FoldedNorms {
  /// Their modules, or what is left of their names.
  std::vector<std::string> certain;
  /// Layers whose weights were evaluated, for which there is no other reason.
  std::vector<std::string> likely;
};

/// Reads the names that onnxruntime, onnxslim, onnx-simplifier and onnxscript leave, in files without the
/// program's signature.
FoldedNorms findFoldedNorms(const ::onnx::ModelProto &model);
/// Whether an instance norm of the program reads the statistic, of which its node keeps nothing.
bool normalizesSamples(const ::onnx::GraphProto &graph, llvm::StringRef statistic);
/// Warns about them.
void reportFoldedNorms(ModelView &file);
/// Warns about `modules`, batch norms that are gone from a file with the program's signature, and about those of which
/// one call of several is gone: a layer's notes are a batch norm's then.
void reportFoldedNorms(ModelView &file, const Signature &signature, std::vector<std::string> modules,
                       llvm::StringRef remedy);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_FOLDEDNORMS_H
