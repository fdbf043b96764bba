//===- ContribRules.cpp - operators of the domain com.microsoft -----------===//
//
// Rules for the fused operators that optimized exports contain; each is written as what it was fused from, so that it
// has a derivative.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/MatMul.h"
#include "lowtide/Legalize/Rules.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

/// Operand 0 with the bias in operand 1 added, if there is one.
FailureOr<Expr> biased(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  if (!n.has(1))
    return x;
  FailureOr<Shape> common = broadcastShapes(x.shape(), n.in(1).shape());
  if (failed(common) || ArrayRef<int64_t>(*common) != x.shape()) {
    (void)n.reject("the bias does not broadcast to the operand");
    return failure();
  }
  return x + nn::broadcastTo(n.in(1), x.shape());
}

template <Expr (*F)(Expr)> LogicalResult biasedActivation(NodeView &n) {
  FailureOr<Expr> x = biased(n);
  if (failed(x))
    return failure();
  n.set(0, F(*x));
  return success();
}

LogicalResult quickGelu(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  n.set(0, n.in(0) * nn::sigmoid(n.in(0) * n.attrFloat("alpha", 1.702)));
  return success();
}

/// A matrix as a fused product reads it: `batches` has its rows in front of the batches, `transposed` its rows last.
Expr asMatrix(Expr x, bool batches, bool transposed) {
  if (x.rank() < 2)
    return x;
  Shape permutation = llvm::to_vector(llvm::seq<int64_t>(0, x.rank()));
  if (batches)
    std::rotate(permutation.begin(), permutation.begin() + 1, permutation.end() - 1);
  if (transposed)
    std::swap(permutation[x.rank() - 1], permutation[x.rank() - 2]);
  return nn::transpose(x, permutation);
}

/// Product with flags for transposed matrices and a factor.
LogicalResult fusedMatMul(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr a = asMatrix(n.in(0), n.attr("transBatchA", 0), n.attr("transA", 0));
  FailureOr<Expr> y = matmul(a, asMatrix(n.in(1), n.attr("transBatchB", 0), n.attr("transB", 0)));
  if (failed(y))
    return n.reject("matrices do not fit together");
  double alpha = n.attrFloat("alpha", 1.0);
  n.set(0, alpha == 1.0 ? *y : *y * alpha);
  return success();
}

LogicalResult simplifiedLayerNorm(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr x = n.in(0), scale = n.in(1);
  FailureOr<int64_t> axis = n.axis(n.attr("axis", -1), x.rank());
  if (failed(axis))
    return failure();
  if (scale.shape() != x.shape().drop_front(*axis))
    return n.reject("the scale does not have the shape of what is normalized");
  n.set(0, nn::rmsNorm(x, scale, *axis, n.attrFloat("epsilon", 1e-5))[0]);
  return success();
}

/// Sum of the operand, the skipped one and a bias, normalized; the sum itself is result 3.
template <bool Simplified> LogicalResult skipLayerNorm(NodeView &n) {
  if (failed(n.need(3)))
    return failure();
  Expr x = n.in(0), skip = n.in(1), scale = n.in(2), bias = n.in(Simplified ? 3 : 4);
  FailureOr<Shape> common = broadcastShapes(x.shape(), skip.shape());
  if (failed(common) || ArrayRef<int64_t>(*common) != x.shape() || scale.shape() != x.shape().take_back(1))
    return n.reject("operands do not fit together");
  Expr sum = x + nn::broadcastTo(skip, x.shape());
  if (bias)
    sum = sum + nn::broadcastTo(bias, x.shape());
  int64_t axis = x.rank() - 1;
  double epsilon = n.attrFloat("epsilon", Simplified ? 1e-6 : 1e-12);
  if (Simplified)
    n.set(0, nn::rmsNorm(sum, scale, axis, epsilon)[0]);
  else
    n.set(0, nn::layerNorm(sum, scale, n.has(3) ? n.in(3) : scale.like(0.0), axis, epsilon)[0]);
  n.set(3, sum);
  return success();
}

/// The activation that a fused operator applies to its result; `parameters` as the operator of that name orders them.
FailureOr<Expr> activated(NodeView &n, Expr x, StringRef name, ArrayRef<float> parameters) {
  auto parameter = [&](size_t i, double otherwise) {
    return i < parameters.size() ? double(parameters[i]) : otherwise;
  };
  if (name.empty())
    return x;
  if (name == "Relu")
    return nn::relu(x);
  if (name == "Tanh")
    return nn::tanh(x);
  if (name == "Sigmoid")
    return nn::sigmoid(x);
  if (name == "Elu")
    return nn::elu(x, parameter(0, 1.0));
  if (name == "Softplus")
    return nn::softplus(x);
  if (name == "LeakyRelu")
    return nn::select(nn::greater(x, 0.0), x, x * parameter(0, 0.01));
  if (name == "Clip")
    return nn::min(nn::max(x, parameter(0, -3.4028234663852886e38)), parameter(1, 3.4028234663852886e38));
  if (name == "HardSigmoid")
    return nn::min(nn::max(x * parameter(0, 0.2) + parameter(1, 0.5), 0.0), 1.0);
  (void)n.refuse("activation '" + name + "'");
  return failure();
}

