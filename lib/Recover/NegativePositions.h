//===- NegativePositions.h - positions from the end, which an exporter adds wrongly -===//

#ifndef LOWTIDE_LIB_RECOVER_NEGATIVEPOSITIONS_H
#define LOWTIDE_LIB_RECOVER_NEGATIVEPOSITIONS_H

#include "onnx/onnx_pb.h"

#include <string>
#include <vector>

namespace lowtide {

/// Results of indexing by several tensors (`x[rows, columns]`) as PyTorch's old exporter writes it, where one of the
/// tensors is a constant with negative positions: it adds rows · width and columns, which reads other elements.
std::vector<std::string> findNegativePositions(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_NEGATIVEPOSITIONS_H
