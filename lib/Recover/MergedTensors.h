//===- MergedTensors.h - tensors that began equal, in files without notes --------===//

#ifndef LOWTIDE_LIB_RECOVER_MERGEDTENSORS_H
#define LOWTIDE_LIB_RECOVER_MERGEDTENSORS_H

#include "Classifier.h"
#include "ModulePaths.h"

#include "llvm/ADT/StringMap.h"

namespace lowtide {

/// One of the tensors that an initializer of the file stands for.
struct MergedTensor {
  /// The name that it went by; the initializer's own for the one that is left.
  std::string name;
  /// The initializer, with the operators that read this tensor; copies are looked through.
  TensorFacts facts;
  /// The reads of the initializer that are this tensor's: those of `facts`, or of copies.
  llvm::SmallVector<InitializerUse> uses;
  /// How it was found; none for the one that is left.
  std::optional<Reason> reason;
  /// The file does not say that it was a tensor of its own.
  bool isAssumed = false;
};

/// Takes apart what exporters and cleaners merged because it was equal.
class MergedTensors {
public:
  MergedTensors(const ModelView &file, llvm::ArrayRef<TensorFacts> facts);

  /// The tensors that `fact` stands for, in the order of their reads; the initializer's own first, if it is read.
  std::vector<MergedTensor> split(const TensorFacts &fact) const;
  /// Whether an initializer of the file, or one that was merged, goes by `name`.
  bool hasName(llvm::StringRef name) const { return names.contains(name); }
  /// The node of the graph that gives `value`; null: none.
  const ::onnx::NodeProto *findProducer(llvm::StringRef value) const { return producers.lookup(value); }
  const ModulePaths &getPaths() const { return paths; }
  /// Whether names are those of TensorFlow's operations (TensorFlowNames.h).
  bool isTensorFlow() const { return isFromTensorFlow; }
  /// Whether names are those of paddle2onnx (PaddleNames.h).
  bool isPaddle() const { return isFromPaddle; }
  /// Whether no tensor of floats kept its name (MadeByLayers.h).
  bool isEvaluatedWhole() const { return keepsNoName; }
  /// The module whose bias, read nowhere else, `layer` adds, or is added to what it gives; nullopt: there is none.
  std::optional<std::string> findModuleOfBias(const ::onnx::NodeProto &layer) const;
  /// The nodes of the graph that read `value`.
  llvm::ArrayRef<const ::onnx::NodeProto *> findReaders(llvm::StringRef value) const {
    auto found = readers.find(value);
    return found == readers.end() ? llvm::ArrayRef<const ::onnx::NodeProto *>() : found->second;
  }

private:
  /// The name of the copy that `use` makes; empty: it makes none.
  llvm::StringRef copyName(const InitializerUse &use) const;
  /// The module that `node` came from, where a second call is the same module; empty for the root and where nothing is
  /// known.
  std::string moduleOfNode(const ::onnx::NodeProto &node) const;
  llvm::SmallVector<std::string> modulesOf(llvm::ArrayRef<InitializerUse> uses) const;
  bool isPartOfBias(const TensorFacts &copy) const;
  bool isEvaluatedPart(const TensorFacts &copy) const;
  bool isTied(const TensorFacts &copy, const TensorFacts &owner) const;
  void splitReaders(MergedTensor &own, std::vector<MergedTensor> &parts) const;
  bool isMergedReader(const MergedTensor &own, llvm::StringRef home, llvm::StringRef module,
                      const InitializerUse &use) const;
  std::string findNamedTwin(const InitializerUse &use) const;
  void splitNodes(MergedTensor &own, std::vector<MergedTensor> &parts) const;
  void splitScopes(MergedTensor &own, std::vector<MergedTensor> &parts) const;
  int64_t findLargestDeduplicated(llvm::ArrayRef<TensorFacts> facts) const;
  bool hasRepeatedLayers(llvm::ArrayRef<TensorFacts> facts) const;

  const ModelView &file;
  ModulePaths paths;
  bool isPyTorch, isFromTensorFlow, isFromPaddle, keepsNoName, repeatsLayers = false;
  /// Tensors of up to so many elements are in the file once if they are equal.
  int64_t largestDeduplicated = 0;
  /// Reads of copies, by the copies' names.
  llvm::StringMap<llvm::SmallVector<InitializerUse>> reads;
  llvm::StringMap<const ::onnx::NodeProto *> producers;
  /// Modules by the value to which their bias is added, or by the result of the layer that adds it.
  llvm::StringMap<std::string> biasedModules;
  llvm::StringMap<llvm::SmallVector<const ::onnx::NodeProto *, 1>> readers;
  llvm::StringSet<> outputs, names;
  /// Modules with tensors of their own, by any name in the file; with such that are no copies and not constant.
  llvm::StringSet<> modules, modulesWithWeights;
  /// Modules that nodes came from.
  llvm::StringSet<> calledModules;
};

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_MERGEDTENSORS_H
