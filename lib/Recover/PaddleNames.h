//===- PaddleNames.h - names in files that paddle2onnx wrote ---------------------===//
//
// Paddle calls parameters after their layer, `linear_0.w_0`, `conv2d_3.b_0`. What paddle2onnx computes or evaluates
// goes by the operation that it stands for (`p2o.pd_op.reshape.0.0`), or by the converter's function that wrote it
// (`helper.constant.4`, `auto.cast.10`), with a number.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_PADDLENAMES_H
#define LOWTIDE_LIB_RECOVER_PADDLENAMES_H

#include "llvm/ADT/StringRef.h"

#include "onnx/onnx_pb.h"

namespace lowtide {

bool isOfPaddle(const ::onnx::GraphProto &graph);

/// Whether, in a file of paddle2onnx, `name` is of a value that the converter wrote: no parameter goes by it.
bool isPaddleValue(llvm::StringRef name);
/// Whether such a value is a parameter in another shape, or with its dimensions in another order.
bool isMovedInPaddle(llvm::StringRef name);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_PADDLENAMES_H
