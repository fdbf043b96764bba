//===- TensorFacts.h - initializers and who reads them ----------------------------===//

#ifndef LOWTIDE_RECOVER_TENSORFACTS_H
#define LOWTIDE_RECOVER_TENSORFACTS_H

#include "lowtide/Recover/ModelView.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace onnx {
class GraphProto;
} // namespace onnx

namespace lowtide {

/// An initializer of the file with everything that reads it.
struct TensorFacts {
  const ::onnx::TensorProto *tensor;
  llvm::SmallVector<InitializerUse> uses;
  bool isGraphOutput = false;
  std::vector<std::string> foldedFrom;

  bool isUsed() const { return isGraphOutput || !uses.empty(); }
  int64_t getNumElements() const;
};

/// Calls `visit` with each operand of each node, those of subgraphs too.
void forEachRead(const ::onnx::GraphProto &graph, llvm::function_ref<void(llvm::StringRef, InitializerUse)> visit);

/// All initializers with their uses (in subgraphs too), in the file's order.
std::vector<TensorFacts> collectTensorFacts(const ModelView &file);
std::vector<TensorFacts> collectTensorFacts(const ::onnx::GraphProto &graph);

/// Whether all elements are equal; nullopt where the data cannot be read.
std::optional<bool> isConstantValued(const ModelView &file, const ::onnx::TensorProto &tensor);
/// An info about `facts` with no uses yet.
InitializerInfo makeInfo(const TensorFacts &facts, std::string name, InitializerRole role, Certainty certainty,
                         Reason reason);

} // namespace lowtide

#endif // LOWTIDE_RECOVER_TENSORFACTS_H
