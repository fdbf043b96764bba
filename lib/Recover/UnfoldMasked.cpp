//===- UnfoldMasked.cpp - weights under a mask --------------------------------------===//
//
// Autoregressive flows, sparse cells and pruned networks multiply a weight by zeros and ones (`weight * self.mask`),
// and the exporter evaluates the product. What the mask hides is gone, and nothing reads it; the rest is the weight.
//
//===----------------------------------------------------------------------===//

#include "ElementFunctions.h"
#include "TableValues.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::TensorProto;

namespace {
struct MaskedWeight {
  const TensorProto *product;
  const SignatureEntry *weight = nullptr, *mask = nullptr;
};
} // namespace

static bool isMaskName(StringRef target) { return leafOf(target).contains_insensitive("mask"); }

/// A parameter that is gone and what its module calls a mask, and nothing else.
static std::optional<MaskedWeight> findMasked(const UnfoldingGraph &graph, const Signature &signature,
                                              const TensorProto &tensor, ArrayRef<std::string> foldedFrom) {
  MaskedWeight masked{&tensor};
  for (const std::string &name : foldedFrom) {
    const SignatureEntry *entry = signature.findTarget(name);
    if (!entry) {
      // Masks of truth values are converted first.
      if (!StringRef(name).starts_with("convert_element_type") && operationName(name) != "_to_copy" &&
          !StringRef(name).starts_with("_to_copy"))
        return std::nullopt;
      continue;
    }
    const bool isMask = isMaskName(entry->target) && !entry->mutated;
    const SignatureEntry *&place = isMask ? masked.mask : masked.weight;
    if (place || (!isMask && (entry->kind != SignatureEntry::Parameter || graph.find(entry->target))))
      return std::nullopt;
    place = entry;
  }
  return masked.weight && masked.mask ? std::optional(masked) : std::nullopt;
}

void lowtide::unfoldMaskedWeights(UnfoldingGraph &graph, GraphProto &proto, const Signature &signature) {
  std::vector<MaskedWeight> found;
  for (const auto &value : proto.value_info())
    if (const TensorProto *tensor = operationName(value.name()) == "mul" ? graph.find(value.name()) : nullptr;
        tensor && tensor->data_type() == TensorProto::FLOAT)
      if (std::optional<MaskedWeight> masked = findMasked(graph, signature, *tensor, findFoldedFrom(value)))
        found.push_back(*masked);
  for (const MaskedWeight &masked : found) {
    const std::vector<float> values = valuesOf(graph, *masked.product);
    if (!is_contained(values, 0) || all_of(values, [](float value) { return value == 0; }) ||
        graph.find(masked.weight->target))
      continue;
    std::vector<float> mask(values.size());
    for (auto [one, value] : zip(mask, values))
      one = value != 0;
    SmallVector<int64_t> dims(masked.product->dims().begin(), masked.product->dims().end());
    graph.addInitializer(masked.weight->target, dims, TensorProto::FLOAT, graph.read(*masked.product).value_or(""),
                         {masked.product->name(),
                          "the exporter evaluated its product with " + masked.mask->target +
                              ", which hides some of its elements: they are zeros now",
                          true});
    graph.setModule(moduleOf(masked.weight->target));
    graph.addNode("Mul", {masked.weight->target, graph.addNumbers(dims, mask)}, masked.product->name());
    graph.remove(*masked.product);
  }
}
