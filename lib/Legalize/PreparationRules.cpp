//===- PreparationRules.cpp - ai.onnx.ml around networks ------------------===//
//
// Operators that prepare the data of a network, and linear models. What was fitted to data stands in attributes: it is
// part of the text, and not trained. Trees and support vectors are refused.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/Indices.h"
#include "lowtide/Legalize/Rules.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

/// The operand as ai.onnx.ml computes with it: in f32.
Expr asFloat(NodeView &n, unsigned i) { return nn::cast(n.in(i), n.builder.getF32Type()); }

/// Floats of an attribute, for the last dimension of `x`: one for all of it or one for each element. Null, after a
/// rejection: other numbers.
Expr ofFeatures(NodeView &n, StringRef name, Expr x) {
  auto list = dyn_cast_or_null<DenseF32ArrayAttr>(n.op.getNodeAttr(name));
  const int64_t count = list ? list.size() : 0;
  if (x.rank() == 0 || (count != 1 && count != x.shape().back())) {
    (void)n.reject("'" + name + "' holds " + Twine(count) + " numbers; it is one, or one for each feature");
    return {};
  }
  auto type = RankedTensorType::get({count}, n.builder.getF32Type());
  return nn::broadcastTo(n.dense(DenseElementsAttr::get(type, list.asArrayRef())), x.shape());
}

LogicalResult scaler(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = asFloat(n, 0);
  for (auto [name, isOffset] : {std::pair("offset", true), std::pair("scale", false)})
    if (n.hasAttr(name)) {
      Expr numbers = ofFeatures(n, name, x);
      if (!numbers)
        return failure();
      x = isOffset ? x - numbers : x * numbers;
    }
  n.set(0, x);
  return success();
}

LogicalResult imputer(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  if (!n.hasAttr("imputed_value_floats"))
    return n.refuse("it replaces whole numbers");
  Expr x = asFloat(n, 0), values = ofFeatures(n, "imputed_value_floats", x);
  if (!values)
    return failure();
  const double replaced = n.attrFloat("replaced_value_float", 0.0);
  n.set(0, nn::select(replaced != replaced ? nn::isNaN(x) : nn::equal(x, replaced), values, x));
  return success();
}

LogicalResult binarizer(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  n.set(0, nn::cast(nn::greater(x, n.attrFloat("threshold", 0.0)), x.elementType()));
  return success();
}

/// Rows of length one; a row of zeros stays.
LogicalResult normalizer(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = asFloat(n, 0);
  if (x.rank() != 1 && x.rank() != 2)
    return n.reject("features [C] or [N, C] are expected");
  const std::string norm = n.attrString("norm", "MAX");
  if (norm == "MAX")
    return n.refuse(
        "norm 'MAX', which ONNX Runtime takes of numbers and ONNX's reference of their absolute values; there "
        "are L1 and L2");
  if (norm != "L1" && norm != "L2")
    return n.reject("norm '" + norm + "'; there are MAX, L1 and L2");
  const int64_t last = x.rank() - 1;
  Expr sum = nn::sum(norm == "L1" ? nn::abs(x) : x * x, {last});
  Shape kept(x.shape());
  kept[last] = 1;
  // No gradient flows through a length of zero.
  Expr safe = nn::select(nn::equal(sum, 0.0), sum.like(1.0), sum);
  Expr length = norm == "L1" ? safe : nn::sqrt(safe);
  n.set(0, x / nn::broadcastTo(nn::reshape(length, kept), x.shape()));
  return success();
}

LogicalResult featureVectorizer(NodeView &n) {
  SmallVector<Expr> parts;
  for (unsigned i = 0; i < n.size(); ++i) {
    if (!n.has(i) || n.in(i).rank() != 2)
      return n.refuse("features that are not [N, C]");
    parts.push_back(asFloat(n, i));
  }
  if (parts.empty())
    return n.reject("it has no operands");
  n.set(0, nn::concat(parts, 1));
  return success();
}

/// Columns of the last dimension.
LogicalResult arrayFeatureExtractor(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr x = n.in(0);
  std::optional<Shape> columns = n.constantInts(1);
  if (!columns)
    return n.refuse("columns that are computed from data");
  if (x.rank() == 0 || columns->empty() ||
      llvm::any_of(*columns, [&](int64_t column) { return column < 0 || column >= x.shape().back(); }))
    return n.reject("columns that the operand does not have");
  Expr taken = nn::gather(x, n.ints(*columns), x.rank() - 1);
  n.set(0, x.rank() == 1 ? nn::reshape(taken, {1, int64_t(columns->size())}) : taken);
  return success();
}

