//===- UnfoldAddedBuffers.cpp - functions of a parameter next to a buffer ---------===//
//
// An activation with learned numbers keeps one of them above a bound: `self.beta + softplus(self.alpha)`, where beta is
// a buffer. The exporter evaluates the sum. The file holds the buffer, so that the other operand is known, as if no
// more than that had been evaluated.
//
//===----------------------------------------------------------------------===//

#include "ElementFunctions.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <cstring>
#include <set>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// The initializer of one element that is the buffer: by its name, or, where buffers of equal value became one, by an
/// operation that reads it.
static const TensorProto *findNumber(const UnfoldingGraph &graph, const SignatureEntry &buffer) {
  auto isNumber = [](const TensorProto &tensor) {
    return tensor.data_type() == TensorProto::FLOAT && all_of(tensor.dims(), [](int64_t dim) { return dim == 1; });
  };
  if (const TensorProto *tensor = graph.find(buffer.target))
    return isNumber(*tensor) ? tensor : nullptr;
  std::set<const TensorProto *> found;
  for (const NodeProto &node : graph.getGraph().node())
    if (is_contained(findProgramOperands(node), buffer.placeholder))
      for (const std::string &input : node.input())
        if (const TensorProto *tensor = graph.find(input); tensor && isNumber(*tensor))
          found.insert(tensor);
  return found.size() == 1 ? *found.begin() : nullptr;
}

/// What the sum was made of.
struct Addends {
  const SignatureEntry *buffer = nullptr;
  /// The program's name of the other operand: a function's result.
  std::string function;
  std::vector<std::string> foldedFrom;
};

/// One parameter that is gone, one buffer, and a function of one kind: what else there is may change the order.
static std::optional<Addends> findAddends(const UnfoldingGraph &graph, const Signature &signature,
                                          ArrayRef<std::string> foldedFrom) {
  Addends addends;
  size_t numParameters = 0;
  for (const std::string &name : foldedFrom) {
    const SignatureEntry *entry = signature.findTarget(name);
    if (entry && entry->kind == SignatureEntry::Buffer && !entry->mutated) {
      if (addends.buffer)
        return std::nullopt;
      addends.buffer = entry;
      continue;
    }
    addends.foldedFrom.push_back(name);
    if (entry) {
      if (entry->kind != SignatureEntry::Parameter || graph.find(name))
        return std::nullopt;
      ++numParameters;
    } else if (const ElementFunction *function = findElementFunction(operationName(name));
               function && function->inverse) {
      if (!addends.function.empty() && operationName(addends.function) != operationName(name))
        return std::nullopt;
      // The exporter's own steps come after the program's operations.
      if (addends.function.empty() || operationNumber(name) < operationNumber(addends.function))
        addends.function = name;
    } else if (!isStepOfSoftplus(name)) {
      return std::nullopt;
    }
  }
  if (!addends.buffer || numParameters != 1 || addends.function.empty() || graph.find(addends.function))
    return std::nullopt;
  llvm::erase(addends.foldedFrom, addends.function);
  return addends;
}

void lowtide::unfoldAddedBuffers(UnfoldingGraph &graph, GraphProto &proto, const Signature &signature) {
  std::vector<std::pair<const TensorProto *, Addends>> sums;
  for (const auto &value : proto.value_info())
    if (const TensorProto *tensor = operationName(value.name()) == "add" ? graph.find(value.name()) : nullptr;
        tensor && tensor->data_type() == TensorProto::FLOAT)
      if (std::optional<Addends> addends = findAddends(graph, signature, findFoldedFrom(value)))
        sums.push_back({tensor, std::move(*addends)});
  for (auto &[tensor, addends] : sums) {
    const TensorProto *number = findNumber(graph, *addends.buffer);
    std::vector<float> values = valuesOf(graph, *tensor),
                       added = number ? valuesOf(graph, *number) : std::vector<float>();
    // Dimensions of one that the buffer has would be the sum's as well.
    if (added.size() != 1 || values.empty() || number->dims_size() > tensor->dims_size())
      continue;
    for (float &value : values)
      value = float(double(value) - double(added.front()));
    std::string bytes(values.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    SmallVector<int64_t> dims(tensor->dims().begin(), tensor->dims().end());
    graph.setModule(moduleOf(addends.buffer->target));
    graph.addNode("Add", {number->name(), addends.function}, tensor->name());
    graph.addEvaluated(addends.function, dims, tensor->data_type(), std::move(bytes), addends.foldedFrom);
    graph.remove(*tensor);
  }
}
