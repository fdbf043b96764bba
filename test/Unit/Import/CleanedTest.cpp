//===- CleanedTest.cpp - what cleaners evaluate, repeat and join, without notes -----------===//
//
// `tools/dev zoo --only=transformers --cleaners` are the real files.
//
//===----------------------------------------------------------------------===//

#include "TestModel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::UnorderedElementsAre;

namespace {
/// `number` rows of four numbers as a generator draws them, each once.
std::vector<float> drawRows(int number) {
  std::vector<float> rows;
  for (int i = 0; i != 4 * number; ++i)
    rows.push_back(float(std::fmod(std::sin(double(i) + 1) * 43758.5453, 1.0)));
  return rows;
}

std::vector<float> repeat(std::vector<float> rows, int times) {
  std::vector<float> all;
  for (int i = 0; i != times; ++i)
    all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

/// y = norm(x + t) of two samples of `places` places, where t, of `dims`, is called `name`; nodes are in module `net`.
ModelProto addTable(const std::string &name, const std::string &dims, const std::vector<float> &values, int places = 3,
                    const std::string &reader = "/net/Add") {
  const std::string shape = "float[2," + std::to_string(places) + ",4]";
  ModelProto model = parseModel("<ir_version: 8, opset_import: [\"\" : 17]> g (" + shape + " x) => (" + shape +
                                " y) <float[4] w = {1, 2, 3, "
                                "4}, float[4] b = {1, 2, 3, 5}> { h = Add(x, t) y = LayerNormalization(h, w, b) }");
  model.set_producer_name("pytorch");
  auto &tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name("t");
  tensor.set_data_type(::onnx::TensorProto::FLOAT);
  for (size_t at = 0; at < dims.size(); at += 2)
    tensor.add_dims(dims[at] - '0');
  for (float value : values)
    tensor.add_float_data(value);
  renameValue(model, "t", name);
  renameValue(model, "w", "net.norm.weight");
  renameValue(model, "b", "net.norm.bias");
  model.mutable_graph()->mutable_node(0)->set_name(reader);
  model.mutable_graph()->mutable_node(1)->set_name("/net/norm/LayerNormalization");
  return model;
}

const std::string looked = "/net/pos/Gather_output_0", expanded = "/net/Expand_output_0";
} // namespace

TEST(Cleaned, ATableThatWasLookedUpIsItsModules) {
  const std::vector<float> rows = drawRows(3);
  for (const auto &[dims, times] :
       std::initializer_list<std::pair<std::string, int>>{{"3,4", 1}, {"1,3,4", 1}, {"2,3,4", 2}}) {
    Classified result = classify(addTable(looked, dims, repeat(rows, times)));
    const InitializerInfo *table = result.find("net.pos.weight");
    ASSERT_TRUE(table) << dims << result.messages;
    EXPECT_EQ(table->role, InitializerRole::Parameter);
    EXPECT_THAT(table->dims, ElementsAre(3, 4));
    EXPECT_THAT(result.values["net.pos.weight"], ElementsAreArray(rows));
    EXPECT_THAT(result.messages, HasSubstr("does not tell everything about them: net.pos.weight"));
    EXPECT_THAT(result.replaced[looked], SizeIs(1));
  }
}

TEST(Cleaned, KindsOfTokensAreOneRow) {
  Classified result = classify(addTable(looked, "2,3,4", repeat(drawRows(1), 6)));
  ASSERT_TRUE(result.find("net.pos.weight")) << result.messages;
  EXPECT_THAT(result.values["net.pos.weight"], ElementsAreArray(drawRows(1)));
}

TEST(Cleaned, ARowOfPaddingIsTheSameForEachSample) {
  std::vector<float> rows = drawRows(3);
  std::fill(rows.begin(), rows.begin() + 4, 0.0f);
  Classified result = classify(addTable(looked, "2,3,4", repeat(rows, 2)));
  ASSERT_TRUE(result.find("net.pos.weight")) << result.messages;
  EXPECT_THAT(result.values["net.pos.weight"], ElementsAreArray(rows));
  // Two rows of one number each: whether they are one of the table, their numbers do not tell.
  std::fill(rows.begin(), rows.begin() + 8, 0.0f);
  EXPECT_FALSE(classify(addTable(looked, "1,3,4", rows)).find("net.pos.weight"));
}

TEST(Cleaned, OtherModulesLookUpNoWeight) {
  // A module that computes more has its table under another name.
  Classified result = classify(addTable(looked, "3,4", drawRows(3), 3, "/net/pos/Add"));
  EXPECT_FALSE(result.find("net.pos.weight"));
  EXPECT_THAT(result.messages, HasSubstr(looked));
  // Sinusoids are no parameter, whoever looks them up.
  std::vector<float> waves;
  for (int i = 0; i != 32; ++i)
    waves.push_back(float(std::sin(double(i / 4) * std::pow(0.1, i % 4))));
  result = classify(addTable(looked, "8,4", waves, 8));
  EXPECT_FALSE(result.find("net.pos.weight"));
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("net.norm.weight", "net.norm.bias"));
}

