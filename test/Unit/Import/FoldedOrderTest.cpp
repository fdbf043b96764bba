//===- FoldedOrderTest.cpp - the order of a folded tensor's dimensions -------------===//
//
// What PyTorch's current exporter writes around operations that index a parameter elsewhere than in front, after its
// optimizer evaluated it.
//
//===----------------------------------------------------------------------===//

#include "TestModel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using testing::ElementsAreArray;
using testing::HasSubstr;

namespace {
/// Elements of a tensor of these dimensions: 0, 1, 2 …
std::string count(int elements) {
  std::string list;
  for (int i = 0; i != elements; ++i)
    list += (i ? ", " : "") + std::to_string(i);
  return "{" + list + "}";
}

struct OrderCase {
  const char *name;
  const char *inputs; ///< of the graph
  const char *tensor; ///< its name in the file, and its type
  const char *type;
  int elements;
  const char *sources; ///< what it was folded from
  const char *node;
  const char *operation, *operands; ///< the program's
  std::vector<int64_t> transposed, shape;
};

const OrderCase orders[] = {
    {"Columns",
     "int64[6,1] i",
     "val_0",
     "float[4,3]",
     12,
     "['w']",
     "y = GatherND(val_0, i)",
     "index.Tensor",
     "%p_w, [None, %i]",
     {1, 0},
     {3, 4}},
    {"ColumnsOfASquare",
     "int64[6,1] i",
     "val_0",
     "float[3,3]",
     9,
     "['w']",
     "y = GatherND(val_0, i)",
     "index.Tensor",
     "%p_w, [None, %i]",
     {1, 0},
     {3, 3}},
    {"TheLastOfThree",
     "int64[6,1] i",
     "val_0",
     "float[4,2,3]",
     24,
     "['w']",
     "y = GatherND(val_0, i)",
     "index.Tensor",
     "%p_w, [None, None, %i]",
     {2, 0, 1},
     {2, 3, 4}},
    {"IndicesApart",
     "int64[6,2] i",
     "val_0",
     "float[2,4,3]",
     24,
     "['w']",
     "y = GatherND(val_0, i)",
     "index.Tensor",
     "%p_w, [%i, None, %j]",
     {0, 2, 1},
     {2, 3, 4}},
    {"Rows",
     "int64[6,1] i",
     "val_0",
     "float[4,3]",
     12,
     "['w']",
     "y = GatherND(val_0, i)",
     "index.Tensor",
     "%p_w, [%i]",
     {},
     {}},
    {"RowsOfATranspose",
     "int64[6,1] i",
     "val_0",
     "float[4,3]",
     12,
     "['w', 't']",
     "y = GatherND(val_0, i)",
     "index.Tensor",
     "%t, [%i]",
     {1, 0},
     {3, 4}},
    {"LookedUpInATranspose",
     "int64[6] i",
     "t",
     "float[4,3]",
     12,
     "['w']",
     "y = Gather(t, i)",
     "embedding.default",
     "%t, %i",
     {1, 0},
     {3, 4}},
    {"WrittenRows",
     "int64[2,1] i, float[2,3] x",
     "val_8",
     "float[4,3]",
     12,
     "['w']",
     "y = ScatterND(val_8, i, x)",
     "index_put.default",
     "%p_w, [%i], %x, True",
     {},
     {}},
    {"WrittenColumns",
     "int64[2,1] i, float[2,3] x",
     "val_8",
     "float[4,3]",
     12,
     "['w']",
     "y = ScatterND(val_8, i, x)",
     "index_put.default",
     "%p_w, [None, %i], %x, True",
     {1, 0},
     {3, 4}},
    {"ValuesOfColumns",
     "int64[4,1] i, float[5,3] x",
     "val_10",
     "float[4,3]",
     12,
     "['w', 'val_9']",
     "y = ScatterND(x, i, val_10)",
     "index_put.default",
     "%x, [None, %i], %p_w",
     {1, 0},
     {3, 4}},
    {"ValuesOfRows",
     "int64[4,1] i, float[5,3] x",
     "val_10",
     "float[4,3]",
     12,
     "['w', 'val_9']",
     "y = ScatterND(x, i, val_10)",
     "index_put.default",
     "%x, [%i], %p_w",
     {},
     {}},
    {"ADiagonal",
     "float[4,4] x",
     "val_13",
     "float[2,4,4]",
     32,
     "['w']",
     "y = Mul(val_13, x)",
     "diagonal.default",
     "%p_w, 0, 0, -1",
     {1, 0, 2},
     {4, 2, 4}},
    {"ASlicedDimension",
     "int64[2,1] i, float[2,3,4] x",
     "val_3",
     "float[4,3,2]",
     24,
     "['w']",
     "y = ScatterND(val_3, i, x)",
     "slice_scatter.default",
     "%p_w, %x, 2, 0, 2",
     {2, 1, 0},
     {2, 3, 4}},
    {"AProductWithATranspose",
     "float[2,5,4] x",
     "transpose",
     "float[2,4,3]",
     24,
     "['w']",
     "y = MatMul(x, transpose)",
     "matmul.default",
     "%x, %transpose",
     {0, 2, 1},
     {2, 3, 4}},
    {"WhatIsPermutedOtherwise",
     "float[2,4,3] x",
     "permute",
     "float[2,4,3]",
     24,
     "['w']",
     "y = Mul(x, permute)",
     "mul.Tensor",
     "%x, %permute",
     {},
     {}},
};

class FoldedOrders : public testing::TestWithParam<OrderCase> {};
} // namespace

