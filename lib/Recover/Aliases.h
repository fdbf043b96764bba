//===- Aliases.h - values that a decomposed program calls alias -------------------===//

#ifndef LOWTIDE_LIB_RECOVER_ALIASES_H
#define LOWTIDE_LIB_RECOVER_ALIASES_H

#include "onnx/onnx_pb.h"

#include <string>
#include <vector>

namespace lowtide {

/// What a program whose operations were decomposed reads as `alias`, made of what may be trained, where a gradient
/// flows through the reader: names of the aliases, with the modules that read them.
/// `ExportedProgram.run_decompositions` writes `alias` for a `detach`, and for `x[...]`.
std::vector<std::string> findAliases(const ::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_ALIASES_H
