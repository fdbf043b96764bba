//===- LostBiases.h - biases of zeros that a cleaner removed ----------------------===//

#ifndef LOWTIDE_LIB_IMPORT_LOSTBIASES_H
#define LOWTIDE_LIB_IMPORT_LOSTBIASES_H

#include "Unfold.h"

namespace lowtide {

/// In files without notes: a product that bears the name of the sum that it was an operand of gets that back. Layers of
/// which a cleaner that invents names left nothing but the product are doubted.
void restoreNamedBiases(UnfoldingGraph &graph, ::onnx::GraphProto &proto);

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_LOSTBIASES_H
