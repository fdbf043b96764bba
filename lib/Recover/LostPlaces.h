//===- LostPlaces.h - nodes whose module is not noted -----------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_LOSTPLACES_H
#define LOWTIDE_LIB_RECOVER_LOSTPLACES_H

#include "onnx/onnx_pb.h"

namespace lowtide {

/// In files of PyTorch's current exporter: nodes that one of its rules wrote without a note of their module get that of
/// the nodes which read them, if these are all of one module. Of those that read nothing but tensors of the file, each
/// module gets one of its own.
void restorePlaces(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_LOSTPLACES_H
