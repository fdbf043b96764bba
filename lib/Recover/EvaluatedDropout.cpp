//===- EvaluatedDropout.cpp - dropout that an exporter evaluated -----------------===//
//
// PyTorch's current exporter evaluates what reads no input, and a dropout that trains as well: the file holds one draw,
// for ever. `native_dropout` has two results, `getitem_6` and a mask, and a number among the program's dropouts. An
// evaluated tensor was drawn
//  1. if it was made of a result whose number lies between those of two dropouts of which one between is gone,
//  2. or if it is a result itself, in which numbers of either sign were multiplied by zero: -0.
//
//===----------------------------------------------------------------------===//

#include "EvaluatedDropout.h"

#include "Unfold.h"

#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/StringMap.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// 3 of `getitem_3`, 0 of `getitem`; nullopt: it is a result of no operation of this name.
static std::optional<int64_t> numberAfter(StringRef name, StringRef operation) {
  return operationName(name) == operation ? std::optional<int64_t>(operationNumber(name)) : std::nullopt;
}

/// Whether some elements are zeros, of which one has a sign, and others are not.
static bool holdsDroppedElements(const TensorProto &tensor) {
  const std::string bytes = embeddedBytes(tensor);
  if (tensor.data_type() != TensorProto::FLOAT || bytes.size() % sizeof(float))
    return false;
  size_t zeros = 0, signedZeros = 0;
  const size_t all = bytes.size() / sizeof(float);
  for (size_t at = 0; at != bytes.size(); at += sizeof(float)) {
    uint32_t bits = 0;
    std::memcpy(&bits, bytes.data() + at, sizeof(bits));
    zeros += !(bits << 1);
    signedZeros += bits == 0x80000000u;
  }
  return signedZeros && 64 * zeros >= all && zeros < all;
}

std::vector<std::string> lowtide::findEvaluatedDropout(const GraphProto &graph) {
  std::vector<std::string> found;
  // Numbers of results, by the numbers of their dropouts.
  std::map<int64_t, int64_t> kept;
  for (const NodeProto &node : graph.node())
    if (std::optional<int64_t> dropout = numberAfter(findProgramResult(node), "native_dropout"))
      for (const std::string &output : node.output())
        if (std::optional<int64_t> result = numberAfter(output, "getitem"))
          kept[*dropout] = *result;
  auto isLost = [&](int64_t result) {
    // Before the first dropout of the file, the program had those of smaller numbers.
    int64_t next = 0, last = -1;
    for (auto [dropout, number] : kept) {
      if (dropout > next && result > last && result < number)
        return true;
      next = dropout + 1;
      last = number;
    }
    return false;
  };
  StringMap<const TensorProto *> tensors;
  for (const TensorProto &tensor : graph.initializer())
    tensors[tensor.name()] = &tensor;
  for (const auto &value : graph.value_info()) {
    const TensorProto *tensor = tensors.lookup(value.name());
    std::vector<std::string> made = findFoldedFrom(value);
    if (!tensor || made.empty() || !isFloatType(tensor->data_type()))
      continue;
    bool isResult = numberAfter(value.name(), "getitem").has_value();
    made.push_back(value.name());
    bool isDrawn = isResult && holdsDroppedElements(*tensor);
    for (const std::string &name : made)
      if (std::optional<int64_t> result = numberAfter(name, "getitem"))
        isDrawn |= isLost(*result);
    if (isDrawn)
      found.push_back(value.name());
  }
  return found;
}
