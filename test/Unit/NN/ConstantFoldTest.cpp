//===- ConstantFoldTest.cpp - values of ops on constants --------*- C++ -*-===//
//
// The folder is the element descriptions themselves, so these are tests of what the ops mean.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/ConstantFold.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "mlir/IR/Matchers.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

namespace {

class ConstantFold : public testing::Test {
protected:
  ConstantFold() : builder(&context) {
    context.loadDialect<NNDialect>();
    builder.setInsertionPointToEnd(&block);
  }

  Expr integers(ArrayRef<int64_t> shape, ArrayRef<int64_t> values) {
    return constant(builder, builder.getUnknownLoc(),
                    DenseElementsAttr::get(RankedTensorType::get(shape, builder.getI64Type()), values));
  }
  Expr reals(ArrayRef<int64_t> shape, ArrayRef<double> values) {
    return constant(builder, builder.getUnknownLoc(),
                    DenseElementsAttr::get(RankedTensorType::get(shape, builder.getF64Type()), values));
  }
  /// Elements after folding every op in the block; empty when `value` stays an op.
  std::vector<double> fold(Expr value) {
    Operation *last = value.get().getDefiningOp();
    Value result;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      bool isLast = &op == last;
      if (op.getNumResults() != 1)
        continue;
      Value folded = foldOrSelf(&op);
      if (isLast)
        result = folded;
    }
    DenseElementsAttr dense;
    std::vector<double> elements;
    if (!matchPattern(result, m_Constant(&dense)))
      return elements;
    if (isa<FloatType>(dense.getElementType()))
      for (APFloat element : dense.getValues<APFloat>())
        elements.push_back(FloatAttr::get(dense.getElementType(), element).getValueAsDouble());
    else
      for (APInt element : dense.getValues<APInt>())
        elements.push_back(static_cast<double>(element.getSExtValue()));
    return elements;
  }

  MLIRContext context;
  Block block;
  OpBuilder builder;
};

using Elements = std::vector<double>;

TEST_F(ConstantFold, ShapeArithmetic) {
  Expr shape = integers({4}, {8, 3, 16, 16});
  Expr picked = gather(shape, integers({2}, {2, 0}), 0);
  EXPECT_EQ(fold(concat({picked * 2.0, integers({1}, {-1})}, 0)), (Elements{32, 16, -1}));
}

TEST_F(ConstantFold, Slicing) {
  Expr x = integers({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(fold(slice(x, {0, 1}, {2, 2}, {1, 2})), (Elements{1, 3, 5, 7}));
  EXPECT_EQ(fold(pad(integers({2}, {5, 6}), {1}, {2}, {1}, 9)), (Elements{9, 5, 9, 6, 9, 9}));
  EXPECT_EQ(fold(reverse(integers({3}, {1, 2, 3}), 0)), (Elements{3, 2, 1}));
  EXPECT_EQ(fold(transpose(integers({2, 2}, {1, 2, 3, 4}), {1, 0})), (Elements{1, 3, 2, 4}));
  EXPECT_EQ(fold(iota(builder, builder.getUnknownLoc(), RankedTensorType::get({2, 3}, builder.getI64Type()), 1)),
            (Elements{0, 1, 2, 0, 1, 2}));
}

TEST_F(ConstantFold, IndexOutsideReadsNaNAndAddsNothing) {
  Elements read = fold(gather(reals({2}, {1, 2}), integers({3}, {1, 2, -1}), 0));
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0], 2);
  EXPECT_TRUE(std::isnan(read[1]) && std::isnan(read[2]));
  EXPECT_EQ(fold(scatterAdd(integers({4}, {1, 2, -1, 1}), reals({4}, {1, 10, 100, 1000}), {2}, 0)),
            (Elements{0, 1001}));
}