TEST(Cleaned, ATokenIsOneForAllSamples) {
  const std::vector<float> token = drawRows(3);
  Classified result = classify(addTable(expanded, "2,3,4", repeat(token, 2)));
  const InitializerInfo *once = result.find(expanded + "@once");
  ASSERT_TRUE(once) << result.messages;
  EXPECT_EQ(once->role, InitializerRole::Parameter);
  EXPECT_THAT(once->dims, ElementsAre(1, 3, 4));
  EXPECT_THAT(result.values[expanded + "@once"], ElementsAreArray(token));
  EXPECT_THAT(result.messages, HasSubstr("seem to come from parameters; they are trained: " + expanded + "@once"));

  // In files of the current exporter the name is the operation's.
  ModelProto model = addTable("expand_1", "2,3,4", repeat(token, 2), 3, "node_add");
  result = classify(model);
  ASSERT_TRUE(result.find("expand_1@once")) << result.messages;
  EXPECT_THAT(result.messages, HasSubstr("nothing tells from which: expand_1@once"));
}

TEST(Cleaned, AFewNumbersAreRepeatedToo) {
  // Sinks of gpt-oss, one for each head.
  auto sinks = [](const std::vector<float> &heads) {
    std::vector<float> values;
    for (int sample = 0; sample != 2; ++sample)
      for (float head : heads)
        values.insert(values.end(), 4, head);
    return classify(addTable("expand_4", "2,3,4", values, 3, "node_add"));
  };
  Classified result = sinks({0.5, -1, 0.25});
  ASSERT_TRUE(result.find("expand_4@once")) << result.messages;
  EXPECT_THAT(result.find("expand_4@once")->dims, ElementsAre(1, 3, 1));
  // A ramp, and numbers that are there twice, may have begun equal.
  EXPECT_FALSE(sinks({0.25, 0.5, 1.5}).find("expand_4@once"));
  EXPECT_FALSE(sinks({0.5, -1, 0.5}).find("expand_4@once"));
}

TEST(Cleaned, WhatDiffersOrBeganEqualIsNotOne) {
  // Samples differ.
  EXPECT_FALSE(classify(addTable(expanded, "2,3,4", drawRows(6))).find(expanded + "@once"));
  // One number everywhere.
  EXPECT_FALSE(classify(addTable(expanded, "2,3,4", std::vector<float>(24, 0.5f))).find(expanded + "@once"));
  // A parameter whose rows began equal, which a conversion reads: only samples are equal for another reason.
  const std::string converted = "/net/Cast_output_0";
  EXPECT_FALSE(classify(addTable(converted, "3,4", repeat(drawRows(1), 3))).find(converted + "@once"));
  Classified result = classify(addTable(converted, "2,3,4", repeat(drawRows(3), 2)));
  EXPECT_TRUE(result.find(converted + "@once")) << result.messages;
}

namespace {
/// The parts of x · [w v] by onnx-simplifier; `biases` are added to them.
ModelProto splitProduct(const std::vector<std::string> &biases, const std::string &weight = "_v_7") {
  ModelProto model = parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2,2] x) => (float[2,1] y, float[2,2] z)
    <float[2,3] w = {1, 2, 3, 4, 5, 6}, int64[2] sizes = {1, 2}, float[1] b0 = {7}, float[2] b1 = {8, 9}> {
      p = MatMul(x, w)
      p0, p1 = Split<axis = -1>(p, sizes)
      y = Add(b0, p0)
      z = Add(p1, b1)
    })");
  model.set_producer_name("pytorch");
  model.mutable_graph()->mutable_node(0)->set_name("MatMul_0");
  model.mutable_graph()->mutable_node(2)->set_name("/net/a/Add");
  model.mutable_graph()->mutable_node(3)->set_name("/net/b/Add");
  renameValue(model, "w", weight);
  renameValue(model, "b0", biases[0]);
  renameValue(model, "b1", biases[1]);
  return model;
}
} // namespace

