//===- LookupFrequency.h - gradients divided by how often a row is looked up -----===//

#ifndef LOWTIDE_LIB_RECOVER_LOOKUPFREQUENCY_H
#define LOWTIDE_LIB_RECOVER_LOOKUPFREQUENCY_H

#include "Recovered.h"

#include "onnx/onnx_pb.h"

namespace lowtide {

/// Puts the division back into look-ups whose notes ask for it (`scale_grad_by_freq`), by nodes that are not in order
/// yet (sortNodes). Returns the tables, and results of operations in which no look-up was found.
Recovered restoreLookupFrequency(::onnx::GraphProto &graph);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_LOOKUPFREQUENCY_H
