//===- SignedDistances.cpp - distances that lost their absolute values ------------===//
//
// The distance of order p is the p-th root of the sum of |a - b|^p. PyTorch's old exporter writes (a - b)^p, which is
// the same at even orders only. A program that means the powers themselves takes no root of their sum.
//
//===----------------------------------------------------------------------===//

#include "SignedDistances.h"

#include "ValueIndex.h"

#include "lowtide/Recover/Evidence.h"

#include <cmath>
#include <optional>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

std::vector<std::string> lowtide::findSignedDistances(const GraphProto &graph) {
  const ValueIndex values(graph);
  std::vector<std::string> found;
  for (const NodeProto &root : graph.node()) {
    if (root.op_type() != "Pow" || root.input_size() != 2 || !findProgramNote(root).empty())
      continue;
    const NodeProto *sum = values.find(root.input(0), "ReduceSum", 1);
    const NodeProto *power = sum ? values.find(sum->input(0), "Pow", 1) : nullptr;
    if (!power || !values.find(power->input(0), "Sub", 1))
      continue;
    const std::optional<double> order = values.findNumber(power->input(1)),
                                inverse = values.evaluateNumber(root.input(1));
    if (order.value_or(0) == 0 || !inverse)
      continue;
    const bool isRoot = std::abs(*inverse - 1 / *order) < 1e-6;
    if (isRoot && std::fmod(*order, 2) != 0)
      found.push_back(root.output(0));
  }
  return found;
}
