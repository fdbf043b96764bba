//===- StraightThrough.h - differences that a program detaches ---------------------===//

#ifndef LOWTIDE_LIB_RECOVER_STRAIGHTTHROUGH_H
#define LOWTIDE_LIB_RECOVER_STRAIGHTTHROUGH_H

#include "onnx/onnx_pb.h"

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace lowtide {

class ValueIndex;

/// Whether no gradient flows through `value`: it is rounded, a sign, a row of zeros and a one, or chosen among
/// constants.
bool isFlat(const ValueIndex &values, llvm::StringRef value);

/// In files without notes: detaches the difference in `h + (q - h)`, where q is made of h or h of q. Returns the
/// results of the sums.
std::vector<std::string> restoreStraightThrough(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_STRAIGHTTHROUGH_H