TEST_F(ConstantFold, NDIndices) {
  Expr x = integers({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(fold(gatherND(x, integers({2, 2}, {0, 1, 1, 0}))), (Elements{2, 3, 4, 5}));
  EXPECT_EQ(fold(gatherND(x, integers({2, 1}, {1, 0}), 1)), (Elements{2, 3, 4, 5}));
  EXPECT_EQ(fold(scatterNDAdd(integers({3, 2}, {0, 1, 1, 0, 0, 1}), integers({3}, {1, 2, 3}), {2, 2})),
            (Elements{0, 4, 2, 0}));
}

TEST_F(ConstantFold, Extrema) {
  Expr x = reals({5}, {1, 3, 2, 3, 0});
  EXPECT_EQ(fold(argmax(x, 0, builder.getI64Type())), Elements{1});
  EXPECT_EQ(fold(argmax(x, 0, builder.getI64Type(), true)), Elements{3});
  EXPECT_EQ(fold(argmin(x, 0, builder.getI64Type())), Elements{4});
  EXPECT_EQ(fold(cumsum(x, 0)), (Elements{1, 4, 6, 9, 9}));
  EXPECT_EQ(fold(cumsum(x, 0, true, true)), (Elements{8, 5, 3, 0, 0}));
  Expr image = reals({1, 1, 2, 2}, {1, 4, 4, 2});
  EXPECT_EQ(fold(maxPool(image, {2, 2}, Window::unit(2))), Elements{4});
}

TEST_F(ConstantFold, RemaindersAndBits) {
  Expr a = integers({4}, {7, -7, 7, -7}), b = integers({4}, {3, 3, -3, -3});
  EXPECT_EQ(fold(rem(a, b)), (Elements{1, -1, 1, -1}));
  EXPECT_EQ(fold(mod(a, b)), (Elements{1, 2, -2, -1}));
  EXPECT_EQ(fold(shiftLeft(integers({3}, {1, 3, 1}), integers({3}, {4, 1, 64}))), (Elements{16, 6, 0}));
  EXPECT_TRUE(fold(a / integers({4}, {1, 0, 1, 1})).empty());
}

TEST_F(ConstantFold, Windows) {
  Expr x = reals({1, 1, 4}, {1, 2, 3, 4}), w = reals({1, 1, 2}, {1, 10});
  Window window{{2}, {1}, {1}, {1}};
  EXPECT_EQ(fold(conv(x, w, window)), (Elements{10, 32, 4}));
  EXPECT_EQ(fold(convInputGrad(reals({1, 1, 3}, {1, 2, 3}), w, {1, 1, 4}, window)), (Elements{10, 2, 20, 3}));
  EXPECT_EQ(fold(avgPool(x, {2}, window)), (Elements{1, 2.5, 4}));
  EXPECT_EQ(fold(avgPool(x, {2}, window, true)), (Elements{0.5, 2.5, 2}));
}

// Known answers of Random123's kat_vectors for philox4x32-10.
TEST_F(ConstantFold, RandomNumbersArePhilox) {
  auto type = RankedTensorType::get({1}, builder.getF64Type());
  auto draw = [&](int64_t fill) {
    Expr word = integers({}, fill);
    return fold(randomUniform(type, word, word, word, fill, 0));
  };
  EXPECT_EQ(draw(0), Elements{0x6627e8 / 16777216.0});
  EXPECT_EQ(draw(-1), Elements{0x408f27 / 16777216.0});
}

TEST_F(ConstantFold, BatchRowsDrawTheirOwnNumbers) {
  Expr seed = integers({}, 5), step = integers({}, 7);
  auto draw = [&](int64_t rows, int64_t row) {
    return fold(
        randomUniform(RankedTensorType::get({rows, 3}, builder.getF64Type()), seed, step, integers({}, row), 2, 0));
  };
  Elements whole = draw(4, 0), half = draw(2, 2);
  EXPECT_EQ(Elements(whole.begin() + 6, whole.end()), half);
}

TEST_F(ConstantFold, LargeResultsStayOps) {
  Expr x =
      iota(builder, builder.getUnknownLoc(), RankedTensorType::get(foldLimitElements + 1, builder.getI64Type()), 0);
  EXPECT_TRUE(fold(x).empty());
  EXPECT_EQ(fold(broadcast(integers({}, 3), foldLimitElements + 1, {})).size(), size_t(foldLimitElements + 1));
}

// An element that is the same at every index makes a splat, whatever the size.
TEST_F(ConstantFold, SplatsStaySplats) {
  Expr x = splat(builder, builder.getUnknownLoc(), RankedTensorType::get({700, 300}, builder.getF32Type()), 2.0);
  auto isSplat = [&](Expr value, double number) {
    FailureOr<SmallVector<Attribute>> known = foldConstant(value.get().getDefiningOp());
    if (failed(known))
      return false;
    auto dense = cast<DenseElementsAttr>(known->front());
    return dense.isSplat() && dense.getSplatValue<APFloat>().convertToDouble() == number;
  };
  EXPECT_TRUE(isSplat(transpose(x, {1, 0}), 2));
  EXPECT_TRUE(isSplat(slice(x, {0, 10}, {700, 200}, {1, 1}), 2));
  EXPECT_TRUE(isSplat(concat({x, x}, 1), 2));
  EXPECT_TRUE(isSplat(pad(x, {1, 1}, {0, 0}, {0, 0}, 2), 2));
  EXPECT_TRUE(isSplat(sum(x, 1), 600));
  EXPECT_FALSE(isSplat(pad(x, {1, 1}, {0, 0}, {0, 0}, 3), 2)) << "two numbers in a result that is too large";
}

TEST_F(ConstantFold, NarrowFloatsRoundOnce) {
  auto halves = [&](ArrayRef<float> values) {
    Expr wide = constant(builder, builder.getUnknownLoc(),
                         DenseElementsAttr::get(RankedTensorType::get(values.size(), builder.getF32Type()), values));
    return cast(wide, builder.getF16Type());
  };
  EXPECT_EQ(fold(halves({0.1f}) + halves({2048.0f})), Elements{2048});
  EXPECT_EQ(fold(exp(halves({0.0f, 1.0f}))), (Elements{1, 2.71875}));
  EXPECT_EQ(fold(reals({2}, {1, 3}) / reals({2}, {3, 7})), (Elements{1.0 / 3.0, 3.0 / 7.0}));
}

// Reading, arithmetic and a loop for each of many elements: seconds, if code were built for each.
TEST_F(ConstantFold, ManyElementsAreCheap) {
  auto type = RankedTensorType::get({256, 256}, builder.getI64Type());
  Expr row = iota(builder, builder.getUnknownLoc(), type, 0), column = iota(builder, builder.getUnknownLoc(), type, 1);
  Elements seen = fold(sum(cast(lessEqual(column, row), builder.getI64Type()), 1));
  ASSERT_EQ(seen.size(), 256u);
  EXPECT_EQ(seen.front(), 1);
  EXPECT_EQ(seen.back(), 256);
}

} // namespace