TEST_P(FoldedOrders, IsWhatTheNotesSay) {
  const OrderCase &order = GetParam();
  ModelProto model =
      parseModel(std::string("<ir_version: 10, opset_import: [\"\" : 20]> g (") + order.inputs + ") => (float y) <" +
                 order.type + " " + order.tensor + " = " + count(order.elements) + "> { " + order.node + " }");
  setSignature(model, {"w"});
  setFoldedFrom(model, order.tensor, order.sources);
  setOperation(model, 0, "y", 1, order.operation, order.operands);
  Classified result = classify(model);
  const InitializerInfo *info = result.find("w");
  ASSERT_TRUE(info) << result.messages;
  EXPECT_EQ(info->role, InitializerRole::Parameter);
  EXPECT_THAT(info->transposed, ElementsAreArray(order.transposed));
  EXPECT_EQ(info->sourceShape.has_value(), !order.shape.empty());
  if (info->sourceShape)
    EXPECT_THAT(*info->sourceShape, ElementsAreArray(order.shape));

  // Only what is assumed, or not known, is warned about.
  const std::string name = order.name;
  if (name == "AProductWithATranspose")
    EXPECT_THAT(result.messages, HasSubstr("taken to be the last two"));
  else if (name == "WhatIsPermutedOtherwise")
    EXPECT_THAT(result.messages, HasSubstr("the program views, permutes or joins them"));
  else
    EXPECT_EQ(result.messages, "");
}

INSTANTIATE_TEST_SUITE_P(Each, FoldedOrders, testing::ValuesIn(orders),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(FoldedOrder, ArithmeticWithinAnOperationIsReported) {
  struct {
    const char *operation, *operands, *node;
    bool isReported;
  } cases[] = {
      {"baddbmm.default", "%p_w, %x, %x", "y = Add(x, val_6)", true},
      {"logaddexp.default", "%x, %p_w", "y = Add(x, val_6)", true},
      {"scaled_dot_product_attention.default", "%x, %p_w, %x", "y = MatMul(x, val_6)", true},
      // The mask of attention is added as it is, and so is what another product reads.
      {"scaled_dot_product_attention.default", "%x, %x, %x, %p_w", "y = Add(x, val_6)", false},
      {"matmul.default", "%x, %p_w", "y = MatMul(x, val_6)", false},
  };
  for (const auto &each : cases) {
    ModelProto model = parseModel(std::string("<ir_version: 10, opset_import: [\"\" : 20]> g (float[2,3,3] x) => "
                                              "(float[2,3,3] y) <float[2,3,3] val_6 = ") +
                                  count(18) + "> { " + each.node + " }");
    setSignature(model, {"w"});
    setFoldedFrom(model, "val_6", "['w', 'val_4', 'val_5']");
    setOperation(model, 0, "y", 1, each.operation, each.operands);
    Classified result = classify(model);
    EXPECT_EQ(result.messages.find("perhaps scaled by the operation that reads it") != std::string::npos,
              each.isReported)
        << each.operation << ": " << result.messages;
  }
}

TEST(FoldedOrder, RepeatedKeysOfAttentionAreReported) {
  // The same rows for each sample are the parameter's, but for a factor.
  for (bool isAttention : {true, false}) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,3,2] x) => (float[2,3,2] y) <float[2,2,2] val_6 = {1, 2, 3, 4, 1, 2, 3, 4}> { y = MatMul(x, val_6) })");
    setSignature(model, {"w"});
    setFoldedFrom(model, "val_6", "['w', 'expand', 'val_4', 'val_5']");
    setOperation(model, 0, "y", 1, isAttention ? "scaled_dot_product_attention.default" : "matmul.default",
                 "%x, %expand, %x");
    Classified result = classify(model);
    EXPECT_EQ(result.messages.find("perhaps scaled by the operation that reads it") != std::string::npos, isAttention)
        << result.messages;
    EXPECT_EQ(result.unfolded.count("w"), isAttention ? 0u : 1u);
  }
}

