//===- LostDraws.h - random numbers that an exporter drew once instead of twice --===//

#ifndef LOWTIDE_LIB_RECOVER_LOSTDRAWS_H
#define LOWTIDE_LIB_RECOVER_LOSTDRAWS_H

#include "Recovered.h"

#include "onnx/onnx_pb.h"

namespace lowtide {

/// Takes apart what a program computes of several draws (two passes with dropout over the same samples) and an
/// exporter's optimizer made one; after `restoreDetached` and `unfoldInitializers`. Returns values that are computed of
/// draws of their own now, and values of which the file does not tell whether the program drew for them.
Recovered restoreDraws(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_LOSTDRAWS_H
