//===- Spelling.h - one way of saying what can be said in several ----------------===//

#ifndef LOWTIDE_LIB_IMPORT_SPELLING_H
#define LOWTIDE_LIB_IMPORT_SPELLING_H

namespace onnx {
class ModelProto;
} // namespace onnx

namespace lowtide {

/// Writes the standard domain as an empty name, each operator set once where the file lists it twice in one version,
/// and sizes of -1, which some exporters write for what is open, as no size.
void normalizeSpelling(::onnx::ModelProto &model);

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_SPELLING_H
