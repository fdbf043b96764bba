//===- StatisticChains.cpp - batch norms that run again ---------------------------===//

#include "StatisticChains.h"

#include "lowtide/OnnxModel/NodeNames.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

StatisticChains::StatisticChains(const GraphProto &graph, const Signature &signature) {
  for (const NodeProto &node : graph.node()) {
    StringRef result = node.output_size() ? StringRef(node.output(0)) : StringRef();
    if (node.op_type() != "BatchNormalization" || !result.consume_front("getitem"))
      continue;
    unsigned first = 0;
    if (result.consume_front("_") ? result.getAsInteger(10, first) : !result.empty())
      continue;
    for (auto [role, place] : {std::pair("running_mean", 3), std::pair("running_var", 4)}) {
      const SignatureEntry *entry = find(node, role);
      for (const std::string &operand : findProgramOperands(node))
        if (const SignatureEntry *own = signature.findPlaceholder(operand); own && leafOf(own->target) == role)
          entry = own;
      if (entry)
        results["getitem_" + std::to_string(first + place)] = entry;
    }
  }
}

const SignatureEntry *StatisticChains::find(const NodeProto &norm, StringRef role) const {
  for (const std::string &operand : findProgramOperands(norm))
    if (const SignatureEntry *entry = results.lookup(operand); entry && leafOf(entry->target) == role)
      return entry;
  return nullptr;
}
