//===- LabelSmoothing.h - a part of cross-entropies that an exporter drops -------===//

#ifndef LOWTIDE_LIB_RECOVER_LABELSMOOTHING_H
#define LOWTIDE_LIB_RECOVER_LABELSMOOTHING_H

#include "onnx/onnx_pb.h"

#include <string>
#include <vector>

namespace lowtide {

/// Puts label smoothing back into the cross-entropies whose notes ask for it, by nodes that are not in order yet
/// (sortNodes). Returns the names of these losses.
std::vector<std::string> restoreLabelSmoothing(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_LABELSMOOTHING_H
