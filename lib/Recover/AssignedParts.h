//===- AssignedParts.h - what a program writes into parts of its buffers ----------===//

#ifndef LOWTIDE_LIB_RECOVER_ASSIGNEDPARTS_H
#define LOWTIDE_LIB_RECOVER_ASSIGNEDPARTS_H

#include "onnx/onnx_pb.h"

#include <string>
#include <vector>

namespace lowtide {

/// `buffer[:n] = h.detach()` is a copy of what was detached, and the exporter's optimizer removes both: who writes the
/// part names the copy only. A buffer that kept a gradient would end the next step, so that what is written has none.
/// Puts a `detach` in front of those that write, and returns their results.
std::vector<std::string> detachAssignedParts(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_ASSIGNEDPARTS_H
