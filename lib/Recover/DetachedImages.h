//===- DetachedImages.h - detached parameters that an exporter evaluated ----------===//

#ifndef LOWTIDE_LIB_RECOVER_DETACHEDIMAGES_H
#define LOWTIDE_LIB_RECOVER_DETACHEDIMAGES_H

#include "onnx/onnx_pb.h"

#include <string>
#include <vector>

namespace lowtide {

/// Detaches what was evaluated of a detached parameter (`w.detach().T`, `w.detach().mean(0)`) from who reads it.
/// Returns the names of those that are perhaps made of the parameter itself as well (`w / w.norm().detach()`).
std::vector<std::string> restoreDetachedImages(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_DETACHEDIMAGES_H
