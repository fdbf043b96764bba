//===- Products.h - factors of matrix products, in files without notes -----------===//

#ifndef LOWTIDE_LIB_RECOVER_PRODUCTS_H
#define LOWTIDE_LIB_RECOVER_PRODUCTS_H

#include "MergedTensors.h"

namespace lowtide {

/// The products with the tensor, or with its transpose; empty where something else reads it, too.
llvm::SmallVector<const ::onnx::NodeProto *> findProducts(const MergedTensors &merged, const TensorFacts &facts);

/// Whether the products are a layer's: whoever reads them is in another module, or adds the layer's bias.
bool isLayer(const MergedTensors &merged, llvm::ArrayRef<const ::onnx::NodeProto *> products);

/// Whether sine and cosine of the products are taken, and nothing else: random Fourier features.
bool makesFourierFeatures(const MergedTensors &merged, llvm::ArrayRef<const ::onnx::NodeProto *> products);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_PRODUCTS_H
