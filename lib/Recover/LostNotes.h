//===- LostNotes.h - files of PyTorch's current exporter without its notes --------===//

#ifndef LOWTIDE_LIB_RECOVER_LOSTNOTES_H
#define LOWTIDE_LIB_RECOVER_LOSTNOTES_H

#include "Classifier.h"

namespace onnx {
class ModelProto;
} // namespace onnx

namespace lowtide {

/// What rewrites files of exporters. Some leave no trace of themselves.
enum class Cleaner { None, Simplifier, Extractor, Merger, OnnxRuntime, OnnxSlim, Untraced };

/// What rewrote a file of PyTorch's current exporter and removed the program's signature. None: the signature is there,
/// or the exporter is another.
Cleaner findCleaner(const ::onnx::ModelProto &model);

/// Whether PyTorch's current exporter or onnxslim gives such names to what an operation computes (`embedding_1`,
/// `val_62_weight`), and no program to a parameter of a module.
bool isNameOfValue(llvm::StringRef name);

/// Warns about what a file without the exporter's notes does not tell, by names: parameters that are trained under
/// other names than the program's, and tensors that may stand for several parameters.
void reportLostNotes(ModelView &file, llvm::ArrayRef<InitializerInfo> infos);

/// Warns about dropout of which a cleaner left nothing but the name of its result, by modules or by the operations that
/// give what it gave; whatever the exporter.
void reportRemovedDropout(ModelView &file);
/// Warns about sums and products that a cleaner removed from files of PyTorch's old exporter, and perhaps parameters
/// with them.
void reportRemovedArithmetic(ModelView &file);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_LOSTNOTES_H
