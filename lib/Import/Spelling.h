//===- Spelling.h - one way of saying what can be said in several ----------------===//

#ifndef LOWTIDE_LIB_IMPORT_SPELLING_H
#define LOWTIDE_LIB_IMPORT_SPELLING_H

namespace onnx {
class ModelProto;
} // namespace onnx

namespace lowtide {

/// Writes the standard domain as an empty name, each operator set once where the file lists it twice in one version,
/// sizes of -1, which some exporters write for what is open, as no size, and batch norms in the training form of sets
/// below 14 in that of the file's set.
void normalizeSpelling(::onnx::ModelProto &model);

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_SPELLING_H
