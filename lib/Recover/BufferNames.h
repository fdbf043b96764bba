//===- BufferNames.h - names of what no optimizer sees ---------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_BUFFERNAMES_H
#define LOWTIDE_LIB_RECOVER_BUFFERNAMES_H

#include "Classifier.h"

#include "llvm/ADT/StringSet.h"

namespace lowtide {

/// Names that frameworks and well-known programs give to float buffers, which no optimizer sees.
bool isBufferLeaf(llvm::StringRef leaf);

/// Whether vector `name` is one of the two of a spectral norm, `weight_u` and `weight_v`, next to the other or to
/// `weight_orig`, and not added to anything. A weight kept as direction and length has a matrix of the second name.
bool isPowerIteration(const ModelView &file, const TensorFacts &facts, llvm::StringRef name);

/// Warns about tensors that were taken for buffers by a word that programs also learn under (`mask`, `anchors`, `std`),
/// where neither values nor readers bear it out: a mask holds two numbers, a mean measures inputs.
void reportBufferWords(ModelView &file, llvm::ArrayRef<InitializerInfo> infos);

/// What can only be a buffer by its place: PyTorch's old exporter lists a module's parameters before its buffers. Empty
/// where the file lists its tensors in another order.
llvm::StringSet<> findBuffersByOrder(const ModelView &file, llvm::ArrayRef<TensorFacts> facts);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_BUFFERNAMES_H
