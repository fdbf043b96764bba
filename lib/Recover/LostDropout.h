//===- LostDropout.h - dropout inside attention that an exporter drops -----------===//

#ifndef LOWTIDE_LIB_RECOVER_LOSTDROPOUT_H
#define LOWTIDE_LIB_RECOVER_LOSTDROPOUT_H

#include "onnx/onnx_pb.h"

#include <string>
#include <vector>

namespace lowtide {

/// Puts back the dropout of attention weights, in training form. Returns the results of attentions of which the file
/// holds no weights that could be dropped.
std::vector<std::string> restoreAttentionDropout(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_LOSTDROPOUT_H
