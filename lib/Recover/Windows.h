//===- Windows.h - windows that an exporter puts in another order -----------------===//

#ifndef LOWTIDE_LIB_RECOVER_WINDOWS_H
#define LOWTIDE_LIB_RECOVER_WINDOWS_H

#include "onnx/onnx_pb.h"

#include <string>
#include <vector>

namespace lowtide {

/// Puts windows of `unfold(-1, size, step)` back in front of their elements, where PyTorch's old exporter puts them
/// after these. Returns the names of the windows.
std::vector<std::string> restoreWindows(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_WINDOWS_H
