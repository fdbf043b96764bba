//===- HiddenRows.cpp - queries whose keys a mask hides all -----------------------===//
//
// `scaled_dot_product_attention` hides keys by −∞ and gives zeros for a query that sees none. PyTorch's current
// exporter adds the lowest finite number instead, by which such a query sees every key alike; it still writes what −∞
// would need, Where(IsNaN(weights), 0, weights).
//
//===----------------------------------------------------------------------===//

#include "HiddenRows.h"

#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <cstring>
#include <limits>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// −∞ as the tensor's type has it, where all that it holds is the lowest finite number; else nothing.
static std::string negativeInfinityFor(const TensorProto &tensor) {
  if (tensor.dims_size() != 0)
    return {};
  auto matches = [&](auto lowest, auto infinity) -> std::string {
    std::string bytes(sizeof(infinity), 0);
    std::memcpy(bytes.data(), &lowest, sizeof(lowest));
    if (tensor.raw_data() != bytes)
      return {};
    std::memcpy(bytes.data(), &infinity, sizeof(infinity));
    return bytes;
  };
  switch (tensor.data_type()) {
  case TensorProto::FLOAT:
    if (tensor.float_data_size() == 1 && tensor.float_data(0) == std::numeric_limits<float>::lowest()) {
      const float infinity = -std::numeric_limits<float>::infinity();
      return {reinterpret_cast<const char *>(&infinity), sizeof(infinity)};
    }
    return matches(std::numeric_limits<float>::lowest(), -std::numeric_limits<float>::infinity());
  case TensorProto::DOUBLE:
    return matches(std::numeric_limits<double>::lowest(), -std::numeric_limits<double>::infinity());
  case TensorProto::FLOAT16:
    return matches(uint16_t(0xfbff), uint16_t(0xfc00));
  case TensorProto::BFLOAT16:
    return matches(uint16_t(0xff7f), uint16_t(0xff80));
  default:
    return {};
  }
}

void lowtide::restoreHiddenRows(GraphProto &graph) {
  // Nodes of one attention share its note.
  StringSet<> guarded;
  for (const NodeProto &node : graph.node())
    if (node.op_type() == "IsNaN" && isOfMaskedAttention(node))
      guarded.insert(findProgramNote(node));
  if (guarded.empty())
    return;
  StringMap<int> initializers;
  for (int at = 0; at < graph.initializer_size(); ++at)
    initializers[graph.initializer(at).name()] = at;
  for (NodeProto &node : *graph.mutable_node()) {
    if (node.op_type() != "Where" || node.input_size() != 3 || !isOfMaskedAttention(node) ||
        !guarded.contains(findProgramNote(node)))
      continue;
    auto found = initializers.find(node.input(2));
    if (found == initializers.end())
      continue;
    const TensorProto &lowest = graph.initializer(found->second);
    std::string bytes = negativeInfinityFor(lowest);
    if (bytes.empty())
      continue;
    // Others may read the same number, and mean it.
    const std::string name = node.output(0) + "@hidden";
    const int32_t type = lowest.data_type();
    TensorProto &hidden = *graph.add_initializer();
    hidden.set_name(name);
    hidden.set_data_type(type);
    hidden.set_raw_data(std::move(bytes));
    node.set_input(2, name);
  }
}