TEST(Cleaned, JoinedLayersAreCalledAsTheirBiases) {
  Classified result = classify(splitProduct({"net.a.bias", "net.b.bias"}));
  ASSERT_TRUE(result.find("net.a.weight") && result.find("net.b.weight")) << result.messages;
  EXPECT_THAT(result.find("net.b.weight")->dims, ElementsAre(2, 2));
  EXPECT_THAT(result.values["net.a.weight"], ElementsAre(1, 4));
  EXPECT_THAT(result.values["net.b.weight"], ElementsAre(2, 5, 3, 6));
  EXPECT_THAT(result.names(InitializerRole::Parameter), SizeIs(4));
  EXPECT_EQ(result.messages, "");
  EXPECT_THAT(result.replaced["_v_7"], ElementsAre("_v_7"));

  // Layers that run again.
  ModelProto again = splitProduct({"net.a.bias", "net.b.bias"});
  auto &second = *again.mutable_graph()->add_node();
  second = again.graph().node(0);
  second.set_name("MatMul_5");
  second.set_output(0, "other");
  result = classify(again);
  EXPECT_THAT(result.values["net.b.weight"], ElementsAre(2, 5, 3, 6));
  EXPECT_THAT(result.names(InitializerRole::Parameter), SizeIs(4));

  // Of a part that no bias tells, a warning names what is trained.
  result = classify(splitProduct({"net.a.bias", "net.b.scale"}));
  EXPECT_TRUE(result.find("net.a.weight"));
  EXPECT_TRUE(result.find("p1.weight"));
  EXPECT_THAT(result.messages, HasSubstr("does not tell everything about them: p1.weight"));
}

TEST(Cleaned, AProgramsOwnSplitStays) {
  EXPECT_FALSE(classify(splitProduct({"net.a.bias", "net.b.bias"}, "net.qkv.weight")).find("net.a.weight"));
  ModelProto model = splitProduct({"net.a.bias", "net.b.bias"});
  model.mutable_graph()->mutable_node(1)->set_name("/net/Split");
  EXPECT_FALSE(classify(model).find("net.a.weight"));
}

namespace {
/// A convolution of x · `factor`, which onnx-simplifier gave a weight of its own.
ModelProto convolve(const std::string &factor, const std::string &bias = "net.conv.bias") {
  ModelProto model = parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[1,1,3] x) => (float[1,2,3] y)
    <float[2,1,1] w = {0.25, -1.5}, float[2] b = {7, 8}, float one = {1}, float root = {1.4142135}> {
      d = Div(x, root)
      e = Erf(d)
      t = Tanh(d)
      s = Add(e, one)
      r = Add(e, root)
      h = Mul(x, )" + factor + R"()
      y = Conv(h, w, b)
    })");
  model.set_producer_name("pytorch");
  model.mutable_graph()->mutable_node(6)->set_name("/net/conv/Conv");
  renameValue(model, "w", "_v_24");
  renameValue(model, "one", "/net/Constant_output_0");
  renameValue(model, "root", "/net/Constant_1_output_0");
  renameValue(model, "b", bias);
  return model;
}
} // namespace

TEST(Cleaned, TheHalfOfAnActivationIsNoWeights) {
  Classified result = classify(convolve("s"));
  EXPECT_THAT(result.names(InitializerRole::Parameter), UnorderedElementsAre("net.conv.weight", "net.conv.bias"));
  EXPECT_THAT(result.values["net.conv.weight"], ElementsAre(0.5, -3));
  EXPECT_EQ(result.messages, "");
  // Another sum, another function, and a bias that a folded norm may have changed: as it stands, with a warning.
  for (const ModelProto &other : {convolve("r"), convolve("t"), convolve("s", "_v_25")}) {
    result = classify(other);
    EXPECT_TRUE(result.values.empty());
    EXPECT_THAT(result.messages, HasSubstr("a cleaner evaluated the weights of convolutions"));
  }
}

