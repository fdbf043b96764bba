//===- LostAssignments.cpp - buffers whose new values an exporter drops -----------===//
//
// The program's signature lists what is assigned to buffers: `add: BUFFER_MUTATION target='center'`. The exporter does
// not make these values outputs of the graph, so that its optimizer drops the nodes that nothing else reads.
//
//===----------------------------------------------------------------------===//

#include "LostAssignments.h"

#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

LostAssignments lowtide::findLostAssignments(const GraphProto &graph, const Signature &signature) {
  StringSet<> values, tensors, statistics, evaluated;
  for (const auto &value : graph.value_info())
    for (const std::string &name : findFoldedFrom(value))
      evaluated.insert(name);
  for (const auto &tensor : graph.initializer())
    tensors.insert(tensor.name());
  for (const NodeProto &node : graph.node()) {
    for (const std::string &output : node.output())
      values.insert(output);
    if (node.op_type() != "BatchNormalization")
      continue;
    for (int operand : {3, 4})
      if (operand < node.input_size())
        statistics.insert(node.input(operand));
    for (const std::string &name : findProgramOperands(node))
      if (const SignatureEntry *entry = signature.findPlaceholder(name))
        statistics.insert(entry->target);
  }
  LostAssignments lost;
  for (const SignatureEntry &entry : signature.getEntries()) {
    if (entry.assigned.empty() || entry.kind != SignatureEntry::Buffer ||
        leafOf(entry.target) == "num_batches_tracked" || statistics.contains(entry.target))
      continue;
    // Where nothing reads the buffer, the losses do not depend on it (StateDictionary.cpp says what is not saved).
    if (evaluated.contains(entry.target) && !tensors.contains(entry.target))
      lost.withoutBuffer.push_back(entry.target);
    else if (tensors.contains(entry.target) && !values.contains(entry.assigned))
      lost.withoutValue.push_back(entry.target);
  }
  return lost;
}

/// Whether numbers of the buffer were evaluated, of which nothing was put back: a tensor of floats names it.
static bool isPartEvaluated(const ModelView &file, StringRef buffer) {
  for (const auto &value : file.getModel().graph().value_info()) {
    const ::onnx::TensorProto *tensor = file.findInitializer(value.name());
    if (tensor && isFloatType(tensor->data_type()) && !file.findUnfolded(value.name()) &&
        is_contained(findFoldedFrom(value), buffer))
      return true;
  }
  return false;
}

void lowtide::reportLostAssignments(ModelView &file, const Signature &signature, const StringSet<> &foldedNorms) {
  LostAssignments lost = findLostAssignments(file.getModel().graph(), signature);
  llvm::erase_if(lost.withoutValue, [&](const std::string &name) { return foldedNorms.contains(moduleOf(name)); });
  for (const SignatureEntry &entry : signature.getEntries())
    if (entry.kind == SignatureEntry::Buffer && !entry.assigned.empty() && file.findInitializer(entry.target) &&
        !llvm::is_contained(lost.withoutBuffer, entry.target) && isPartEvaluated(file, entry.target))
      lost.withoutBuffer.push_back(entry.target);
  std::vector<std::string> following, assigned;
  for (const SignatureEntry &entry : signature.getEntries())
    if (entry.isAssignedParameter)
      (entry.kind == SignatureEntry::Buffer ? following : assigned).push_back(entry.target);
  if (!following.empty())
    file.getReport().add({FindingKind::ParametersFollow, following.front(), following, {{"name", following.front()}}});
  if (!assigned.empty())
    file.getReport().add({FindingKind::ParametersAssigned, assigned.front(), assigned});
  if (!lost.withoutValue.empty())
    file.getReport().add({FindingKind::AssignmentsLost, lost.withoutValue.front(), lost.withoutValue});
  if (!lost.withoutBuffer.empty())
    file.getReport().add({FindingKind::AssignedEvaluated, lost.withoutBuffer.front(), lost.withoutBuffer});
}
