//===- ExportOnnx.h - trained weights back into the user's own model -------===//
#ifndef LOWTIDE_RUNTIME_CHECKPOINT_EXPORTONNX_H
#define LOWTIDE_RUNTIME_CHECKPOINT_EXPORTONNX_H

#include "runtime/Session.h"

#include <string>
#include <vector>

namespace lowtide::rt {

/// Writes a copy of the ONNX file `model` to `target` in which the initializers named by the plan's source map hold the
/// session's parameters and buffers. Values are replaced where they lie, in the model or in copies of its external data
/// files: under their names in another folder, under the target's with `.data` next to the model. Parameters that the
/// exporter had merged into one initializer and that training has driven apart get initializers of their own, and what
/// the exporter had evaluated from parameters is what the entries `export`, `export_2`, … compute of them; nothing else
/// in the file changes. Outputs of other entries are gone afterwards.
///
/// With `mergesAdapters`, weights that have a low-rank pair are written with it added; without, a session that has
/// pairs is refused, for the file has no place for them.
///
/// Refuses a model other than the one that was compiled, initializers that are missing or of another size, and changed
/// parameters of which the file holds an image that no entry computes.
Status exportOnnx(Session &session, const std::string &model, const std::string &target,
                  std::vector<std::string> &notes, bool mergesAdapters = false);

/// What of this can be refused before the session has trained: pairs without a place, another model, a target that
/// cannot be written.
Status checkExport(const Session &session, const std::string &model, const std::string &target,
                   bool mergesAdapters = false);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CHECKPOINT_EXPORTONNX_H
