//===- KeptDimensions.h - dimensions that a program's squeeze leaves --------------===//

#ifndef LOWTIDE_LIB_RECOVER_KEPTDIMENSIONS_H
#define LOWTIDE_LIB_RECOVER_KEPTDIMENSIONS_H

#include "onnx/onnx_pb.h"

namespace lowtide {

/// PyTorch's `squeeze(dim)` leaves a dimension of another size than one, where ONNX's `Squeeze` is an error. Takes such
/// dimensions out of what the exporter wrote for it.
void restoreKeptDimensions(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_KEPTDIMENSIONS_H
