//===- BlockModes.h - blocks of a program with a mode -----------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_BLOCKMODES_H
#define LOWTIDE_LIB_RECOVER_BLOCKMODES_H

#include "Recovered.h"

#include "onnx/onnx_pb.h"

namespace lowtide {

/// Detaches what blocks of the program without gradients (`torch.no_grad`) give to the rest of it. Returns as restored
/// the results of blocks that may be `autocast` as well, where that decides about a gradient, and as unknown those of
/// blocks that are taken for `autocast`: gradients flow through them.
Recovered detachBlocks(::onnx::GraphProto &graph);
/// Whether `detachBlocks` took `node` for one of a block without gradients.
bool isWithoutGradient(const ::onnx::NodeProto &node);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_BLOCKMODES_H
