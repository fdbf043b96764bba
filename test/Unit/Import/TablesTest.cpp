//===- TablesTest.cpp - buffers that nothing but their numbers tells ---------------===//
//
// Files without notes: tables that formulas wrote are no parameters, tables of other numbers are.
//
//===----------------------------------------------------------------------===//

#include "TestModel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>
#include <functional>

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

namespace {
/// Numbers as a generator draws them.
float draw(int i) { return float(std::fmod(std::sin(double(i) + 1) * 43758.5453, 1.0)); }

/// The rows × columns table of `element`, as the text format writes it.
std::string table(int rows, int columns, const std::function<double(int, int)> &element) {
  std::string list;
  for (int i = 0; i != rows * columns; ++i) {
    char text[32];
    std::snprintf(text, sizeof(text), "%s%.9g", i ? ", " : "", double(float(element(i / columns, i % columns))));
    list += text;
  }
  return "{" + list + "}";
}

/// `reader` of x and the 6 × 8 tensor `t`.
ModelProto readTable(const std::string &values, const std::string &reader) {
  ModelProto model =
      parseModel("<ir_version: 8, opset_import: [\"\" : 17]> g (float[6,6] x, float[6,8] z) => (float[6,8] "
                 "y) <float[6,8] t = " +
                 values + "> { " + reader + " }");
  model.set_producer_name("pytorch");
  return model;
}

/// Gives tensor `t` a name that the exporter invents, and the nodes names that tell their modules.
void fold(ModelProto &model, std::vector<std::string> names) {
  model.mutable_graph()->mutable_initializer(0)->set_name("onnx::MatMul_9");
  for (auto &node : *model.mutable_graph()->mutable_node()) {
    std::replace(node.mutable_input()->begin(), node.mutable_input()->end(), std::string("t"),
                 std::string("onnx::MatMul_9"));
    node.set_name(names.front());
    names.erase(names.begin());
  }
}

const std::string product = "y = MatMul(x, t)", sum = "y = Add(z, t)";
} // namespace

TEST(Tables, BasesAreNoWeights) {
  auto powers = [](int i, int j) { return std::pow(j / 8.0, i); };
  auto squares = [](int i, int j) { return (j - 3.0) * (j - i) + 0.25; };
  auto decays = [](int i, int j) { return std::pow(0.9 - 0.1 * i, j); };
  auto cosines = [](int i, int j) { return std::cos(M_PI * (2 * j + 1) * i / 16); };
  for (const auto &element : std::initializer_list<std::function<double(int, int)>>{powers, squares, decays, cosines}) {
    Classified result = classify(readTable(table(6, 8, element), product));
    EXPECT_THAT(result.names(InitializerRole::Constant), ElementsAre("t"));
    EXPECT_EQ(result.messages, "");
  }
}

TEST(Tables, WhatIsAddedMayBeTrained) {
  // A table of positions is a buffer here and a parameter there: it is said.
  Classified result =
      classify(readTable(table(6, 8, [](int i, int j) { return std::sin(i * std::pow(0.5, j)); }), sum));
  EXPECT_THAT(result.names(InitializerRole::Constant), ElementsAre("t"));
  EXPECT_THAT(result.messages, HasSubstr("are taken for buffers and not trained: t"));
  EXPECT_THAT(result.messages, HasSubstr("--params"));
}

TEST(Tables, DrawnNumbersAreWeights) {
  auto drawn = [](int i, int j) { return draw(8 * i + j); };
  // Powers, but for one number that is off by a thousandth.
  auto nearly = [](int i, int j) { return std::pow(j / 8.0, i) + (i == 2 && j == 4 ? 1e-3 : 0); };
  for (const auto &element : std::initializer_list<std::function<double(int, int)>>{drawn, nearly})
    for (const std::string &reader : {product, sum})
      EXPECT_THAT(classify(readTable(table(6, 8, element), reader)).names(InitializerRole::Parameter), ElementsAre("t"))
          << reader;
}

TEST(Tables, AFoldedBasisIsNoLayer) {
  auto cosines = table(6, 8, [](int i, int j) { return std::cos(M_PI * (2 * j + 1) * i / 16); });
  ModelProto model = readTable(cosines, "h = MatMul(x, t) y = Relu(h)");
  fold(model, {"/MatMul", "/Relu"});
  EXPECT_THAT(classify(model).names(InitializerRole::Parameter), IsEmpty());
  // A module that does nothing but multiply is a layer, however its weight began.
  model = readTable(cosines, "h = MatMul(x, t) y = Relu(h)");
  fold(model, {"/fc/MatMul", "/Relu"});
  EXPECT_THAT(classify(model).names(InitializerRole::Parameter), ElementsAre("fc.weight"));
}