/// x · coefficientsᵀ + intercepts of `rows` rows. Null after a rejection.
Expr linear(NodeView &n, int64_t rows) {
  Expr x = asFloat(n, 0);
  if (x.rank() == 1)
    x = nn::reshape(x, {1, x.dim(0)});
  auto floats = [&](StringRef name) { return dyn_cast_or_null<DenseF32ArrayAttr>(n.op.getNodeAttr(name)); };
  DenseF32ArrayAttr coefficients = floats("coefficients"), intercepts = floats("intercepts");
  if (x.rank() != 2 || rows < 1 || !coefficients || coefficients.size() != rows * x.dim(1) ||
      (intercepts && intercepts.size() != rows)) {
    (void)n.reject("coefficients and intercepts do not fit features [N, C] and " + Twine(rows) + " results");
    return {};
  }
  emitWarning(n.getLoc()) << "'" << n.op.getOpType()
                          << "' holds its coefficients in attributes: they are not trained; write the model with "
                             "MatMul and Add, whose initializers are";
  Type f32 = n.builder.getF32Type();
  auto constant = [&](DenseF32ArrayAttr list, ArrayRef<int64_t> shape) {
    return n.dense(DenseElementsAttr::get(RankedTensorType::get(shape, f32), list.asArrayRef()));
  };
  Expr y = nn::dot(x, constant(coefficients, {rows, x.dim(1)}), false, /*transposeB=*/true);
  return intercepts ? y + nn::broadcastTo(constant(intercepts, {rows}), y.shape()) : y;
}

LogicalResult linearRegressor(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  if (n.attrString("post_transform", "NONE") != "NONE")
    return n.refuse("post_transform '" + n.attrString("post_transform", "") + "'");
  Expr y = linear(n, n.attr("targets", 1));
  if (!y)
    return failure();
  n.set(0, y);
  return success();
}

/// Of as many rows of coefficients as classes; result 0 is the class with the highest score.
LogicalResult linearClassifier(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  const Shape classes = n.attrInts("classlabels_ints");
  if (classes.size() < 2)
    return n.refuse("classes that are not two or more integers");
  auto list = dyn_cast_or_null<DenseF32ArrayAttr>(n.op.getNodeAttr("coefficients"));
  if (list && n.in(0).rank() == 2 && list.size() == n.in(0).dim(1))
    return n.refuse("one row of coefficients for two classes; export one for each");
  const std::string transform = n.attrString("post_transform", "NONE");
  if (!llvm::is_contained({"NONE", "SOFTMAX", "LOGISTIC"}, transform))
    return n.refuse("post_transform '" + transform + "'; there are NONE, SOFTMAX and LOGISTIC");
  Expr scores = linear(n, int64_t(classes.size()));
  if (!scores)
    return failure();
  if (n.wants(0))
    n.set(0, nn::gather(n.ints(classes), nn::argmax(scores, 1, n.builder.getI64Type()), 0));
  n.set(1, transform == "SOFTMAX" ? nn::softmax(scores, 1) : transform == "LOGISTIC" ? nn::sigmoid(scores) : scores);
  return success();
}

} // namespace

void lowtide::addPreparationRules(RuleTable &t) {
  t.add("ai.onnx.ml.Scaler", scaler);
  t.add("ai.onnx.ml.Imputer", imputer);
  t.add("ai.onnx.ml.Binarizer", binarizer);
  t.add("ai.onnx.ml.Normalizer", normalizer);
  t.add("ai.onnx.ml.FeatureVectorizer", featureVectorizer);
  t.add("ai.onnx.ml.ArrayFeatureExtractor", arrayFeatureExtractor);
  t.add("ai.onnx.ml.LinearRegressor", linearRegressor);
  t.add("ai.onnx.ml.LinearClassifier", linearClassifier);
  for (StringRef name :
       {"TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor", "SVMClassifier", "SVMRegressor"})
    t.addRefusal(("ai.onnx.ml." + name).str(),
                 "trees and support vectors are not trained by gradients; leave them out of the file");
  for (StringRef name : {"LabelEncoder", "OneHotEncoder", "CategoryMapper", "DictVectorizer", "ZipMap"})
    t.addRefusal(
        ("ai.onnx.ml." + name).str(),
        "maps of text and categories are not implemented; prepare the data before, or export with zipmap=False");
}
