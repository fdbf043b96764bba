//===- PoolDivisors.h - averages that are divided by a number of the program ------===//

#ifndef LOWTIDE_LIB_RECOVER_POOLDIVISORS_H
#define LOWTIDE_LIB_RECOVER_POOLDIVISORS_H

#include "onnx/onnx_pb.h"

#include <string>
#include <vector>

namespace lowtide {

/// Divides what is pooled by the number that the notes name (`divisor_override`), by nodes that are not in order yet
/// (sortNodes). Returns the names of the results.
std::vector<std::string> restorePoolDivisors(::onnx::GraphProto &graph);

/// Whether a divisor of the node's notes cannot be put back.
bool lacksDivisor(const ::onnx::NodeProto &node);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_POOLDIVISORS_H