TEST(Tables, FrequenciesOfFeaturesAreSeldomTrained) {
  auto drawn = table(6, 8, [](int i, int j) { return draw(8 * i + j); });
  const std::string features = "h = MatMul(x, t) s = Sin(h) c = Cos(h) y = Add(s, c)";
  Classified result = classify(readTable(drawn, features));
  EXPECT_THAT(result.names(InitializerRole::Constant), ElementsAre("t"));
  EXPECT_THAT(result.messages, HasSubstr("frequencies of features"));
  // A sine alone is an activation.
  result = classify(readTable(drawn, "h = MatMul(x, t) y = Sin(h)"));
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("t"));
  // A layer's weight is one.
  ModelProto model = readTable(drawn, features);
  fold(model, {"/fc/MatMul", "/Sin", "/Cos", "/Add"});
  EXPECT_THAT(classify(model).names(InitializerRole::Parameter), ElementsAre("fc.weight"));
}

TEST(Tables, WhatArithmeticMadeOfAWeightIsSaid) {
  auto masked = table(6, 8, [](int i, int j) { return j < i + 2 ? draw(8 * i + j) : 0; });
  ModelProto model = readTable(masked, product);
  fold(model, {"/MatMul"});
  EXPECT_THAT(classify(model).messages, HasSubstr("hold zeros among other numbers"));
  // Whole columns may begin at zero.
  model = readTable(table(6, 8, [](int i, int j) { return j < 6 ? draw(8 * i + j) : 0; }), product);
  fold(model, {"/MatMul"});
  EXPECT_THAT(classify(model).messages, testing::Not(HasSubstr("hold zeros")));
  // cat([w, -w])
  model =
      readTable(table(6, 8, [](int i, int j) { return i < 3 ? draw(8 * i + j) : -draw(8 * (i - 3) + j); }), product);
  fold(model, {"/MatMul"});
  EXPECT_THAT(classify(model).messages, HasSubstr("each number several times but for its sign"));
}

TEST(Tables, ShortRampsAreWeights) {
  Classified result = classify(parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[4,5] x) => (float[4,5] y)
    <float[4,5] m = {-1.125, -1, -0.875, -0.75, -0.625, -0.5, -0.375, -0.25, -0.125, 0,
                     0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1, 1.125, 1.25}> { y = Mul(x, m) })"));
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("m"));
}

TEST(Tables, MaskedWindowsHoldTheRowsOfOthers) {
  // A table of a 2 × 2 window for two heads, plus -100 in the second window between its two rows of cells.
  auto table = [](int row, int head) { return float(row * row) / 64 + float(4 * head); };
  std::vector<float> values;
  for (int window = 0; window != 2; ++window)
    for (int head = 0; head != 2; ++head)
      for (int query = 0; query != 4; ++query)
        for (int key = 0; key != 4; ++key) {
          const int row = (query / 2 - key / 2 + 1) * 3 + query % 2 - key % 2 + 1;
          values.push_back(table(row, head) + (window && query / 2 != key / 2 ? -100.0f : 0.0f));
        }
  const std::string name = "relative_position_bias_table";
  const std::string from = "['" + name + "', 'index_1', 'masked_fill', 'permute_1']";
  Classified result = classify(makeEvaluated("add_6", "2,2,4,4", values, name, from));
  ASSERT_TRUE(result.find(name)) << result.messages;
  EXPECT_THAT(result.find(name)->dims, ElementsAre(9, 2));
  std::vector<float> expected;
  for (int row = 0; row != 9; ++row)
    for (int head = 0; head != 2; ++head)
      expected.push_back(table(row, head));
  EXPECT_THAT(result.values[name], testing::ElementsAreArray(expected));
  EXPECT_THAT(result.messages, HasSubstr("does not tell everything about them: " + name));
  // Another number at one place is no such mask.
  values.back() += 1;
  values[values.size() - 3] -= 1;
  EXPECT_THAT(classify(makeEvaluated("add_6", "2,2,4,4", values, name, from)).messages, HasSubstr("changed by 'add'"));
}

