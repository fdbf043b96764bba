//===- StateRules.cpp - sequences that carry a state ----------------------===//
//
// Rules for LinearAttention, whose state is a matrix for each head, written out step by step, and CausalConvWithState,
// whose state is the last elements of the sequence.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Indices.h"
#include "lowtide/Legalize/Rules.h"
#include "lowtide/Legalize/Window.h"

#include <cmath>

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

LogicalResult linearAttention(NodeView &n) {
  if (failed(n.need(3)))
    return failure();
  Expr query = n.in(0), key = n.in(1), value = n.in(2);
  int64_t heads = n.attr("q_num_heads", 0), states = n.attr("kv_num_heads", 0);
  std::string rule = n.attrString("update_rule", "gated_delta");
  bool decays = rule == "gated" || rule == "gated_delta", corrects = rule == "delta" || rule == "gated_delta";
  if (!decays && !corrects && rule != "linear")
    return n.reject("update rule '" + rule + "'; there are linear, gated, delta and gated_delta");
  if (decays != n.has(4) || corrects != n.has(5))
    return n.reject("update rule '" + rule + "' " + (decays ? "takes a decay" : "takes no decay") +
                    (corrects ? " and a beta" : " and no beta"));
  if (query.rank() != 3 || key.rank() != 3 || value.rank() != 3 || heads < 1 || states < 1 || heads % states ||
      query.dim(2) % heads || key.dim(2) % states || value.dim(2) % states ||
      query.dim(2) / heads != key.dim(2) / states || key.shape().drop_back() != query.shape().drop_back() ||
      value.shape().drop_back() != query.shape().drop_back())
    return n.reject("query, key and value do not fit " + Twine(heads) + " and " + Twine(states) + " heads");
  int64_t samples = query.dim(0), time = query.dim(1), keys = query.dim(2) / heads, values = value.dim(2) / states;
  Type given = query.elementType(), type = n.builder.getF32Type();
  if (given.isF64())
    type = given;
  // Step `t` of [B, T, H · d], as [B, H, d].
  auto at = [&](Expr x, int64_t t, int64_t count) {
    return nn::cast(nn::reshape(sliceDim(x, 1, t, 1), {samples, count, x.dim(2) / count}), type);
  };
  Shape matrix{samples, states, keys, values};
  auto widths = [&](unsigned i, ArrayRef<int64_t> allowed) {
    return n.in(i).rank() == 3 && n.in(i).shape().drop_back() == query.shape().drop_back() &&
           llvm::is_contained(allowed, n.in(i).dim(2));
  };
  if ((decays && !widths(4, {states, states * keys})) || (corrects && !widths(5, {states, 1})) ||
      (n.has(3) && n.in(3).shape() != ArrayRef<int64_t>(matrix)))
    return n.reject("decay, beta or the past state do not fit the heads");
  double scale = n.attrFloat("scale", 0.0);
  if (scale == 0.0)
    scale = 1.0 / std::sqrt(double(keys));
  Expr state = n.has(3) ? nn::cast(n.in(3), type) : n.splat(type, matrix, 0.0);
  SmallVector<Expr> outputs;
  for (int64_t t = 0; t < time; ++t) {
    Expr k = at(key, t, states), v = at(value, t, states);
    if (decays) { // one number for each head, or for each row of its state
      Expr g = nn::exp(at(n.in(4), t, states));
      state = state * (g.dim(2) == keys ? nn::broadcast(g, matrix, {0, 1, 2})
                                        : nn::broadcast(nn::reshape(g, {samples, states}), matrix, {0, 1}));
    }
    if (corrects) {
      Expr found = nn::dot(nn::reshape(k, {samples, states, 1, keys}), state);
      Expr beta = at(n.in(5), t, 1); // [B, 1, H or 1]
      beta = beta.dim(2) == states ? nn::broadcast(nn::reshape(beta, {samples, states}), v.shape(), {0, 1})
                                   : nn::broadcast(nn::reshape(beta, {samples}), v.shape(), {0});
      v = beta * (v - nn::reshape(found, v.shape()));
    }
    state = state + nn::broadcast(k, matrix, {0, 1, 2}) * nn::broadcast(v, matrix, {0, 1, 3});
    // The heads that share a state are rows of one product.
    Expr q = nn::reshape(at(query, t, heads), {samples, states, heads / states, keys});
    outputs.push_back(nn::reshape(nn::dot(q, state) * scale, {samples, 1, heads * values}));
  }
  if (outputs.empty())
    return n.reject("the sequence is empty");
  n.set(0, nn::cast(outputs.size() == 1 ? outputs.front() : nn::concat(outputs, 1), given));
  n.set(1, nn::cast(state, n.has(3) ? n.in(3).elementType() : given));
  return success();
}

LogicalResult causalConv(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr x = n.in(0), filter = n.in(1);
  if (x.rank() != 3 || filter.rank() != 3 || filter.dim(0) != x.dim(1) || filter.dim(1) != 1 || filter.dim(2) < 1)
    return n.reject("an operand [B, C, T] and weights [C, 1, k] are expected");
  int64_t before = filter.dim(2) - 1;
  Shape past{x.dim(0), x.dim(1), before};
  if (n.has(3) && n.in(3).shape() != ArrayRef<int64_t>(past))
    return n.reject("the past state does not fit the operand");
  Expr all = x;
  if (before)
    all = n.has(3) ? nn::concat({nn::cast(n.in(3), x.elementType()), x}, 2) : nn::pad(x, {0, 0, before}, {0, 0, 0});
  Expr y = nn::conv(all, filter, nn::Window::unit(1), x.dim(1));
  if (n.has(2))
    y = addChannelBias(y, n.in(2));
  std::string activation = n.attrString("activation", "none");
  if (activation == "silu" || activation == "swish")
    y = nn::silu(y);
  else if (activation != "none")
    return n.reject("activation '" + activation + "'; there are none, silu and swish");
  n.set(0, y);
  n.set(1, before ? sliceDim(all, 2, x.dim(2), before) : n.splat(x.elementType(), past, 0.0));
  return success();
}

} // namespace

void lowtide::addStateRules(RuleTable &t) {
  t.add("LinearAttention", linearAttention);
  t.add("CausalConvWithState", causalConv);
}
