//===- LossWeights.h - what weighs losses -----------------------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_LOSSWEIGHTS_H
#define LOWTIDE_LIB_RECOVER_LOSSWEIGHTS_H

#include "onnx/onnx_pb.h"

#include "llvm/ADT/StringSet.h"

namespace lowtide {

/// Initializers that only multiply losses of elements on their way to the loss, a single number: weights of classes or
/// of terms, which loss modules keep as buffers. Trained, they would only grow more negative.
llvm::StringSet<> findLossWeights(const ::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_LOSSWEIGHTS_H
