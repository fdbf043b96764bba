//===- LookupFrequency.h - gradients divided by how often a row is looked up -----===//

#ifndef LOWTIDE_LIB_IMPORT_LOOKUPFREQUENCY_H
#define LOWTIDE_LIB_IMPORT_LOOKUPFREQUENCY_H

#include "onnx/onnx_pb.h"

#include <string>
#include <vector>

namespace lowtide {

/// Tables whose gradients the program divides by how often a row is looked up.
struct LookupFrequency {
  std::vector<std::string> restored;
  /// Results of operations in which no look-up was found.
  std::vector<std::string> lost;
};

/// Puts the division back into look-ups whose notes ask for it (`scale_grad_by_freq`), by nodes that are not in order
/// yet (sortNodes).
LookupFrequency restoreLookupFrequency(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_LOOKUPFREQUENCY_H
