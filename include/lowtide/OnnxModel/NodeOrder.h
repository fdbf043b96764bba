//===- NodeOrder.h - nodes after what they read ----------------------------------===//

#ifndef LOWTIDE_ONNXMODEL_NODEORDER_H
#define LOWTIDE_ONNXMODEL_NODEORDER_H

#include "onnx/onnx_pb.h"

#include <map>
#include <vector>

namespace lowtide {

/// Lists the nodes of `graph`, and of the graphs down to `depth` within it, in topological order; of those that may
/// come next the first does. Returns whether it moved any. A graph with a cycle is left as it is.
///
/// The specification asks for this order (IR.md, "Graphs"), and the tools that convert models to f16 do not keep it.
bool sortNodes(::onnx::GraphProto &graph, unsigned depth);

/// Puts nodes into `graph`: `added[i]` right after its node number i, in their order.
void insertAfter(::onnx::GraphProto &graph, std::map<int, std::vector<::onnx::NodeProto>> added);

} // namespace lowtide

#endif // LOWTIDE_ONNXMODEL_NODEORDER_H
