//===- ShapeSources.h - what gave only its shape to an evaluated tensor -----------===//

#ifndef LOWTIDE_LIB_RECOVER_SHAPESOURCES_H
#define LOWTIDE_LIB_RECOVER_SHAPESOURCES_H

#include "onnx/onnx_pb.h"

namespace lowtide {

/// Takes values that nodes compute, and inputs, out of the notes of what the exporter evaluated: no number of theirs is
/// known to it, only their shape (`token.expand_as(x)`).
void dropShapeSources(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_SHAPESOURCES_H