TEST(Tables, PlacesInAPictureAreNotTrained) {
  // As `get_2d_sincos_pos_embed` writes them: half of the columns tell the row, half the column, after a token of
  // zeros.
  auto place = [](int at, int column) {
    if (at == 0)
      return 0.0;
    const int along = column < 4 ? (at - 1) / 4 : (at - 1) % 4;
    const double angle = along * (column % 2 == 0 ? 1 : 0.01);
    return column % 4 < 2 ? std::sin(angle) : std::cos(angle);
  };
  auto trained = [&](int at, int column) { return place(at, column) + (at == 10 && column == 3 ? 0.01 : 0); };
  for (bool isNoted : {true, false}) {
    ModelProto model =
        parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,21,8] x) => (float[2,21,8] y) <float[1,21,8] "embed.position" = )" +
                   table(21, 8, place) + R"(, float[1,21,8] "embed.trained" = )" + table(21, 8, trained) + R"(> {
        h = Add(x, "embed.position")
        y = Add(h, "embed.trained")
      })");
    if (isNoted)
      setSignature(model, {"embed.position", "embed.trained"});
    const Classified result = classify(model);
    EXPECT_THAT(result.names(InitializerRole::Constant), ElementsAre("embed.position"));
    EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("embed.trained"));
    EXPECT_THAT(result.messages, HasSubstr("embed.position"));
  }
}

TEST(Classification, PowersOfPositionsAreNotTrained) {
  // N-BEATS keeps its basis of trends so: `nn.Parameter(powers, requires_grad=False)`.
  auto power = [](int row, int column) { return std::pow(column / 5.0, row); };
  auto almost = [&](int row, int column) { return power(row, column) + (row == 2 && column == 3 ? 0.01 : 0.0); };
  for (bool isNoted : {true, false}) {
    ModelProto model =
        parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,3] x) => (float[2,5] y)
      <float[3,5] "trend.basis" = )" +
                   table(3, 5, power) + R"(, float[3,5] "learned.weight" = )" + table(3, 5, almost) + R"(> {
        a = MatMul(x, "trend.basis")
        b = MatMul(x, "learned.weight")
        y = Add(a, b)
      })");
    if (isNoted)
      setSignature(model, {"trend.basis", "learned.weight"});
    Classified result = classify(model);
    EXPECT_THAT(result.names(InitializerRole::Constant), ElementsAre("trend.basis"));
    EXPECT_THAT(result.messages, HasSubstr("a basis of trends) and are not trained: trend.basis"));
    ImportOptions options;
    options.selections = {{true, "+trend.*"}};
    EXPECT_THAT(classify(model, options).names(InitializerRole::Parameter),
                UnorderedElementsAre("trend.basis", "learned.weight"));
  }
}

TEST(Classification, MasksAndPermutationsAreNotTrained) {
  // `nn.Parameter(mask, requires_grad=False)` of a sparse layer, and the order of channels of a flow.
  auto find = [](bool isNoted, const std::string &mask, const std::string &order) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,3] x) => (float[2,3] y)
      <float[3,3] "cell.weight" = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[3,3] "cell.sparsity" = {)" +
                                  mask + R"(}, float[3,3] "mix.w" = {)" + order + R"(}> {
        w = Mul("cell.weight", "cell.sparsity")
        h = MatMul(x, w)
        y = MatMul(h, "mix.w")
      })");
    if (isNoted)
      setSignature(model, {"cell.weight", "cell.sparsity", "mix.w"});
    return classify(model).names(InitializerRole::Parameter);
  };
  const std::string mask = "1, 0, 1, 1, 1, 0, 0, 0, 1", order = "0, 1, 0, 0, 0, 1, 1, 0, 0";
  EXPECT_THAT(find(true, mask, order), ElementsAre("cell.weight"));
  EXPECT_THAT(find(false, mask, order), ElementsAre("cell.weight"));
  // Numbers that are not those of a mask; the identity, which layers begin as, and two ones in a column.
  EXPECT_THAT(find(true, "1, 0, 1, 1, 0.5, 0, 0, 0, 1", order), UnorderedElementsAre("cell.weight", "cell.sparsity"));
  EXPECT_THAT(find(true, "1, 1, 1, 1, 1, 1, 1, 1, 1", order), UnorderedElementsAre("cell.weight", "cell.sparsity"));
  EXPECT_THAT(find(true, mask, "1, 0, 0, 0, 1, 0, 0, 0, 1"), UnorderedElementsAre("cell.weight", "mix.w"));
  EXPECT_THAT(find(true, mask, "0, 1, 0, 0, 1, 0, 1, 0, 0"), UnorderedElementsAre("cell.weight", "mix.w"));
}
