//===- StraightThrough.h - differences that a program detaches ---------------------===//

#ifndef LOWTIDE_LIB_RECOVER_STRAIGHTTHROUGH_H
#define LOWTIDE_LIB_RECOVER_STRAIGHTTHROUGH_H

#include "onnx/onnx_pb.h"

#include <string>
#include <vector>

namespace lowtide {

/// In files without notes: detaches the difference in `h + (q - h)`, where q is made of h or h of q. Returns the
/// results of the sums.
std::vector<std::string> restoreStraightThrough(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_STRAIGHTTHROUGH_H
