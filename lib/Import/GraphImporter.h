//===- GraphImporter.h - builds the IR of one graph
//--------------------------------------===//

#ifndef LOWTIDE_LIB_IMPORT_GRAPHIMPORTER_H
#define LOWTIDE_LIB_IMPORT_GRAPHIMPORTER_H

#include "Dimensions.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace lowtide {

/// Turns a checked model into a `func.func`. Knows no operator.
class GraphImporter {
public:
  GraphImporter(OnnxFile &file, llvm::ArrayRef<InitializerInfo> infos, const DimBinding &dims,
                const ImportOptions &options);

  mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> run();

private:
  using Scope = llvm::StringMap<mlir::Value>;

  mlir::func::FuncOp createFunction(mlir::ModuleOp module);
  mlir::LogicalResult importNodes(const ::onnx::GraphProto &graph);
  mlir::LogicalResult importNode(const ::onnx::NodeProto &node);
  mlir::LogicalResult importConstant(const ::onnx::NodeProto &node);
  mlir::LogicalResult importSubgraph(const ::onnx::GraphProto &graph, mlir::Region &region);
  mlir::LogicalResult importLocalInitializers(const ::onnx::GraphProto &graph);
  mlir::LogicalResult importFixedInputs();
  mlir::LogicalResult importSmallInitializers();
  void importView(size_t index);
  void noteUses(const InitializerInfo &info, llvm::SmallVectorImpl<mlir::NamedAttribute> &attrs);
  llvm::SmallVector<std::pair<mlir::Value, llvm::StringRef>> findAssigned();
  mlir::LogicalResult finishFunction(mlir::func::FuncOp function);
  /// Adds the functions that compute the file's images of parameters, and notes on each argument which they are.
  void importImages(mlir::func::FuncOp model);
  /// `results`: the file's initializers, and what of @model they are.
  void buildExport(mlir::func::FuncOp model, unsigned number,
                   llvm::ArrayRef<std::pair<mlir::StringAttr, mlir::Value>> results);

  /// The value that operand `index` of `node` reads.
  mlir::Value resolve(const ::onnx::NodeProto &node, int index);
  mlir::Value lookup(llvm::StringRef name);
  /// The initializer in which `node` looks up rows, as it stands or converted to another type; null: none.
  const InitializerInfo *findTable(const ::onnx::NodeProto &node);
  void define(llvm::StringRef name, mlir::Value value) { scopes.back()[name] = value; }
  /// Remembers the types that the file states; returns the names that are new.
  llvm::SmallVector<llvm::StringRef> noteTypes(const ::onnx::GraphProto &graph);
  mlir::Type typeOf(llvm::StringRef name);
  mlir::Location locate(const ::onnx::NodeProto &node);
  mlir::Location locate(llvm::StringRef name);
  mlir::LogicalResult unsupported(llvm::StringRef where, const llvm::Twine &message);

  OnnxFile &file;
  llvm::ArrayRef<InitializerInfo> infos;
  const DimBinding &dims;
  const ImportOptions &options;
  mlir::MLIRContext *context;
  mlir::OpBuilder builder;
  llvm::SmallVector<Scope, 4> scopes;
  llvm::StringMap<mlir::Type> statedTypes;
  /// One value per info, and the infos that split one initializer's uses among
  /// them.
  std::vector<mlir::Value> infoValues;
  llvm::DenseMap<std::pair<const ::onnx::NodeProto *, int>, unsigned> infoOfUse;
  mlir::Value none;
};

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_GRAPHIMPORTER_H
