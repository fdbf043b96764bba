//===- LostAssignments.h - buffers whose new values an exporter drops -------------===//

#ifndef LOWTIDE_LIB_RECOVER_LOSTASSIGNMENTS_H
#define LOWTIDE_LIB_RECOVER_LOSTASSIGNMENTS_H

#include "lowtide/Recover/Evidence.h"
#include "lowtide/Recover/ModelView.h"

#include <string>
#include <vector>

namespace lowtide {

/// Buffers that the program assigns and that stay as they are when the file is trained.
struct LostAssignments {
  /// The file holds them, and not what the program assigns to them.
  std::vector<std::string> withoutValue;
  /// The file does not hold them: what the program computes of them was evaluated.
  std::vector<std::string> withoutBuffer;
};

/// Compares what the program's signature says of buffers with the graph. Running statistics of batch norms and their
/// counters are kept by other rules.
LostAssignments findLostAssignments(const ::onnx::GraphProto &graph, const Signature &signature);

/// Warns about them; of batch norms in `foldedNorms` something else is said.
void reportLostAssignments(ModelView &file, const Signature &signature, const llvm::StringSet<> &foldedNorms);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_LOSTASSIGNMENTS_H
