//===- MadeByLayers.h - tensors that change what layers made ---------------------===//

#ifndef LOWTIDE_LIB_RECOVER_MADEBYLAYERS_H
#define LOWTIDE_LIB_RECOVER_MADEBYLAYERS_H

#include "MergedTensors.h"

namespace lowtide {

/// Whether something that `value` is computed from is what a layer made with weights of its own.
bool comesFromLayer(const MergedTensors &merged, llvm::StringRef value);

/// Whether all readers scale or shift by the tensor what layers made: numbers that describe data stand in front of
/// them.
bool scalesLayers(const MergedTensors &merged, const TensorFacts &facts);

/// Whether the tensor, perhaps in another shape, is added to what layers made, or multiplied with it, and nothing else,
/// as biases and scales are; in a node without a name, only added. What is subtracted is a mean.
bool adjustsLayer(const MergedTensors &merged, const TensorFacts &facts);

/// Whether no tensor of floats kept a name: PyTorch's old exporter evaluated all, as where the program converts its
/// parameters before it reads them (Keras on PyTorch), or all are in nodes without names (spox, ndonnx).
bool isEvaluatedWhole(const ModelView &file, llvm::ArrayRef<TensorFacts> facts);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_MADEBYLAYERS_H
