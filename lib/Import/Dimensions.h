//===- Dimensions.h - symbolic dimensions get numbers
//--------------------------------===//

#ifndef LOWTIDE_LIB_IMPORT_DIMENSIONS_H
#define LOWTIDE_LIB_IMPORT_DIMENSIONS_H

#include "DimExpression.h"

#include "lowtide/Import/Import.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringMap.h"

#include "onnx/onnx_pb.h"

namespace lowtide {

/// What the options say about the shapes of a model.
class DimBinding {
public:
  /// Collects `--dim`, `--shape` and `--batch`; contradictions are reported as
  /// usage errors.
  DimBinding(OnnxFile &file, const ImportOptions &options);

  bool isValid() const { return valid; }
  /// Symbols and inputs that are still without a size, each with what to type.
  std::vector<std::string> findUnbound(int64_t example = 8) const;
  /// Static shape of graph input `value`; nullopt when something is unbound.
  std::optional<llvm::SmallVector<int64_t>> getInputShape(const ::onnx::ValueInfoProto &value) const;
  /// The dimension of graph input `value` that counts samples, −1: none does; nullopt where all that hold samples begin
  /// with them, or nothing tells. A model may walk over time first (`nn.LSTM`: [time, batch, features]).
  std::optional<int64_t> getBatchDim(const ::onnx::ValueInfoProto &value) const;
  /// Warns where the sizes of the file are fixed and its inputs begin with different ones: which is taken for a batch.
  void reportAssumedBatch() const;
  /// The ranked type that the file states for a value, symbols replaced; null
  /// unless static and supported.
  mlir::RankedTensorType getStatedType(const ::onnx::ValueInfoProto &value) const;

private:
  void applyShapes(const ImportOptions &options);
  void applyBatch(int64_t batch);
  /// `batch` samples where the options state `whole` of them: every symbol that counts samples gets the other number.
  void applyOtherBatch(int64_t batch, int64_t whole);
  std::vector<std::string> listFirstSymbols() const;
  /// `name`: a symbol, or a dimension that is derived from symbols.
  void bind(llvm::StringRef name, int64_t size, llvm::StringRef origin);
  void applyDims(const ImportOptions &options);
  /// Gives symbols their sizes by the derived dimensions that are bound, and looks whether all dimensions have one.
  void solve();
  void checkDerived();
  /// Refuses inputs of more elements than a tensor has.
  void checkSizes();
  /// Size of a dimension that is called `name`.
  std::optional<int64_t> findSize(llvm::StringRef name) const;
  std::string findOnlySymbol() const;
  std::string findBatchSymbol() const;
  void findBatchLength(std::optional<int64_t> stated);
  void usageError(const llvm::Twine &message, const llvm::Twine &remedy = "");
  /// Inputs that no initializer feeds.
  std::vector<const ::onnx::ValueInfoProto *> getInputs() const;

  OnnxFile &file;
  llvm::StringMap<int64_t> symbols;
  /// Dimensions of inputs that are derived from symbols, by their names.
  llvm::StringMap<DimExpression> derived;
  /// The same of outputs: only what is typed by such a name is bound by it.
  llvm::StringMap<DimExpression> ofOutputs;
  /// A derived dimension that is bound.
  struct Equation {
    std::string name;
    int64_t size;
    std::string origin;
  };
  std::vector<Equation> equations;
  llvm::StringMap<std::vector<int64_t>> shapes;
  std::optional<int64_t> batchSize;
  /// The batch is the symbol of the inputs, though none begins with it.
  bool bindsOnlySymbol = false;
  /// What counts samples where some inputs do not begin with it; otherwise empty.
  std::string batchSymbol;
  /// The same where no symbol tells: a size of the file.
  std::optional<int64_t> batchLength;
  /// What is taken for the batch though the inputs begin with different sizes, and nothing states it.
  std::optional<int64_t> assumedLength;
  bool valid = true;
};

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_DIMENSIONS_H
