//===- EvaluatedDropout.h - dropout that an exporter evaluated -------------------===//

#ifndef LOWTIDE_LIB_RECOVER_EVALUATEDDROPOUT_H
#define LOWTIDE_LIB_RECOVER_EVALUATEDDROPOUT_H

#include "onnx/onnx_pb.h"

#include <string>
#include <vector>

namespace lowtide {

/// Tensors in which the exporter evaluated a dropout of what no input changes (positions, learned tables): they hold
/// one draw of it.
std::vector<std::string> findEvaluatedDropout(const ::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_EVALUATEDDROPOUT_H
