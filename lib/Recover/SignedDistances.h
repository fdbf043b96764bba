//===- SignedDistances.h - distances that lost their absolute values --------------===//

#ifndef LOWTIDE_LIB_RECOVER_SIGNEDDISTANCES_H
#define LOWTIDE_LIB_RECOVER_SIGNEDDISTANCES_H

#include "onnx/onnx_pb.h"

#include <string>
#include <vector>

namespace lowtide {

/// Roots of sums of powers of differences, of an order at which the sign of a difference counts: PyTorch's old exporter
/// writes distances (`cdist`, `pairwise_distance`) so. Returns the names of the roots.
std::vector<std::string> findSignedDistances(const ::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_SIGNEDDISTANCES_H
