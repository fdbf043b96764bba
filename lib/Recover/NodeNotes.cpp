//===- NodeNotes.cpp - what the program did at a node, beyond its operator --------===//

#include "lowtide/Recover/NodeNotes.h"

#include "Detached.h"
#include "PaddingRow.h"

#include "lowtide/Recover/Evidence.h"
#include "lowtide/Recover/Recover.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace lowtide;

static Ties findTies(const ::onnx::NodeProto &node) {
  StringRef op = node.op_type();
  const bool isReduction = op == "ReduceMax" || op == "ReduceMin";
  if (!isReduction && op != "Clip" && op != "Max" && op != "Min")
    return Ties::AsOperator;
  std::string program = findProgramOperator(node);
  if (isReduction)
    return program == "aten.max.dim" || program == "aten.min.dim" || isOfMaximumPool(node) ? Ties::First
                                                                                           : Ties::AsOperator;
  if (!StringRef(program).starts_with("aten.clamp"))
    return Ties::AsOperator;
  // `(%x, %scalar_tensor_default)`: a number; `(%x, %limit)`: a tensor.
  std::vector<std::string> operands = findProgramOperands(node);
  return all_of(drop_begin(operands, std::min<size_t>(operands.size(), 1)),
                [](StringRef name) { return name.starts_with("scalar_tensor"); })
             ? Ties::None
             : Ties::Shared;
}

NodeNotes lowtide::findNodeNotes(const ModelView &model, const ::onnx::NodeProto &node, const InitializerInfo *table) {
  NodeNotes notes;
  if (table)
    notes.paddingRow = findPaddingRow(model, node, *table);
  notes.isDetached = isDetach(node);
  if (node.op_type() == "BatchNormalization")
    if (std::string program = findProgramOperator(node); StringRef(program).contains("_native_batch_norm_legit"))
      notes.trains = !StringRef(program).contains("_legit_no_training");
  notes.ties = findTies(node);
  return notes;
}
