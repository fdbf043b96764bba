//===- Recoveries.h - what exporters lost, in order ------------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_RECOVERIES_H
#define LOWTIDE_LIB_RECOVER_RECOVERIES_H

#include "lowtide/Recover/Report.h"

namespace onnx {
class GraphProto;
} // namespace onnx

namespace lowtide {

/// Puts back operations of the program that are not in `graph`, before parameters are taken out of what was evaluated.
/// Warns about each kind, and reports an error where an operator means something else than the program.
void restoreOperations(::onnx::GraphProto &graph, Report &report);

/// The same, of what needs the parameters in their own tensors.
void restoreAfterParameters(::onnx::GraphProto &graph, Report &report);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_RECOVERIES_H
