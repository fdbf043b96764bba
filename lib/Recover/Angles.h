//===- Angles.h - angles of vectors along an axis ---------------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_ANGLES_H
#define LOWTIDE_LIB_RECOVER_ANGLES_H

#include "onnx/onnx_pb.h"

namespace lowtide {

/// `atan2(y, x)` as PyTorch's exporters write it, by atan(y / x): written so that it also holds where y or x is zero,
/// with PyTorch's gradients.
void restoreAngles(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_ANGLES_H
