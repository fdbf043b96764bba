//===- Prefixes.h - names that a merge of models wrote something in front of ------===//

#ifndef LOWTIDE_LIB_RECOVER_PREFIXES_H
#define LOWTIDE_LIB_RECOVER_PREFIXES_H

#include "llvm/ADT/StringMap.h"

#include "onnx/onnx_pb.h"

#include <string>

namespace lowtide {

/// Takes away what `onnx.compose` (`add_prefix`, `merge_models(prefix1=, prefix2=)`) wrote in front of the names of
/// nodes and values that PyTorch's exporters had given, for names are evidence. Inputs and outputs keep theirs, and so
/// does what would go by a name that is taken. So goes `_merged_0`, where Optimum wrote it at the end of the names of
/// all tensors that the models of a decoder have in common. Returns the file's names by the new ones.
llvm::StringMap<std::string> removePrefixes(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_PREFIXES_H
