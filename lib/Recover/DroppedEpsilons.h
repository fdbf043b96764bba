//===- DroppedEpsilons.h - small numbers that an optimizer dropped ----------------------===//

#ifndef LOWTIDE_LIB_IMPORT_LOSTSUMS_H
#define LOWTIDE_LIB_IMPORT_LOSTSUMS_H

#include "onnx/onnx_pb.h"

#include <string>
#include <vector>

namespace lowtide {

/// Puts back the additions of a small number that the exporter's optimizer took for additions of zero, in front of the
/// operations that have no value or no derivative at zero: those still name the sum. Returns the names of the sums.
std::vector<std::string> restoreDroppedEpsilons(::onnx::GraphProto &graph);

/// Puts back the sums and means over losses that are not reduced: the exporter states that those are numbers, and drops
/// what reduces a number. Their readers, or the program's signature, still name them. Returns the names.
std::vector<std::string> restoreLostReductions(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_LOSTSUMS_H
