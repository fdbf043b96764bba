//===- CosineBounds.h - cosines of vectors that are nearly zero -------------------===//

#ifndef LOWTIDE_LIB_RECOVER_COSINEBOUNDS_H
#define LOWTIDE_LIB_RECOVER_COSINEBOUNDS_H

#include "onnx/onnx_pb.h"

namespace lowtide {

/// Cosine similarities as PyTorch's old exporter writes them, with the product of both lengths bounded from below: each
/// length is bounded instead, and gradients flow through lengths as if they were not, as PyTorch has it.
void restoreCosineBounds(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_COSINEBOUNDS_H
