//===- FewBits.h - codes, scales and zero points of weights in few bits -----------===//
//
// Quantizers write operators that read a weight in few bits. Exporters of programs that unpack one themselves write
// the operations: shifts, masks, a look-up among the numbers that codes stand for, a difference, a product with scales.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_FEWBITS_H
#define LOWTIDE_LIB_RECOVER_FEWBITS_H

#include "lowtide/Recover/Evidence.h"
#include "lowtide/Recover/Recover.h"
#include "lowtide/Recover/TensorFacts.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace lowtide {

/// Whether the operand is one of the codes, scales or zero points that an operator makes numbers of, or quantizes by.
bool isOfFewBits(const InitializerUse &use);

/// Names of the tensors that weights in few bits are made of, and nothing else is; what the program lists is none.
llvm::StringSet<> findFewBits(llvm::ArrayRef<TensorFacts> facts, const ::onnx::GraphProto &graph, TensorReader read);

/// What one of them is: a constant.
InitializerInfo describeFewBits(const TensorFacts &fact);

/// Says of which of them the program's own operations make numbers: the file does not tell that nothing trains them.
void reportScales(ModelView &file, llvm::ArrayRef<TensorFacts> facts, const llvm::StringSet<> &ofFewBits);

/// While it lives, the graph is without the scales of weights in few bits: nothing evaluated them of parameters,
/// whatever their numbers are equal to.
class WithoutScales {
public:
  WithoutScales(::onnx::GraphProto &graph, TensorReader read);
  ~WithoutScales();
  WithoutScales(const WithoutScales &) = delete;
  WithoutScales &operator=(const WithoutScales &) = delete;

private:
  ::onnx::GraphProto &graph;
  /// Of the file's tensors.
  llvm::StringMap<size_t> order;
  std::vector<::onnx::TensorProto *> scales;
};

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_FEWBITS_H
