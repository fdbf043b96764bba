//===- GradientTest.cpp - derivatives against central differences -*- C++ -*-===//
//
// Every differentiable op at three shapes or more, broadcasts and size-1 dimensions among them.
//
//===----------------------------------------------------------------------===//

#include "CentralDifferences.h"
#include "lowtide/Dialect/NN/LibraryForms.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Scan.h"
#include "lowtide/Dialect/NN/Scatter.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace lowtide;
using namespace lowtide::test;
using namespace lowtide::nn;
using mlir::OpBuilder;
using mlir::SmallVector;
using mlir::Type;
using mlir::Value;
using mlir::ValueRange;

namespace {

/// An op under test: builds it from its inputs at the given shapes.
struct Case {
  const char *name;
  std::vector<std::vector<Shape>> shapes; // per instance, per input
  std::function<Expr(Workbench &, llvm::ArrayRef<Expr>)> build;
  Range range = {};
};

class Gradient : public testing::TestWithParam<Case> {};

TEST_P(Gradient, AgreesWithCentralDifferences) {
  const Case &c = GetParam();
  ASSERT_GE(c.shapes.size(), 3u);
  unsigned seed = 1;
  for (const std::vector<Shape> &shapes : c.shapes) {
    Workbench bench(seed++);
    std::vector<Expr> inputs;
    for (const Shape &shape : shapes)
      inputs.push_back(bench.input(shape, c.range));
    Expr y = c.build(bench, inputs);
    std::string error;
    double worst = bench.worstError(y, inputs, error);
    EXPECT_EQ(error, "") << c.name << ", instance " << seed - 1;
    EXPECT_LE(worst, 2e-7) << c.name << ", instance " << seed - 1;
  }
}

const std::vector<std::vector<Shape>> one = {{{2, 3}}, {{1, 4}}, {{}}};
const std::vector<std::vector<Shape>> two = {{{2, 3}, {2, 3}}, {{1, 4}, {1, 4}}, {{}, {}}};

Case unary(const char *name, Expr (*function)(Expr), Range range = {}) {
  return {name, one, [=](Workbench &, auto in) { return function(in[0]); }, range};
}
Case binary(const char *name, Expr (*function)(Expr, Expr), Range range = {}) {
  return {name, two, [=](Workbench &, auto in) { return function(in[0], in[1]); }, range};
}
Case power(const char *name, double exponent) {
  return {name, one, [=](Workbench &, auto in) { return nn::pow(in[0], in[0].like(exponent)); }, {0.3, 2.0}};
}

const Case elementwise[] = {
    unary("neg", [](Expr x) { return -x; }),
    unary("abs", abs),
    unary("sign", sign),
    unary("floor", floor),
    unary("ceil", ceil),
    unary("round", round),
    unary("exp", exp),
    unary("expm1", expm1),
    unary("log", log, {0.2, 3}),
    unary("log1p", log1p, {-0.5, 2}),
    unary("sqrt", sqrt, {0.2, 3}),
    unary("rsqrt", rsqrt, {0.3, 3}),
    unary("reciprocal", reciprocal, {0.4, 3}),
    unary("erf", erf),
    unary("sin", sin),
    unary("cos", cos),
    unary("tan", tan, {-1, 1}),
    unary("asin", asin, {-0.8, 0.8}),
    unary("acos", acos, {-0.8, 0.8}),
    unary("atan", atan),
    unary("sinh", sinh),
    unary("cosh", cosh),
    unary("tanh", tanh),
    unary("asinh", asinh),
    unary("acosh", acosh, {1.3, 3}),
    unary("atanh", atanh, {-0.8, 0.8}),
    unary("relu", relu),
    unary("sigmoid", sigmoid),
    unary("gelu", gelu),
    unary("gelu_tanh", geluTanh),
    unary("silu", silu),
    unary("softplus", softplus, {-4, 4}),
    unary("elu", [](Expr x) { return elu(x, 0.7); }),
    binary("add", [](Expr a, Expr b) { return a + b; }),
    binary("sub", [](Expr a, Expr b) { return a - b; }),
    binary("mul", [](Expr a, Expr b) { return a * b; }),
    binary("div", [](Expr a, Expr b) { return a / b; }, {0.4, 2}),
    binary("max", [](Expr a, Expr b) { return max(a, b); }),
    binary("min", [](Expr a, Expr b) { return min(a, b); }),
    binary("pow", [](Expr a, Expr b) { return pow(a, b); }, {0.3, 2}),
    power("pow_2", 2),
    power("pow_half", 0.5),
    power("pow_0", 0),
    power("pow_1", 1),
    power("pow_minus_1", -1),
    power("pow_3_7", 3.7),
    binary("rem", rem, {1.05, 1.9}),
    binary("mod", mod, {1.05, 1.9}),
    {"rem_several", one, [](Workbench &b, auto in) { return rem(b.input(in[0].shape(), {2, 5}), in[0]); }, {0.9, 1.3}},
    {"mod_negative",
     one,
     [](Workbench &b, auto in) { return mod(b.input(in[0].shape(), {-5, -2}), in[0]); },
     {0.9, 1.3}},
    {"select", two, [](Workbench &, auto in) { return select(greater(in[0], in[1]), in[0], in[1]); }},
    {"cast", one,
     [](Workbench &b, auto in) {
       return in[0].with(CastOp::create(b.builder, in[0].getLoc(), in[0].type(), in[0].get()).getY());
     }},
};

/// Four updates that meet rows of x.
Case meeting(const char *name, ScatterKind kind, std::vector<int64_t> places) {
  return {name, {{{4, 2}, {2, 2, 2}}, {{4, 1}, {2, 2, 1}}, {{5, 3}, {2, 2, 3}}}, [=](Workbench &b, auto in) {
            return scatter(kind, in[0], b.indices({2, 2}, places), in[1], 0);
          }};
}

const Case movement[] = {
    {"broadcast",
     {{{3}}, {{1, 3}}, {{}}, {{2, 1}}},
     [](Workbench &, auto in) {
       return in[0].rank() == 2   ? broadcast(in[0], {2, 4, 3}, in[0].dim(0) == 1 ? Shape{1, 2} : Shape{0, 1})
              : in[0].rank() == 1 ? broadcast(in[0], {2, 3}, {1})
                                  : broadcast(in[0], {2, 2}, {});
     }},
    {"reshape", {{{2, 3}}, {{1, 6}}, {{6, 1}}}, [](Workbench &, auto in) { return reshape(in[0], {3, 2}); }},
    {"transpose",
     {{{2, 3, 2}}, {{1, 3, 2}}, {{2, 1, 1}}},
     [](Workbench &, auto in) { return transpose(in[0], {2, 0, 1}); }},
    {"slice",
     {{{5, 3}}, {{6, 3}}, {{7, 4}}},
     [](Workbench &, auto in) { return slice(in[0], {1, 0}, {2, 3}, {2, 1}); }},
    {"pad",
     {{{2, 3}}, {{1, 3}}, {{1, 1}}},
     [](Workbench &, auto in) { return pad(in[0], {1, 0}, {0, 2}, {2, 1}, 3.0); }},
    {"reverse", {{{2, 3}}, {{1, 3}}, {{4, 1}}}, [](Workbench &, auto in) { return reverse(in[0], {0, 1}); }},
    {"concat",
     {{{2, 3}, {2, 1}}, {{1, 3}, {1, 3}}, {{2, 1}, {2, 4}}},
     [](Workbench &, auto in) { return concat(in, 1); }},
    {"gather",
     {{{4, 2}}, {{4, 1}}, {{5, 3}}},
     [](Workbench &b, auto in) { return gather(in[0], b.indices({2, 2}, {3, 0, 3, 1}), 0); }},
    {"gather_last",
     {{{2, 4}}, {{1, 4}}, {{3, 2, 4}}},
     [](Workbench &b, auto in) { return gather(in[0], b.indices({3}, {3, 0, 3}), in[0].rank() - 1); }},
    {"gather_elements",
     {{{4, 2}}, {{4, 3}}, {{5, 2}}},
     [](Workbench &b, auto in) { return gatherElements(in[0], b.indices({3, 2}, {3, 0, 3, 1, 2, 2}), 0); }},
    {"scatter_add",
     {{{2, 2, 3}}, {{2, 2, 1}}, {{2, 2}}},
     [](Workbench &b, auto in) {
       Shape shape{4};
       shape.append(in[0].shape().begin() + 2, in[0].shape().end());
       return scatterAdd(b.indices({2, 2}, {3, 0, 3, 1}), in[0], shape, 0);
     }},
    {"scatter_elements_add",
     {{{3, 2}}, {{3, 2}}, {{3, 2}}},
     [](Workbench &b, auto in) { return scatterElementsAdd(b.indices({3, 2}, {3, 0, 3, 1, 2, 2}), in[0], {4, 2}, 0); }},
    meeting("scatter_max", ScatterKind::max, {3, 0, 3, 1}),
    meeting("scatter_min", ScatterKind::min, {3, 0, 3, 1}),
    meeting("scatter_mul", ScatterKind::mul, {3, 0, 3, 1}),
    meeting("scatter_set", ScatterKind::set, {3, 0, 2, 1}),
    {"scatter_elements_max",
     {{{4, 2}, {3, 2}}, {{4, 2}, {3, 2}}, {{4, 2}, {3, 2}}},
     [](Workbench &b, auto in) {
       return scatterElements(ScatterKind::max, in[0], b.indices({3, 2}, {3, 0, 3, 1, 2, 2}), in[1], 0);
     }},
    {"scatter_elements_mul",
     {{{4, 2}, {3, 2}}, {{4, 2}, {3, 2}}, {{4, 2}, {3, 2}}},
     [](Workbench &b, auto in) {
       return scatterElements(ScatterKind::mul, in[0], b.indices({3, 2}, {3, 0, 3, 1, 2, 2}), in[1], 0);
     }},
};

const Case reductions[] = {
    {"reduce_sum", {{{2, 3}}, {{2, 1}}, {{1, 3}}}, [](Workbench &, auto in) { return sum(in[0], 1); }},
    {"reduce_max", {{{2, 3}}, {{2, 1}}, {{1, 3}}}, [](Workbench &, auto in) { return maximum(in[0], 1); }},
    {"reduce_min", {{{2, 3}}, {{2, 1}}, {{1, 3}}}, [](Workbench &, auto in) { return minimum(in[0], {0, 1}); }},
    {"reduce_prod", {{{2, 3}}, {{2, 1}}, {{1, 3}}}, [](Workbench &, auto in) { return product(in[0], 1); }},
    {"cumsum", {{{2, 4}}, {{4, 1}}, {{1, 3}}}, [](Workbench &, auto in) { return cumsum(in[0], 1); }},
    {"cumsum_reverse",
     {{{2, 4}}, {{4, 1}}, {{1, 3}}},
     [](Workbench &, auto in) { return cumsum(in[0], 1, true, true); }},
};

std::vector<std::vector<Shape>> dotShapes(bool ta, bool tb) {
  std::vector<std::vector<Shape>> shapes;
  struct {
    Shape batch;
    int64_t m, n, k;
  } sizes[] = {{{}, 2, 3, 4}, {{2}, 1, 2, 3}, {{1, 2}, 2, 1, 1}};
  for (auto [batch, m, n, k] : sizes) {
    Shape a(batch), b(batch);
    a.append({ta ? k : m, ta ? m : k});
    b.append({tb ? n : k, tb ? k : n});
    shapes.push_back({a, b});
  }
  return shapes;
}
Case dotCase(const char *name, bool ta, bool tb) {
  return {name, dotShapes(ta, tb), [=](Workbench &, auto in) { return dot(in[0], in[1], ta, tb); }};
}

const Window plain = {{1, 1}, {0, 0}, {0, 0}, {1, 1}}, padded = {{2, 1}, {1, 0}, {1, 1}, {1, 2}};
Case convolution(const char *name, const Window &window, int64_t groups) {
  return {name,
          {{{1, 2 * groups, 4, 4}, {groups, 2, 2, 2}},
           {{2, groups, 3, 3}, {2 * groups, 1, 1, 2}},
           {{1, groups, 3, 4}, {groups, 1, 3, 1}}},
          [=](Workbench &, auto in) { return conv(in[0], in[1], window, groups); }};
}

const Case contractions[] = {
    dotCase("dot", false, false),
    dotCase("dot_ta", true, false),
    dotCase("dot_tb", false, true),
    dotCase("dot_ta_tb", true, true),
    convolution("conv", plain, 1),
    convolution("conv_padded", padded, 1),
    convolution("conv_groups", padded, 2),
    {"conv_1d",
     {{{1, 2, 5}, {2, 2, 3}}, {{2, 1, 4}, {1, 1, 1}}, {{1, 1, 3}, {2, 1, 3}}},
     [](Workbench &, auto in) { return conv(in[0], in[1], Window::unit(1)); }},
    {"conv_3d",
     {{{1, 1, 2, 3, 2}, {1, 1, 2, 2, 1}}, {{1, 1, 2, 2, 2}, {1, 1, 1, 1, 2}}, {{1, 1, 1, 1, 2}, {1, 1, 1, 1, 1}}},
     [](Workbench &, auto in) { return conv(in[0], in[1], Window::unit(3)); }},
    {"conv_input_grad",
     {{{1, 2, 2, 2}, {2, 1, 2, 2}}, {{1, 1, 2, 2}, {1, 2, 2, 2}}, {{2, 1, 2, 2}, {1, 1, 2, 2}}},
     [](Workbench &, auto in) {
       return convInputGrad(in[0], in[1], {in[0].dim(0), in[1].dim(1), 4, 3}, {{2, 1}, {0, 0}, {0, 0}, {1, 1}});
     }},
    {"conv_filter_grad",
     {{{1, 2, 4, 3}, {1, 2, 2, 2}}, {{2, 1, 4, 3}, {2, 1, 2, 2}}, {{1, 1, 4, 3}, {1, 1, 2, 2}}},
     [](Workbench &, auto in) {
       return convFilterGrad(in[0], in[1], {in[1].dim(1), in[0].dim(1), 2, 2}, {{2, 1}, {0, 0}, {0, 0}, {1, 1}});
     }},
};

const std::vector<std::vector<Shape>> images = {{{1, 2, 4, 4}}, {{2, 1, 5, 4}}, {{1, 1, 3, 3}}};
const Case poolings[] = {
    {"max_pool", images, [](Workbench &, auto in) { return maxPool(in[0], {2, 2}, {{2, 2}, {0, 0}, {0, 0}, {1, 1}}); }},
    {"max_pool_overlapping", images,
     [](Workbench &, auto in) { return maxPool(in[0], {3, 2}, {{1, 2}, {1, 1}, {1, 0}, {1, 1}}); }},
    {"avg_pool", images, [](Workbench &, auto in) { return avgPool(in[0], {2, 2}, {{2, 1}, {0, 0}, {0, 0}, {1, 1}}); }},
    {"avg_pool_padded", images,
     [](Workbench &, auto in) { return avgPool(in[0], {3, 2}, {{2, 1}, {1, 1}, {1, 0}, {1, 2}}); }},
    {"avg_pool_count_pad", images,
     [](Workbench &, auto in) { return avgPool(in[0], {3, 2}, {{2, 1}, {1, 1}, {1, 0}, {1, 1}}, true); }},
    {"avg_pool_grad",
     {{{1, 2, 2, 3}}, {{2, 1, 2, 3}}, {{1, 1, 2, 3}}},
     [](Workbench &b, auto in) {
       auto type = mlir::RankedTensorType::get({in[0].dim(0), in[0].dim(1), 4, 4}, in[0].elementType());
       auto attr = [&](llvm::ArrayRef<int64_t> values) { return b.builder.getDenseI64ArrayAttr(values); };
       return in[0].with(AvgPoolGradOp::create(b.builder, in[0].getLoc(), type, in[0].get(), attr({2, 2}), attr({2, 1}),
                                               attr({0, 0}), attr({0, 0}), attr({1, 1}), mlir::UnitAttr())
                             .getDx());
     }},
};

const Case composites[] = {
    {"softmax", {{{2, 3}}, {{1, 4}}, {{2, 1}}}, [](Workbench &, auto in) { return softmax(in[0], 1); }},
    {"softmax_first", {{{2, 3}}, {{1, 4}}, {{3, 1}}}, [](Workbench &, auto in) { return softmax(in[0], 0); }},
    {"log_softmax", {{{2, 3}}, {{1, 4}}, {{2, 1}}}, [](Workbench &, auto in) { return logSoftmax(in[0], 1); }},
    {"layer_norm",
     {{{2, 3}, {3}, {3}}, {{1, 4}, {4}, {4}}, {{2, 1, 3}, {3}, {3}}},
     [](Workbench &, auto in) { return layerNorm(in[0], in[1], in[2], in[0].rank() - 1, 1e-2)[0]; }},
    {"layer_norm_two_dims",
     {{{2, 2, 3}, {2, 3}, {2, 3}}, {{1, 1, 4}, {1, 4}, {1, 4}}, {{3, 2, 1}, {2, 1}, {2, 1}}},
     [](Workbench &, auto in) { return layerNorm(in[0], in[1], in[2], 1, 1e-2)[0]; }},
    {"rms_norm",
     {{{2, 3}, {3}}, {{1, 4}, {4}}, {{2, 1, 3}, {3}}},
     [](Workbench &, auto in) { return rmsNorm(in[0], in[1], in[0].rank() - 1, 1e-2)[0]; }},
    {"batch_norm",
     {{{3, 2}, {2}, {2}}, {{2, 1, 3}, {1}, {1}}, {{2, 2, 1, 2}, {2}, {2}}},
     [](Workbench &, auto in) { return batchNorm(in[0], in[1], in[2], 1e-2)[0]; }},
    {"softmax_cross_entropy",
     {{{2, 3}}, {{2, 4}}, {{2, 5}}},
     [](Workbench &b, auto in) { return softmaxCrossEntropy(in[0], b.indices({2}, {2, 0}))[0]; }},
    {"softmax_cross_entropy_weighted",
     {{{2, 3, 2}}, {{2, 4, 2}}, {{2, 3, 2}}},
     [](Workbench &b, auto in) {
       return softmaxCrossEntropy(in[0], b.indices({2, 2}, {2, -100, 1, 0}), b.input({in[0].dim(1)}), -100)[0];
     }},
    {"linear_cross_entropy",
     {{{2, 3}, {4, 3}, {4}}, {{2, 1}, {2, 1}, {2}}, {{2, 2}, {3, 2}, {3}}},
     [](Workbench &b, auto in) { return linearCrossEntropy(in[0], in[1], in[2], b.indices({2}, {1, 0}))[0]; }},
    {"linear_cross_entropy_class_last",
     {{{3, 2}, {2, 3}}, {{3, 1}, {1, 2}}, {{3, 3}, {3, 4}}},
     [](Workbench &b, auto in) {
       return linearCrossEntropy(in[0], in[1], {}, b.indices({3}, {1, -100, 0}), true, -100)[0];
     }},
    {"attention",
     {{{1, 2, 3, 2}, {1, 2, 3, 2}, {1, 2, 3, 2}},
      {{1, 2, 2, 2}, {1, 1, 3, 2}, {1, 1, 3, 1}},
      {{2, 1, 1, 2}, {2, 1, 2, 2}, {2, 1, 2, 2}}},
     [](Workbench &, auto in) { return attention(in[0], in[1], in[2], {}, 0.6, false)[0]; }},
    {"attention_causal",
     {{{1, 2, 3, 2}, {1, 2, 3, 2}, {1, 2, 3, 2}},
      {{1, 2, 2, 2}, {1, 1, 3, 2}, {1, 1, 3, 1}},
      {{2, 1, 1, 2}, {2, 1, 2, 2}, {2, 1, 2, 2}}},
     [](Workbench &, auto in) { return attention(in[0], in[1], in[2], {}, 0.6, true)[0]; }},
    {"attention_mask",
     {{{1, 2, 3, 2}, {1, 2, 3, 2}, {1, 2, 3, 2}, {1, 1, 3, 3}},
      {{1, 2, 2, 2}, {1, 1, 3, 2}, {1, 1, 3, 1}, {1, 2, 1, 3}},
      {{2, 1, 1, 2}, {2, 1, 2, 2}, {2, 1, 2, 2}, {2, 1, 1, 2}}},
     [](Workbench &, auto in) { return attention(in[0], in[1], in[2], in[3], 0.6, false)[0]; }},
};

/// The derivative of attention as one op, by what it is written out as: shared heads, more columns than rows, a mask.
TEST(GradientAsOne, OfAttentionAgreesWithCentralDifferences) {
  const std::vector<std::vector<Shape>> instances = {{{1, 2, 3, 2}, {1, 2, 3, 2}, {1, 2, 3, 2}},
                                                     {{1, 4, 2, 2}, {1, 2, 3, 2}, {1, 2, 3, 1}},
                                                     {{2, 1, 1, 2}, {2, 1, 2, 2}, {2, 1, 2, 2}}};
  unsigned seed = 1;
  for (const std::vector<Shape> &shapes : instances)
    for (bool causal : {false, true})
      for (bool masked : {false, true}) {
        Workbench bench(seed++);
        std::vector<Expr> inputs;
        for (const Shape &shape : shapes)
          inputs.push_back(bench.input(shape));
        Expr mask = masked ? bench.input({1, 1, shapes[0][2], shapes[1][2]}) : Expr();
        Expr o = attention(inputs[0], inputs[1], inputs[2], mask, 0.6, causal)[0];
        std::string error;
        double worst = bench.worstError(o, inputs, error, differentiateAsOne);
        EXPECT_EQ(error, "");
        EXPECT_LE(worst, 2e-7);
      }
}

/// The mask's own cotangent, and one of lse, are written out.
TEST(GradientAsOne, IsDeclinedWhereTheMaskNeedsOne) {
  Workbench bench;
  Expr q = bench.input({1, 1, 2, 2}), mask = bench.input({1, 1, 2, 2});
  Expr o = attention(q, q, q, mask, 0.6, false)[0];
  std::string error;
  bench.worstError(o, {mask}, error, differentiateAsOne);
  EXPECT_EQ(error, "differentiate failed");
}

/// A recurrent step on [B, I] slices with a state [B, H] and weights [H, I], [H, H], [H]: its state is a row, or the
/// sum of state and row is, or no row is.
Case scan(const char *name, bool reversed, int kind) {
  auto build = [=](Workbench &bench, auto in) {
    Expr x = in[0], h = in[1];
    const Shape state(h.shape()), step(x.shape().drop_front());
    Shape row{1};
    row.append(state.begin(), state.end());
    SmallVector<Type> rows;
    if (kind < 2)
      rows.push_back(h.type().clone(row));
    auto loop = ScanOp::create(bench.builder, x.getLoc(), x.dim(0), reversed, ValueRange(x.get()), ValueRange(h.get()),
                               ValueRange{in[2].get(), in[3].get(), in[4].get()}, rows);
    OpBuilder inside = OpBuilder::atBlockEnd(loop.getBlock());
    auto given = [&](unsigned i) { return Expr(inside, x.getLoc(), loop.getBlock()->getArgument(i)); };
    Expr before = given(1), bias = broadcast(given(4), state, {1});
    // A factor that is no sum over the samples is added up from round to round.
    Expr sum = dot(reshape(given(0), step), given(2), false, true) + dot(before, given(3)) + bias;
    Expr next = tanh(sum) + bias * before;
    SmallVector<Value> made;
    if (kind < 2)
      made.push_back(reshape(kind ? next + before : next, row));
    NextOp::create(inside, x.getLoc(), ValueRange(next.get()), made);
    return Expr(bench.builder, x.getLoc(), loop->getResult(0));
  };
  return {name,
          {{{3, 2, 3}, {2, 4}, {4, 3}, {4, 4}, {4}},
           {{2, 1, 1}, {1, 2}, {2, 1}, {2, 2}, {2}},
           {{1, 2, 1}, {2, 1}, {1, 1}, {1, 1}, {1}}},
          build,
          {-0.6, 0.6}};
}

/// A scan over segments of two steps, whose round squares its input and scans its steps; its rows are made of theirs.
Case segments(const char *name, bool reversed) {
  auto build = [=](Workbench &bench, auto in) {
    Expr x = in[0], h = in[1];
    const Shape state(h.shape()), step(x.shape().drop_front());
    auto with = [](int64_t steps, Shape shape) {
      shape.insert(shape.begin(), steps);
      return shape;
    };
    auto outer = ScanOp::create(bench.builder, x.getLoc(), x.dim(0) / 2, reversed, ValueRange(x.get()),
                                ValueRange(h.get()), ValueRange{in[2].get(), in[3].get(), in[4].get()},
                                SmallVector<Type>{h.type().clone(with(2, state))});
    OpBuilder round = OpBuilder::atBlockEnd(outer.getBlock());
    auto seen = [&](unsigned i) { return Expr(round, x.getLoc(), outer.getBlock()->getArgument(i)); };
    Expr squares = seen(0) * seen(0);
    auto inner = ScanOp::create(round, x.getLoc(), 2, reversed, ValueRange(squares.get()), ValueRange(seen(1).get()),
                                ValueRange{seen(2).get(), seen(3).get(), seen(4).get()},
                                SmallVector<Type>{h.type().clone(with(1, state))});
    OpBuilder inside = OpBuilder::atBlockEnd(inner.getBlock());
    auto given = [&](unsigned i) { return Expr(inside, x.getLoc(), inner.getBlock()->getArgument(i)); };
    Expr bias = broadcast(given(4), state, {1});
    Expr next =
        tanh(dot(reshape(given(0), step), given(2), false, true) + dot(given(1), given(3)) + bias) + bias * given(1);
    NextOp::create(inside, x.getLoc(), ValueRange(next.get()), ValueRange(reshape(next, with(1, state)).get()));
    Expr made(round, x.getLoc(), inner->getResult(1));
    NextOp::create(round, x.getLoc(), ValueRange(inner->getResult(0)), ValueRange((made * made).get()));
    return Expr(bench.builder, x.getLoc(), outer->getResult(0));
  };
  return {name,
          {{{4, 2, 3}, {2, 4}, {4, 3}, {4, 4}, {4}},
           {{6, 1, 1}, {1, 2}, {2, 1}, {2, 2}, {2}},
           {{4, 2, 1}, {2, 1}, {1, 1}, {1, 1}, {1}}},
          build,
          {-0.6, 0.6}};
}

const Case scans[] = {
    segments("segments", false),    segments("segments_reversed", true), scan("scan", false, 0),
    scan("scan_reversed", true, 0), scan("scan_other_row", false, 1),    scan("scan_other_row_reversed", true, 1),
    scan("scan_no_row", false, 2),
};

std::string nameOf(const testing::TestParamInfo<Case> &info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Elementwise, Gradient, testing::ValuesIn(elementwise), nameOf);
INSTANTIATE_TEST_SUITE_P(Movement, Gradient, testing::ValuesIn(movement), nameOf);
INSTANTIATE_TEST_SUITE_P(Reductions, Gradient, testing::ValuesIn(reductions), nameOf);
INSTANTIATE_TEST_SUITE_P(Contractions, Gradient, testing::ValuesIn(contractions), nameOf);
INSTANTIATE_TEST_SUITE_P(Pooling, Gradient, testing::ValuesIn(poolings), nameOf);
INSTANTIATE_TEST_SUITE_P(Scans, Gradient, testing::ValuesIn(scans), nameOf);
INSTANTIATE_TEST_SUITE_P(Composites, Gradient, testing::ValuesIn(composites), nameOf);

} // namespace
