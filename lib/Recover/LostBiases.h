//===- LostBiases.h - biases of zeros that are gone --------------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_LOSTBIASES_H
#define LOWTIDE_LIB_RECOVER_LOSTBIASES_H

#include "Unfold.h"

namespace lowtide {

/// Number of channels that the layer `node` gives; 0: not a layer with a bias, or not known.
int64_t outputChannels(const UnfoldingGraph &graph, const ::onnx::NodeProto &node);

/// In files without notes: a product that bears the name of the sum that it was an operand of gets that back. Layers of
/// which a cleaner that invents names left nothing but the product are doubted.
void restoreNamedBiases(UnfoldingGraph &graph, ::onnx::GraphProto &proto);

/// In files of PyTorch's current exporter whose notes are gone: biases of zeros that its optimizer dropped.
void restoreRewrittenBiases(UnfoldingGraph &graph, ::onnx::GraphProto &proto);

/// In files with notes: biases that operations of the program read, and that the exporter's optimizer dropped.
void restoreBiases(UnfoldingGraph &graph, ::onnx::GraphProto &proto, const Signature &signature);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_LOSTBIASES_H
