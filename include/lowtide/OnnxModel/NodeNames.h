//===- NodeNames.h - what messages call nodes and values --------------------------===//

#ifndef LOWTIDE_ONNXMODEL_NODENAMES_H
#define LOWTIDE_ONNXMODEL_NODENAMES_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace onnx {
class NodeProto;
} // namespace onnx

namespace lowtide {

/// `name` fit to be printed: quoted, control characters escaped, cut after 128
/// bytes.
std::string quoteName(llvm::StringRef name);

/// `Gemm 'h'`: what messages call a node.
std::string describeNode(const ::onnx::NodeProto &node);
/// The name that locates a node: its own, or its first output's.
llvm::StringRef nodeLabel(const ::onnx::NodeProto &node);

} // namespace lowtide

#endif // LOWTIDE_ONNXMODEL_NODENAMES_H