TEST(Cleaned, ConvolutionsOfATrainedModelHaveNoBiasOfZeros) {
  // `Conv2d(bias=False)`: the exporter adds zeros, and drops them.
  auto read = [](const std::string &norm) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 18]>
      g (float[1,1,3] x) => (float[1,2,3] y)
      <float[2,1,1] w = {1, 2}, float[3] s = {1, 1, 2}, float[3] b = )" +
                                  norm + R"(> {
        conv1d = Conv(x, w)
        y = LayerNormalization(conv1d, s, b)
      })");
    model.set_producer_name("pytorch");
    model.mutable_graph()->mutable_node(0)->set_name("node_Conv_5");
    model.mutable_graph()->mutable_node(1)->set_name("node_layer_norm");
    renameValue(model, "w", "conv.weight");
    renameValue(model, "s", "norm.weight");
    renameValue(model, "b", "norm.bias");
    return classify(model);
  };
  Classified trained = read("{0.5, 0.25, 1}"), fresh = read("{0, 0, 0}");
  EXPECT_FALSE(trained.find("conv.bias"));
  EXPECT_THAT(trained.messages,
              HasSubstr("drops biases of zeros: if the program has them, they are not trained: conv1d"));
  EXPECT_TRUE(fresh.find("conv.bias"));
  EXPECT_THAT(fresh.messages, Not(HasSubstr("drops biases of zeros")));
}

TEST(Cleaned, ZerosThatARecurrenceBeginsWithAreNoWeight) {
  auto multiply = [](const std::string &name, const std::string &dims, const std::string &values) {
    ModelProto model =
        parseModel("<ir_version: 8, opset_import: [\"\" : 17]> g (float[2,1,2] x) => (float[2,1,2] y) <float[" + dims +
                   "] s = " + values + "> { y = MatMul(x, s) }");
    model.set_producer_name("pytorch");
    model.mutable_graph()->mutable_node(0)->set_name("/net/attn/MatMul");
    renameValue(model, "s", name);
    return classify(model);
  };
  const std::string state = "/net/attn/Mul_4_output_0";
  Classified result = multiply(state, "2,2,2", "{0, 0, 0, 0, 0, 0, 0, 0}");
  EXPECT_THAT(result.names(InitializerRole::Parameter), IsEmpty());
  EXPECT_THAT(result.messages, HasSubstr("they are not trained: " + state));
  // A layer's weight may begin with zeros; what was evaluated and differs is trained, and named.
  EXPECT_THAT(multiply("onnx::MatMul_9", "2,2", "{0, 0, 0, 0}").names(InitializerRole::Parameter), SizeIs(1));
  result = multiply(state, "2,2,2", "{1, 2, 3, 5, 4, 7, 6, 9}");
  EXPECT_THAT(result.names(InitializerRole::Parameter), SizeIs(1));
  EXPECT_THAT(result.messages, HasSubstr("they are trained: " + state));
}

TEST(Cleaned, ExpertsThatARouterChoosesAreTrained) {
  auto choose = [](const std::vector<float> &values) {
    ModelProto model =
        parseModel("<ir_version: 8, opset_import: [\"\" : 17]> g (float[2,4] x, int64[2,1] i) => (float[2,4] y) { "
                   "w = GatherND(t, i) y = Mul(x, w) }");
    auto &tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name("val_181");
    tensor.set_data_type(::onnx::TensorProto::FLOAT);
    tensor.add_dims(3);
    tensor.add_dims(4);
    for (float value : values)
      tensor.add_float_data(value);
    renameValue(model, "t", "val_181");
    model.set_producer_name("pytorch");
    model.mutable_graph()->mutable_node(1)->set_name("node_mul");
    return classify(model);
  };
  Classified result = choose(drawRows(3));
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("val_181"));
  EXPECT_THAT(result.messages, HasSubstr("they are trained: val_181"));
  EXPECT_THAT(choose({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}).names(InitializerRole::Parameter), IsEmpty());
}

