//===- RepeatedLayers.h - layers that a program runs twice on one value -----------===//

#ifndef LOWTIDE_LIB_RECOVER_REPEATEDLAYERS_H
#define LOWTIDE_LIB_RECOVER_REPEATEDLAYERS_H

#include "onnx/onnx_pb.h"

#include <string>
#include <vector>

namespace lowtide {

/// Values of the program that a layer made, run again on what it had been run on, and that the exporter merged with
/// what it made first; after all rules that take merged values apart.
std::vector<std::string> findRepeatedLayers(const ::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_REPEATEDLAYERS_H
