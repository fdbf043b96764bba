//===- WrittenDropout.h - dropout that is written with random numbers -------------===//

#ifndef LOWTIDE_LIB_RECOVER_WRITTENDROPOUT_H
#define LOWTIDE_LIB_RECOVER_WRITTENDROPOUT_H

#include "onnx/onnx_pb.h"

namespace lowtide {

/// Writes `Dropout` where a mask is drawn that keeps with probability c and whose readers divide by c, or where it ends
/// in an alpha dropout, so that `--dropout` and the evaluation entry mean it, too.
void restoreWrittenDropout(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_WRITTENDROPOUT_H