TEST(Cleaned, ASmallEvaluatedMatrixIsNoNumberOfTheProgram) {
  // onnx-simplifier leaves what it evaluated in a node.
  auto read = [](const std::string &name) {
    ModelProto model =
        parseModel("<ir_version: 8, opset_import: [\"\" : 17]> g (float[3,17] x) => (float[3,2] y) { "
                   "w = Constant<value = float[2,2] {3, 1, 4, 1.5}>() h = MatMul(x, v) y = MatMul(h, w) }");
    auto &tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name("v");
    tensor.set_data_type(::onnx::TensorProto::FLOAT);
    tensor.add_dims(17);
    tensor.add_dims(2);
    for (int i = 0; i != 34; ++i)
      tensor.add_float_data(drawRows(9)[size_t(i)]);
    model.set_producer_name("pytorch");
    model.mutable_graph()->mutable_node(1)->set_name("/net/a/MatMul");
    model.mutable_graph()->mutable_node(2)->set_name("/net/MatMul");
    renameValue(model, "v", "net.a.weight");
    renameValue(model, "w", name);
    return classify(model);
  };
  Classified result = read("/net/Transpose_output_0");
  EXPECT_THAT(result.names(InitializerRole::Parameter), UnorderedElementsAre("net.a.weight", "net.weight"));
  EXPECT_THAT(result.messages, HasSubstr("their names are guessed"));
  EXPECT_THAT(read("/net/Constant_output_0").names(InitializerRole::Parameter), ElementsAre("net.a.weight"));
}

TEST(Cleaned, ScattersOfTheProgramAreNamed) {
  Classified result = classify(addTable("select_scatter", "2,3,4", drawRows(6), 3, "node_add"));
  EXPECT_THAT(result.messages, HasSubstr("nothing tells from which: select_scatter (node_add)"));
}

namespace {
/// z = (x · Vᵀ + b) · Wᵀ + c of two equal weights, as onnxslim writes them.
ModelProto callTwice(const std::vector<std::string> &weights, const std::vector<std::string> &biases,
                     const std::string &second = "{1, 2, 4, 3}") {
  ModelProto model = parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2,2] x) => (float[2,2] z)
    <float[2,2] v = {1, 2, 4, 3}, float[2,2] w = )" +
                                second + R"(, float[2] b = {7, 8}, float[2] c = {9, 9.5}> {
      h = Gemm<transB = 1>(x, v, b)
      y = Relu(h)
      z = Gemm<transB = 1>(y, w, c)
    })");
  model.set_producer_name("pytorch");
  auto &nodes = *model.mutable_graph()->mutable_node();
  nodes[0].set_name(weights[0].substr(0, weights[0].size() - 7));
  nodes[2].set_name(weights[1].substr(0, weights[1].size() - 7));
  renameValue(model, "v", weights[0]);
  renameValue(model, "w", weights[1]);
  renameValue(model, "b", biases[0]);
  if (biases[1] == biases[0])
    nodes[2].set_input(2, biases[0]);
  else
    renameValue(model, "c", biases[1]);
  return model;
}

const std::vector<std::string> twice = {"/net/key/MatMul_output_0_weight", "/net/key_1/MatMul_output_0_weight"};
} // namespace

TEST(Cleaned, ALayerThatRunsAgainHasOneWeight) {
  Classified result = classify(callTwice(twice, {"net.key.bias", "net.key.bias"}));
  EXPECT_THAT(result.names(InitializerRole::Parameter), UnorderedElementsAre("net.key.weight", "net.key.bias"));
  EXPECT_THAT(result.replaced[twice[1]], ElementsAre(twice[0]));
  // The exporter's numbers of a module's runs tell, where there is no bias to share.
  result = classify(callTwice(twice, {"onnx::Add_1", "onnx::Add_2"}));
  EXPECT_FALSE(result.find("net.key_1.weight")) << result.messages;
  // Without modules, the one bias does.
  result = classify(callTwice({"val_8_weight", "val_16_weight"}, {"net.key.bias", "net.key.bias"}));
  EXPECT_THAT(result.names(InitializerRole::Parameter), UnorderedElementsAre("val_8_weight", "net.key.bias"));
}

TEST(Cleaned, ALayerWithoutABiasThatRunsAgainHasOneWeight) {
  // Of HRM's modules the exporter leaves copies, of which onnxslim makes tensors.
  auto run = [](const std::string &first, const std::string &second) {
    ModelProto model = parseModel(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2,2] x) => (float[2,2] y) <float[2,2] v = {1, 2, "
        "4, 3}, float[2,2] w = {1, 2, 4, 3}> { h = MatMul(x, v) y = MatMul(h, w) }");
    model.set_producer_name("pytorch");
    model.mutable_graph()->mutable_node(0)->set_name(first);
    model.mutable_graph()->mutable_node(1)->set_name(second);
    renameValue(model, "v", "onnx::MatMul_8");
    renameValue(model, "w", "onnx::MatMul_9");
    return classify(model).names(InitializerRole::Parameter);
  };
  EXPECT_THAT(run("/net/down/MatMul", "/net/down_1/MatMul"), ElementsAre("net.down.weight"));
  EXPECT_THAT(run("/net/down/MatMul", "/net/up/MatMul"), SizeIs(2));
  EXPECT_THAT(run("/net/down_1/MatMul", "/net/down_2/MatMul"), SizeIs(2));
}

