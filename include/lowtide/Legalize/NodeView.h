//===- NodeView.h - what a legalization rule sees of a node -----*- C++ -*-===//
//
// Operands as expressions or as compile-time values, attributes with defaults, results to set, refusals in words.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/ONNX/ONNX.h"
#include "lowtide/Legalize/Legalize.h"

namespace lowtide {

class LegalizeContext;

/// What a value of the graph is: a tensor, or a list of tensors known at compile time.
struct Meaning {
  mlir::Value tensor;
  std::optional<llvm::SmallVector<mlir::Value>> sequence;
  explicit operator bool() const { return tensor || sequence; }
};

using Shape = llvm::SmallVector<int64_t>;

/// One node on its way to nn. Rules read it, build nn ops through expressions, and set its results.
class NodeView {
public:
  NodeView(onnx::NodeOp op, LegalizeContext &context, mlir::OpBuilder &builder);

  onnx::NodeOp op;
  LegalizeContext &context;
  mlir::OpBuilder &builder;

  mlir::Location getLoc() { return op.getLoc(); }
  /// Version of the operator set that the file imports.
  int64_t version() { return op.getVersion(); }
  /// Operands up to the last one that is present.
  unsigned size() const { return count; }
  bool has(unsigned i) const;
  /// Operand `i`, null when absent. Sequences are null too.
  nn::Expr in(unsigned i) const;
  const Meaning &meaning(unsigned i) const;
  nn::Expr wrap(mlir::Value value) const;

  /// Operand `i` when its elements are known at compile time.
  mlir::DenseElementsAttr constant(unsigned i) const;
  /// The same as integers (any integer or boolean type), row-major.
  std::optional<Shape> constantInts(unsigned i) const;
  std::optional<llvm::SmallVector<double>> constantFloats(unsigned i) const;
  /// The integers of operand `i`, or a refusal that calls it `what` ("the shape").
  mlir::FailureOr<Shape> knownInts(unsigned i, const llvm::Twine &what);
  /// The one integer of operand `i`, or a refusal that calls it `what` ("the axis").
  mlir::FailureOr<int64_t> knownInt(unsigned i, const llvm::Twine &what);

  /// The same of an operand that shapes a result: sizes may be computed of the number of rows that data select, and the
  /// capacity stands for it (Legalize/SelectedRows.h). The result at 0 is known to have such rows then.
  mlir::FailureOr<Shape> knownShape(unsigned i, const llvm::Twine &what);

  // Attributes.
  bool hasAttr(llvm::StringRef name) { return static_cast<bool>(op.getNodeAttr(name)); }
  /// Whether one of PyTorch's exporters wrote the model, whose program means PyTorch's operation.
  bool isOfPyTorch();
  int64_t attr(llvm::StringRef name, int64_t otherwise);
  double attrFloat(llvm::StringRef name, double otherwise);
  std::string attrString(llvm::StringRef name, llvm::StringRef otherwise);
  Shape attrInts(llvm::StringRef name, llvm::ArrayRef<int64_t> otherwise = {});
  /// The list that older versions hold in an attribute and newer ones in operand `i`. Fails (after a refusal) when the
  /// operand is not known at compile time; null when absent from both.
  mlir::FailureOr<std::optional<Shape>> attrOrInput(llvm::StringRef name, unsigned i);
  /// The axes that attribute `axes` or operand `i` names, counted from the front of `rank` dimensions; null when
  /// absent.
  mlir::FailureOr<std::optional<Shape>> axesOrInput(unsigned i, int64_t rank);

  unsigned numResults() { return op.getNumResults(); }
  /// Whether result `i` exists and something reads it.
  bool wants(unsigned i);
  void set(unsigned i, mlir::Value value);
  void setSequence(unsigned i, llvm::ArrayRef<mlir::Value> values);

  /// The node needs something that is not implemented: why, in words.
  mlir::LogicalResult refuse(const llvm::Twine &reason);
  /// The node contradicts its operator's definition.
  mlir::LogicalResult reject(const llvm::Twine &reason);

  /// Whether the operands from 0 to `n`−1 are there (they are tensors). Rejects when not.
  mlir::LogicalResult need(unsigned n);
  /// Axis `a` counted from the front; −1 after a rejection.
  mlir::FailureOr<int64_t> axis(int64_t a, int64_t rank);
  mlir::FailureOr<Shape> axes(llvm::ArrayRef<int64_t> list, int64_t rank);

  // Constants at this node's place.
  nn::Expr splat(mlir::Type element, llvm::ArrayRef<int64_t> shape, double value);
  nn::Expr ints(llvm::ArrayRef<int64_t> values, mlir::Type element = {});
  nn::Expr dense(mlir::DenseElementsAttr value);

  llvm::SmallVector<Meaning> results;
  /// Set where exporters are known to state a wrong shape for the node's results: it is not held against the file.
  bool ignoresStatedShape = false;
  /// The last dimensions of result 0, with capacities and with tags for the number of rows that data select.
  struct StatedSizes {
    Shape atCapacity, tagged;
  };
  std::optional<StatedSizes> sizes;

private:
  unsigned count = 0;
};

/// The common shape of two shapes under numpy's rules; fails when there is none.
mlir::FailureOr<Shape> broadcastShapes(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);
/// Product with overflow check; −1 on overflow.
int64_t countOf(llvm::ArrayRef<int64_t> shape);
/// Elements as integers. Only for integer and boolean element types.
Shape intsOf(mlir::DenseElementsAttr attr);
llvm::SmallVector<double> floatsOf(mlir::DenseElementsAttr attr);

} // namespace lowtide
