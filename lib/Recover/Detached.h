//===- Detached.h - values through which no gradient flows -----------------------===//

#ifndef LOWTIDE_LIB_RECOVER_DETACHED_H
#define LOWTIDE_LIB_RECOVER_DETACHED_H

#include "onnx/onnx_pb.h"

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace lowtide {

/// Whether the program calls a value so (`detach_1`) that it detaches.
bool isDetachName(llvm::StringRef name);
/// Whether the exporter notes that `node` is the program's `detach`.
bool isDetach(const ::onnx::NodeProto &node);

/// The node that gives `output` as `input` without its gradient, called `name`, in the module of `reader`.
::onnx::NodeProto makeDetach(const std::string &name, const std::string &input, const std::string &output,
                             const ::onnx::NodeProto &reader);

/// A step within an operation that reads a detached value (the difference within `mse_loss(q, z.detach())`) is made of
/// what the operation reads. Where the exporter merged it with an operation of the program (`q - z`), of which it is
/// not detached, it gets a node of its own; before `restoreDetached`.
void splitSteps(::onnx::GraphProto &graph);

/// Puts back the `Identity` nodes of detached values that the exporter's optimizer removed: the operations that read
/// them still name them. Returns the names of operations that read a detached value, but not which operand it is.
std::vector<std::string> restoreDetached(::onnx::GraphProto &graph);

/// Without its `detach`, what a program computes of a detached value is what it computes of the value itself, and the
/// exporter's optimizer keeps one of the two. Takes them apart where the readers' notes name both; after
/// `restoreDetached`. Returns the names of those that came back.
std::vector<std::string> splitDetached(::onnx::GraphProto &graph);

/// What the program computes like a value that it detaches, and reads without that: names of values that were merged
/// with the detached one, and of which the file does not tell what is detached in them.
std::vector<std::string> findDetachedTwins(const ::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_DETACHED_H