ArrayRef<float> floats(NodeView &n, StringRef name) {
  auto list = dyn_cast_or_null<DenseF32ArrayAttr>(n.op.getNodeAttr(name));
  return list ? list.asArrayRef() : ArrayRef<float>();
}

/// A product or convolution with its activation; operand 3 of a convolution is added in between.
LogicalResult fused(NodeView &n, StringRef base) {
  if (failed(RuleTable::get().find("", base)(n)))
    return failure();
  Expr y = n.wrap(n.results[0].tensor);
  if (base == "Conv" && n.has(3)) {
    if (n.in(3).type() != y.type())
      return n.reject("what is added does not have the result's shape");
    y = y + n.in(3);
  }
  SmallVector<float> parameters(floats(n, "activation_params"));
  for (StringRef name : {"activation_alpha", "activation_beta", "activation_gamma"})
    if (n.hasAttr(name))
      parameters.push_back(static_cast<float>(n.attrFloat(name, 0)));
  FailureOr<Expr> result = activated(n, y, n.attrString("activation", ""), parameters);
  if (failed(result))
    return failure();
  n.set(0, *result);
  return success();
}

/// A fused product whose attributes name the activation with a prefix.
LogicalResult fusedMatMulActivation(NodeView &n) {
  if (failed(fusedMatMul(n)))
    return failure();
  SmallVector<float> parameters;
  for (StringRef name : {"activation_alpha", "activation_beta", "activation_gamma"})
    if (n.hasAttr(name))
      parameters.push_back(static_cast<float>(n.attrFloat(name, 0)));
  FailureOr<Expr> y = activated(n, n.wrap(n.results[0].tensor), n.attrString("activation", ""), parameters);
  if (failed(y))
    return failure();
  n.set(0, *y);
  return success();
}

/// An operator that onnxruntime had before the standard.
template <const char *Name> LogicalResult asStandard(NodeView &n) { return RuleTable::get().find("", Name)(n); }
constexpr char triangle[] = "Trilu";

LogicalResult fusedGemm(NodeView &n) { return fused(n, "Gemm"); }
LogicalResult fusedConv(NodeView &n) { return fused(n, "Conv"); }

} // namespace

void lowtide::addContribRules(RuleTable &t) {
  t.add("com.microsoft.Gelu", biasedActivation<nn::gelu>);
  t.add("com.microsoft.BiasGelu", biasedActivation<nn::gelu>);
  t.add("com.microsoft.FastGelu", biasedActivation<nn::geluTanh>);
  t.add("com.microsoft.QuickGelu", quickGelu);
  t.add("com.microsoft.FusedMatMul", fusedMatMul);
  t.add("com.microsoft.TransposeMatMul", fusedMatMul);
  t.add("com.microsoft.FusedMatMulActivation", fusedMatMulActivation);
  t.add("com.microsoft.Trilu", asStandard<triangle>);
  t.add("com.microsoft.FusedGemm", fusedGemm);
  t.add("com.microsoft.FusedConv", fusedConv);
  t.add("com.microsoft.SimplifiedLayerNormalization", simplifiedLayerNorm);
  t.add("SimplifiedLayerNormalization", simplifiedLayerNorm);
  t.add("com.microsoft.SkipLayerNormalization", skipLayerNorm<false>);
  t.add("com.microsoft.SkipSimplifiedLayerNormalization", skipLayerNorm<true>);
  for (StringRef name : {"Conv", "MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool", "Upsample",
                         "ReorderInput", "ReorderOutput"})
    t.addRefusal(("com.microsoft.nchwc." + name).str(),
                 "the order of its elements is that of the processor on which onnxruntime saved the file; save it with "
                 "graph_optimization_level ORT_ENABLE_EXTENDED");
  for (StringRef name : {"GroupQueryAttention", "PagedAttention", "SparseAttention", "DecoderMaskedSelfAttention",
                         "DecoderMaskedMultiHeadAttention", "DecoderAttention", "BeamSearch", "GreedySearch",
                         "Sampling", "WhisperBeamSearch"})
    t.addRefusal(("com.microsoft." + name).str(),
                 "it generates from past keys and values; export the model for training, without a cache");
}
