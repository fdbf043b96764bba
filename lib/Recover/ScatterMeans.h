//===- ScatterMeans.h - means of what is scattered to one place ------------------===//

#ifndef LOWTIDE_LIB_RECOVER_SCATTERMEANS_H
#define LOWTIDE_LIB_RECOVER_SCATTERMEANS_H

#include "onnx/onnx_pb.h"

#include <string>
#include <vector>

namespace lowtide {

/// Puts means back into scatters whose notes ask for them (`scatter_reduce`), by nodes that are not in order yet
/// (sortNodes). Returns the names of their results.
std::vector<std::string> restoreScatterMeans(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_SCATTERMEANS_H