TEST(FoldedOrder, RepeatedRowsThatAnOperationChangesAreReported) {
  // `logaddexp(x, w.expand_as(x))` evaluates exp(w): the rows are not those of the parameter.
  for (const char *operation : {"logaddexp.default", "baddbmm.default", "mul.Tensor"}) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2,2] x) => (float[2,2,2] y) <float[2,2,2] val_6 = {1, 2, 3, 4, 1, 2, 3, 4}> { y = Add(x, val_6) })");
    setSignature(model, {"w"});
    setFoldedFrom(model, "val_6", "['w', 'expand', 'val_4', 'val_5']");
    setOperation(model, 0, "y", 1, operation, "%x, %expand");
    Classified result = classify(model);
    const bool isChanged = std::string(operation) != "mul.Tensor";
    EXPECT_EQ(result.messages.find("perhaps scaled by the operation that reads it") != std::string::npos, isChanged)
        << operation << ": " << result.messages;
    EXPECT_EQ(result.unfolded.count("w"), isChanged ? 0u : 1u) << operation;
  }
}

TEST(FoldedOrder, OneParameterInTwoShapesIsOne) {
  // The transitions of a random field, as a path reads them and as all of them are added.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[4,3,1] x, int64[4,2] at) => (float[4,3,3] y, float[4] z)
    <float[3,3] val_30 = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[1,3,3] unsqueeze_2 = {1, 2, 3, 4, 5, 6, 7, 8, 9}> {
      y = Add(x, unsqueeze_2)
      z = GatherND(val_30, at)
    })");
  setSignature(model, {"t"});
  setFoldedFrom(model, "val_30", "['t']");
  setFoldedFrom(model, "unsqueeze_2", "['t']");
  Classified result = classify(model);
  EXPECT_EQ(result.messages, "");
  ASSERT_EQ(result.infos.size(), 2u);
  EXPECT_EQ(result.infos[0].name, "t");
  EXPECT_EQ(result.infos[1].viewOf, std::optional<size_t>(0));
  EXPECT_TRUE(result.infos[1].transposed.empty());
  EXPECT_EQ(importModel(model).failure, FailureKind::None);
  // Whichever comes first.
  model.mutable_graph()->mutable_initializer()->SwapElements(0, 1);
  result = classify(model);
  ASSERT_EQ(result.infos.size(), 2u) << result.messages;
  EXPECT_EQ(result.infos[0].viewOf, std::optional<size_t>(1));
  EXPECT_EQ(importModel(model).failure, FailureKind::None);
  // Where they differ, the two would part.
  model.mutable_graph()->mutable_initializer(0)->set_float_data(0, 7);
  EXPECT_THAT(classify(model).messages, testing::HasSubstr("is in the file twice"));
}

TEST(FoldedOrder, ReshapesOfOneParameterMayComeBeforeIt) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[4,2,1] x, int64[4,2] at) => (float[4,2,2] y, float[4] z)
    <float[1,2,2] unsqueeze_2 = {1, 2, 3, 4}, float[1,2,2] unsqueeze_4 = {1, 2, 3, 4}, float[2,2] val_30 = {1, 2, 3, 4}> {
      h = Add(x, unsqueeze_2)
      y = Add(h, unsqueeze_4)
      z = GatherND(val_30, at)
    })");
  setSignature(model, {"t"});
  for (const char *tensor : {"unsqueeze_2", "unsqueeze_4", "val_30"})
    setFoldedFrom(model, tensor, "['t']");
  Classified result = classify(model);
  EXPECT_EQ(result.messages, "");
  ASSERT_EQ(result.infos.size(), 3u);
  EXPECT_EQ(result.infos[2].name, "t");
  EXPECT_FALSE(result.infos[2].viewOf);
  EXPECT_EQ(result.infos[0].viewOf, std::optional<size_t>(2));
  EXPECT_TRUE(result.infos[1].viewOf);
  EXPECT_EQ(importModel(model).failure, FailureKind::None);
}
