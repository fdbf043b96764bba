//===- Makers.h - the nodes that make values --------------------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_MAKERS_H
#define LOWTIDE_LIB_RECOVER_MAKERS_H

#include "llvm/ADT/StringMap.h"

#include "onnx/onnx_pb.h"

namespace lowtide {

/// Of each value of a graph, the node that makes it. The graph outlives it and keeps its nodes.
class Makers {
public:
  explicit Makers(const ::onnx::GraphProto &graph) {
    for (const ::onnx::NodeProto &node : graph.node())
      for (const std::string &output : node.output())
        makers[output] = &node;
  }

  /// Null: an input, an initializer, or nothing at all.
  const ::onnx::NodeProto *find(llvm::StringRef value) const { return makers.lookup(value); }
  /// The same if it is an `op` with so many inputs or more.
  const ::onnx::NodeProto *find(llvm::StringRef value, llvm::StringRef op, int leastInputs) const {
    const ::onnx::NodeProto *node = find(value);
    return node && node->op_type() == op && node->input_size() >= leastInputs ? node : nullptr;
  }

private:
  llvm::StringMap<const ::onnx::NodeProto *> makers;
};

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_MAKERS_H
