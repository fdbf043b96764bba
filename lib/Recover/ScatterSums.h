//===- ScatterSums.h - sums that an exporter wrote as assignments -----------------===//

#ifndef LOWTIDE_LIB_RECOVER_SCATTERSUMS_H
#define LOWTIDE_LIB_RECOVER_SCATTERSUMS_H

#include "onnx/onnx_pb.h"

namespace lowtide {

/// Lets a `ScatterElements` without notes that writes onto zeros, and that is only added to something, add up what
/// meets at one place.
void restoreScatterSums(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_SCATTERSUMS_H
