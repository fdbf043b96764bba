//===- Products.cpp - factors of matrix products, in files without notes ---------===//

#include "Products.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace llvm;
using namespace lowtide;
using ::onnx::NodeProto;

/// The products with the tensor, or with its transpose; empty where something else reads it, too.
SmallVector<const NodeProto *> lowtide::findProducts(const MergedTensors &merged, const TensorFacts &facts) {
  SmallVector<const NodeProto *> products;
  for (const InitializerUse &use : facts.uses) {
    SmallVector<const NodeProto *> nodes{use.node};
    if (use.node->op_type() == "Transpose")
      nodes.assign(merged.findReaders(use.node->output(0)).begin(), merged.findReaders(use.node->output(0)).end());
    for (const NodeProto *node : nodes) {
      if (node->op_type() != "MatMul")
        return {};
      products.push_back(node);
    }
  }
  return products;
}

/// Whether the products are a layer's: whoever reads them is in another module, or adds the layer's bias.
bool lowtide::isLayer(const MergedTensors &merged, ArrayRef<const NodeProto *> products) {
  return llvm::any_of(products, [&](const NodeProto *product) {
    std::optional<std::string> module = findModulePath(*product);
    if (!module || module->empty())
      return false;
    return merged.hasName(*module + ".bias") ||
           llvm::all_of(merged.findReaders(product->output(0)),
                        [&](const NodeProto *reader) { return findModulePath(*reader) != module; });
  });
}

/// Whether sine and cosine of the products are taken, and nothing else: random Fourier features.
bool lowtide::makesFourierFeatures(const MergedTensors &merged, ArrayRef<const NodeProto *> products) {
  return !products.empty() && llvm::all_of(products, [&](const NodeProto *product) {
    std::set<std::string> kinds;
    SmallVector<StringRef> values{product->output(0)};
    while (!values.empty())
      for (const NodeProto *reader : merged.findReaders(values.pop_back_val()))
        if (reader->op_type() == "Mul") // by 2π
          values.push_back(reader->output(0));
        else
          kinds.insert(reader->op_type());
    return kinds == std::set<std::string>{"Sin", "Cos"};
  });
}
