//===- Recover.h - what the importer asks of recovery -----------------------------===//
//
// Exporters and cleaners drop, merge and evaluate parts of a program. What their files still tell is put back here:
// into the graph before it becomes IR, and into what is said of each initializer.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_RECOVER_RECOVER_H
#define LOWTIDE_RECOVER_RECOVER_H

#include "lowtide/Recover/ModelView.h"
#include "lowtide/Recover/NodeNotes.h"
#include "lowtide/Recover/RoleChoices.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/LogicalResult.h"

#include <vector>

namespace onnx {
class GraphProto;
class NodeProto;
} // namespace onnx

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace lowtide {

/// All data of an initializer, dense; nullopt when they cannot be read.
using TensorReader = llvm::function_ref<std::optional<std::string>(const ::onnx::TensorProto &)>;

/// Gives values and nodes the names that PyTorch's exporters gave them, where a merge of models wrote a prefix in
/// front, and the producer its name where a tool signed with its own. Returns the file's names by the new ones.
llvm::StringMap<std::string> restoreNames(::onnx::ModelProto &model);

/// Puts back what the exporter lost, and takes parameters out of what it evaluated: new nodes and initializers in
/// `graph`, whose nodes are in order afterwards. Warns about each difference, and reports an error where an operator
/// means something else than the program.
UnfoldedTensors recoverProgram(::onnx::GraphProto &graph, TensorReader read, Report &report);

/// For every initializer of the program what it is, with what the user says of it. Fails when the evidence is
/// contradictory; what to type is in the message.
llvm::FailureOr<std::vector<InitializerInfo>> recoverRoles(ModelView &model, const RoleChoices &choices);

/// Applies what the user says to `infos`, and makes their names unique.
llvm::LogicalResult applyChoices(ModelView &model, const RoleChoices &choices, std::vector<InitializerInfo> &infos);

/// What exporters note of the operation that `node` was exported from. `table`: the initializer in which it looks up
/// rows; null: none.
NodeNotes findNodeNotes(const ModelView &model, const ::onnx::NodeProto &node, const InitializerInfo *table);

/// The rules, in the order in which they are applied, as tables in Markdown: those that put back operations, and those
/// that take parameters out of what was evaluated.
void printRecoveries(llvm::raw_ostream &os);
void printUnfoldings(llvm::raw_ostream &os);

} // namespace lowtide

#endif // LOWTIDE_RECOVER_RECOVER_H
