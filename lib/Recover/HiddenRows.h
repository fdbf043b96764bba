//===- HiddenRows.h - queries whose keys a mask hides all -------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_HIDDENROWS_H
#define LOWTIDE_LIB_RECOVER_HIDDENROWS_H

#include "onnx/onnx_pb.h"

namespace lowtide {

/// Hides keys in attention by −∞ where the program's masks are truth values and the exporter wrote the lowest finite
/// number, so that a query without keys has zeros for weights, as in the program.
void restoreHiddenRows(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_HIDDENROWS_H
