//===- RecoverAll.cpp - all that was evaluated of a parameter -----------------------===//
//
// A learned first state that is repeated for each sample and that a cell's weights multiply; a distribution and its
// entropy: the file holds two tensors that were made of a parameter, and not the parameter. The first that has an
// inverse gives it back, and the others are computed of it.
//
//===----------------------------------------------------------------------===//

#include "Unfold.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::TensorProto;

/// Whether nothing but moves made the tensor of its parameter, each element once.
static bool isMoved(const Evaluated &evaluated) {
  return movesElements(evaluated.tensor->name()) && !isGather(evaluated.tensor->name()) &&
         all_of(evaluated.foldedFrom, [&](const std::string &name) {
           return name == evaluated.parameters.front()->target || (movesElements(name) && !isGather(name));
         });
}

bool lowtide::unfoldCopy(UnfoldingGraph &graph, const Evaluated &evaluated) {
  const TensorProto &tensor = *evaluated.tensor;
  const std::string &name = evaluated.parameters.front()->target;
  auto isCopy = [](StringRef from) { return is_contained({"clone", "contiguous", "alias"}, operationName(from)); };
  if (evaluated.parameters.size() != 1 || graph.find(name) || !isCopy(tensor.name()) ||
      !all_of(evaluated.foldedFrom, [&](StringRef from) { return from == name || isCopy(from); }))
    return false;
  std::string bytes = graph.read(tensor).value_or("");
  if (bytes.empty())
    return false;
  graph.addInitializer(name, {tensor.dims().data(), size_t(tensor.dims_size())}, tensor.data_type(), std::move(bytes),
                       {tensor.name(), "the exporter evaluated a copy of it", false});
  graph.setModule(moduleOf(name));
  graph.addNode("Identity", {name}, tensor.name());
  graph.remove(tensor);
  return true;
}

/// Gives parameters back of which the file holds all numbers of a softmax, one by one, and something else as well, as a
/// distribution's entropy.
static void unfoldMixtures(UnfoldingGraph &graph, ArrayRef<Evaluated> images) {
  MapVector<const SignatureEntry *, SmallVector<const Evaluated *>> parts;
  for (const Evaluated &evaluated : images)
    if (!graph.isRemoved(evaluated.tensor->name()) && evaluated.parameters.size() == 1 &&
        !graph.find(evaluated.parameters.front()->target) && takesPart(evaluated.tensor->name()))
      parts[evaluated.parameters.front()].push_back(&evaluated);
  for (const auto &[entry, all] : parts)
    if (all.size() > 1)
      unfoldMixture(graph, all);
}

void lowtide::recoverAllFunctions(UnfoldingGraph &graph, ArrayRef<Evaluated> images) {
  auto isHeld = [&](const Evaluated &evaluated) {
    return any_of(evaluated.parameters, [&](const SignatureEntry *entry) { return graph.find(entry->target); });
  };
  SmallVector<const Evaluated *> moved;
  for (const Evaluated &evaluated : images)
    if (isMoved(evaluated))
      moved.push_back(&evaluated);
  llvm::erase_if(moved, [&](const Evaluated *evaluated) { return unfoldPiece(graph, *evaluated); });
  unfoldMixtures(graph, images);
  // Two functions of a parameter that is gone: the first that can be inverted gives it back.
  for (const Evaluated &evaluated : images)
    if (!is_contained(moved, &evaluated) && !graph.isRemoved(evaluated.tensor->name()) && !isHeld(evaluated) &&
        none_of(moved, [&](const Evaluated *other) { return other->parameters == evaluated.parameters; }))
      unfoldFunction(graph, evaluated) || unfoldMixture(graph, &evaluated) ||
          (isGather(evaluated.tensor->name()) && unfoldGathered(graph, evaluated));
  for (const Evaluated &evaluated : images)
    if (!graph.isRemoved(evaluated.tensor->name()) && isHeld(evaluated))
      unfoldLayerOperand(graph, evaluated);
  for (const Evaluated &evaluated : images) {
    if (graph.isRemoved(evaluated.tensor->name()))
      continue;
    // Steps of an operation are called as if they only moved what it reads; what moves a parameter is a view of it.
    const bool isStep = isHeld(evaluated) && operationName(evaluated.tensor->name()) == "val";
    if (!is_contained(moved, &evaluated))
      recoverFunctions(graph, evaluated, moved) || recoverExpression(graph, evaluated);
    else if (isStep)
      recoverFunctions(graph, evaluated, moved);
  }
}

int64_t lowtide::countSamples(const ::onnx::GraphProto &graph) {
  int64_t samples = 0;
  for (const auto &input : graph.input()) {
    const auto &shape = input.type().tensor_type().shape();
    if (shape.dim_size() == 0)
      continue;
    if (!shape.dim(0).has_dim_value() || (samples && shape.dim(0).dim_value() != samples))
      return 0;
    samples = shape.dim(0).dim_value();
  }
  return samples;
}

void lowtide::unfoldAllOfOne(UnfoldingGraph &graph, std::vector<Evaluated> &images) {
  MapVector<const SignatureEntry *, SmallVector<const Evaluated *>> byParameter;
  // What was taken apart already gave a parameter that the others are made of.
  for (const Evaluated &each : images)
    if (!graph.isRemoved(each.tensor->name()))
      for (const SignatureEntry *entry : each.parameters)
        byParameter[entry].push_back(&each);
  const int64_t samples = countSamples(graph.getGraph());
  for (const auto &[entry, all] : byParameter)
    if (all_of(all, [](const Evaluated *each) { return each->parameters.size() == 1; }))
      unfoldSeveral(graph, all, samples) || unfoldMixture(graph, all);
  llvm::erase_if(images, [&](const Evaluated &each) { return graph.isRemoved(each.tensor->name()); });
}
