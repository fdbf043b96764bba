//===- PoolDivisors.cpp - averages that are divided by a number of the program ----===//
//
// PyTorch's `avg_pool2d(x, kernel, divisor_override=d)` divides the sum over each window by d. ONNX's AveragePool
// divides by the size of the kernel, or of its part inside, and the exporter writes it without a word; the note keeps
// d. An average that counts padding, times the size of the kernel, is the sum. Windows that reach beyond the padding
// (`ceil_mode`) are counted in part, so that these stay refused.
//
//===----------------------------------------------------------------------===//

#include "PoolDivisors.h"

#include "Unfold.h"

#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

static const AttributeProto *findAttribute(const NodeProto &node, StringRef name) {
  auto at = find_if(node.attribute(), [&](const AttributeProto &attribute) { return attribute.name() == name; });
  return at == node.attribute().end() ? nullptr : &*at;
}

static bool canRestore(const NodeProto &pool) {
  const AttributeProto *ceil = findAttribute(pool, "ceil_mode");
  return pool.op_type() == "AveragePool" && pool.output_size() == 1 && findProgramDivisor(pool) &&
         findAttribute(pool, "kernel_shape") && (!ceil || ceil->i() == 0);
}

std::vector<std::string> lowtide::restorePoolDivisors(GraphProto &proto) {
  SmallVector<NodeProto *> pools;
  for (NodeProto &node : *proto.mutable_node())
    if (canRestore(node))
      pools.push_back(&node);
  std::vector<std::string> restored;
  if (pools.empty())
    return restored;
  UnfoldingGraph graph(proto);
  for (NodeProto *pool : pools) {
    const std::string name = pool->output(0), average = name + "@average";
    int64_t size = 1;
    for (int64_t extent : findAttribute(*pool, "kernel_shape")->ints())
      size *= extent;
    const int64_t divisor = *findProgramDivisor(*pool);
    auto &attributes = *pool->mutable_attribute();
    attributes.erase(
        remove_if(attributes, [](const AttributeProto &attribute) { return attribute.name() == "count_include_pad"; }),
        attributes.end());
    AttributeProto &counts = *pool->add_attribute();
    counts.set_name("count_include_pad");
    counts.set_type(AttributeProto::INT);
    counts.set_i(1);
    pool->set_output(0, average);
    graph.setModule(findModulePath(*pool).value_or(""));
    auto number = [&](int64_t value) { return graph.addNode("CastLike", {graph.addNumber(float(value)), average}); };
    graph.addNode("Div", {graph.addNode("Mul", {average, number(size)}), number(divisor)}, name);
    restored.push_back(name);
  }
  return restored;
}

bool lowtide::lacksDivisor(const NodeProto &node) { return findProgramDivisor(node) && !canRestore(node); }
