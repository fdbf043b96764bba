//===- Ties.cpp - who gets the cotangent where operands are equal ----------------===//

#include "lowtide/Import/Ties.h"

#include "Evidence.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace lowtide;

Ties lowtide::findTies(const ::onnx::NodeProto &node) {
  StringRef op = node.op_type();
  const bool isReduction = op == "ReduceMax" || op == "ReduceMin";
  if (!isReduction && op != "Clip" && op != "Max" && op != "Min")
    return Ties::AsOperator;
  std::string program = findProgramOperator(node);
  if (isReduction)
    return program == "aten.max.dim" || program == "aten.min.dim" ? Ties::First : Ties::AsOperator;
  if (!StringRef(program).starts_with("aten.clamp"))
    return Ties::AsOperator;
  // `(%x, %scalar_tensor_default)`: a number; `(%x, %limit)`: a tensor.
  std::vector<std::string> operands = findProgramOperands(node);
  return all_of(drop_begin(operands, std::min<size_t>(operands.size(), 1)),
                [](StringRef name) { return name.starts_with("scalar_tensor"); })
             ? Ties::None
             : Ties::Shared;
}
