//===- GuardedZeros.h - functions that an exporter writes apart at zero -----------===//

#ifndef LOWTIDE_LIB_RECOVER_GUARDEDZEROS_H
#define LOWTIDE_LIB_RECOVER_GUARDEDZEROS_H

#include "onnx/onnx_pb.h"

namespace lowtide {

/// `sinc(x)` and `xlogy(x, y)` as PyTorch's current exporter writes them, with a value of its own where x is zero: what
/// is computed next to it is finite there, and has PyTorch's gradients.
void restoreGuardedZeros(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_GUARDEDZEROS_H