TEST(Cleaned, LayersThatWereCopiedTrainApart) {
  const std::vector<std::string> layers = {"/net/layers.0/fc/MatMul_output_0_weight",
                                           "/net/layers.1/fc/MatMul_output_0_weight"};
  Classified result = classify(callTwice(layers, {"net.layers.0.fc.bias", "net.layers.1.fc.bias"}));
  EXPECT_THAT(result.names(InitializerRole::Parameter), SizeIs(4));
  result = classify(callTwice({"val_8_weight", "val_16_weight"}, {"net.a.bias", "net.b.bias"}));
  EXPECT_THAT(result.names(InitializerRole::Parameter), SizeIs(4));
  // Other numbers.
  result = classify(callTwice(twice, {"net.key.bias", "net.key.bias"}, "{1, 2, 4, 5}"));
  EXPECT_THAT(result.names(InitializerRole::Parameter), SizeIs(3));
}

TEST(Cleaned, NumbersOfTheProgramAreNotTrained) {
  // `ones`, evaluated by a cleaner in a file of the current exporter.
  Classified result = classify(addTable("ones", "2,3,4", std::vector<float>(24, 1), 3, "node_mul"));
  EXPECT_THAT(result.names(InitializerRole::Parameter), UnorderedElementsAre("net.norm.weight", "net.norm.bias"));
  EXPECT_THAT(result.messages, HasSubstr("they are not trained: ones"));
}

TEST(Cleaned, WeightsOfNumberedOperationsAreNotTheProgramsNames) {
  auto named = [](const std::string &weight) {
    ModelProto model = callTwice({"val_8_weight", weight}, {"net.a.bias", "net.b.bias"}, "{5, 6, 8, 7}");
    model.mutable_graph()->mutable_node(1)->set_name("node_relu");
    return classify(model);
  };
  EXPECT_TRUE(named("linear_32_weight").find("net.b.weight"));
  EXPECT_TRUE(named("linear_weight").find("linear_weight"));
}

TEST(Cleaned, EveryLayerThatWasScaledIsNamed) {
  // Also of the last, whose result has another name.
  ModelProto model = callTwice({"linear_1_weight_fused", "linear_3_weight_fused"},
                               {"linear_1_bias_fused", "linear_3_bias_fused"}, "{5, 6, 8, 7}");
  EXPECT_THAT(classify(model).messages,
              HasSubstr("linear_1_weight_fused, linear_1_bias_fused, linear_3_weight_fused, linear_3_bias_fused"));
  model = callTwice({"net.weight_fused.weight", "net.b.weight"}, {"net.bias_fused", "net.b.bias"}, "{5, 6, 8, 7}");
  EXPECT_THAT(classify(model).messages, Not(HasSubstr("multiplied weights")));
}

TEST(Cleaned, WhatALayerAddsIsItsBiasInOneDimension) {
  // BART's `final_logits_bias`, a buffer of zeros [1, words], which onnxslim let the layer add.
  auto fuse = [](const std::string &dims) {
    ModelProto model = parseModel("<ir_version: 8, opset_import: [\"\" : 17]> g (float[2,2] x) => (float[2,3] y) "
                                  "<float[2,3] w = {1, 2, 3, 4, 5, 6}, float[" +
                                  dims + "] b = {0, 0, 0}> { y = Gemm(x, w, b) }");
    model.set_producer_name("pytorch");
    model.mutable_graph()->mutable_node(0)->set_name("/net/head/MatMul_output_0");
    renameValue(model, "w", "/net/head/MatMul_output_0_weight");
    renameValue(model, "b", "onnx::Add_85");
    return classify(model);
  };
  Classified result = fuse("1,3");
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("net.head.weight"));
  EXPECT_THAT(result.messages, HasSubstr("they are not trained: onnx::Add_85"));
  EXPECT_THAT(fuse("3").names(InitializerRole::Parameter), ElementsAre("net.head.weight", "net.head.bias"));
}
