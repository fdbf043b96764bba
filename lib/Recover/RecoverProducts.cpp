//===- RecoverProducts.cpp - penalties on the products of a matrix's rows -----------===//
//
// `c · (w @ w.T − eye).pow(2).sum()` depends on no input, and the exporter evaluates it. The notes name the operations;
// whether rows or columns are multiplied, and c, the number tells.
//
//===----------------------------------------------------------------------===//

#include "ElementFunctions.h"
#include "Unfold.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <tuple>

using namespace llvm;
using namespace lowtide;
using ::onnx::TensorProto;

/// Rows and columns of the largest matrix that is multiplied with itself to compare a number.
static constexpr int64_t largestSide = 1024;

namespace {
/// A measure of the products of a matrix's rows, or columns, less the identity.
struct Measure {
  bool isLessOne; ///< one is taken from the product of each with itself
  bool isSquare;  ///< of squares; otherwise of sizes
  bool isMean;    ///< otherwise a sum
  bool isRoot;    ///< of that sum

  double of(ArrayRef<float> values, int64_t rows, bool ofColumns) const;
};
} // namespace

double Measure::of(ArrayRef<float> values, int64_t rows, bool ofColumns) const {
  const int64_t columns = int64_t(values.size()) / rows, side = ofColumns ? columns : rows;
  auto at = [&](int64_t i, int64_t k) { return double(ofColumns ? values[k * columns + i] : values[i * columns + k]); };
  double total = 0;
  for (int64_t i = 0; i != side; ++i)
    for (int64_t j = 0; j != side; ++j) {
      double product = i == j && isLessOne ? -1 : 0;
      for (int64_t k = 0, e = ofColumns ? rows : columns; k != e; ++k)
        product += at(i, k) * at(j, k);
      total += isSquare ? product * product : std::abs(product);
    }
  return isRoot ? std::sqrt(total) : isMean ? total / double(side * side) : total;
}

/// What the operations say of it; nullopt: something else is among them.
static std::optional<Measure> findMeasure(ArrayRef<StringRef> operations) {
  for (StringRef operation : operations)
    if (!is_contained({"matmul", "mm",       "sub",     "rsub", "eye", "eq",   "ones",
                       "full",   "pow",      "square",  "abs",  "sum", "mean", "linalg_vector_norm",
                       "norm",   "mse_loss", "l1_loss", "mul",  "div", "val",  "where"},
                      operation))
      return std::nullopt;
  auto has = [&](StringRef name) { return is_contained(operations, name); };
  const bool isLoss = has("mse_loss") || has("l1_loss"), isRoot = has("linalg_vector_norm") || has("norm");
  const bool isSquare = has("pow") || has("square") || has("mse_loss") || isRoot;
  const bool isAbsolute = has("abs") || has("l1_loss");
  if ((!has("matmul") && !has("mm")) || isSquare == isAbsolute || isLoss + isRoot + has("sum") + has("mean") != 1 ||
      (isRoot && (has("pow") || has("square"))))
    return std::nullopt;
  return Measure{isLoss || has("sub") || has("rsub"), isSquare, isLoss || has("mean"), isRoot};
}

bool lowtide::unfoldProducts(UnfoldingGraph &graph, const TensorProto &image, const TensorProto &parameter,
                             ArrayRef<StringRef> operations) {
  const std::optional<Measure> measure = findMeasure(operations);
  const std::vector<float> values = valuesOf(graph, parameter), held = valuesOf(graph, image);
  if (!measure || held.size() != 1 || values.empty() || parameter.dims_size() < 2)
    return false;
  const int64_t rows = parameter.dims(0), columns = int64_t(values.size()) / rows;
  if (std::max(rows, columns) > largestSide)
    return false;
  // Rows or columns: the plainer factor, if one is plainer.
  double factors[2];
  int digits[2];
  for (bool ofColumns : {false, true})
    std::tie(factors[ofColumns], digits[ofColumns]) = asWritten(held.front() / measure->of(values, rows, ofColumns));
  const bool ofColumns = digits[1] < digits[0];
  const double factor = factors[ofColumns];
  if (digits[0] == digits[1] || std::isnan(factor) ||
      (factor != 1 && !is_contained(operations, "mul") && !is_contained(operations, "div")))
    return false;
  graph.setModule(moduleOf(parameter.name()));
  const std::string matrix = graph.addNode("Reshape", {parameter.name(), graph.addIntegers({2}, {rows, columns})});
  const std::string turned = graph.addNode("Transpose", {matrix});
  std::string each = graph.addNode("MatMul", {ofColumns ? turned : matrix, ofColumns ? matrix : turned});
  if (measure->isLessOne)
    each = graph.addNode("Sub", {each, graph.addNode("EyeLike", {each})});
  each = measure->isSquare ? graph.addNode("Mul", {each, each}) : graph.addNode("Abs", {each});
  each = graph.addNode(measure->isMean ? "ReduceMean" : "ReduceSum", {each});
  graph.setAttribute("keepdims", 0);
  if (measure->isRoot)
    each = graph.addNode("Sqrt", {each});
  each = graph.addNode("Mul", {each, graph.addNumber(float(factor))});
  const SmallVector<int64_t> dims(image.dims().begin(), image.dims().end());
  graph.addNode("Reshape", {each, graph.addIntegers({int64_t(dims.size())}, dims)}, image.name());
  graph.remove(image);
  return true;
}
