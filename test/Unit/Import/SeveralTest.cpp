//===- SeveralTest.cpp - parameters of which the file holds several functions --------------===//
//
// Values are PyTorch's, rounded to f32; `tools/dev zoo --only=report-normal-log-prob` and its neighbours are the real
// files.
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
using testing::FloatNear;
using testing::HasSubstr;
using testing::Not;

/// `Normal(u, s.exp()).log_prob(x)` of three samples, s = (0.5, -1): log(exp(s)) and 2 · exp(s)², of which row 1 of the
/// second begins with `second`.
static ModelProto makeLogProbability(const std::string &second) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[3,2] x) => (float[3,2] y)
    <float[3,2] log = {0.5, -1.0, 0.5, -1.0, 0.5, -1.0},
     float[3,2] mul = {5.4365635, 0.27067056, )" +
                                second + R"(, 0.27067056, 5.4365635, 0.27067056}> {
      a = Div(x, mul)
      y = Sub(a, log)
    })");
  setSignature(model, {"s"});
  setFoldedFrom(model, "log", "['exp', 'expand', 's', 'val_1', 'val_2']");
  setFoldedFrom(model, "mul", "['exp', 'expand', 'pow_1', 's', 'scalar_tensor_default', 'val_1', 'val_17', 'val_2']");
  return model;
}

TEST(Several, AFunctionThatIsRepeatedForEachSampleIsInverted) {
  Classified result = classify(makeLogProbability("5.4365635"));
  EXPECT_THAT(result.messages, HasSubstr("taken out of what the exporter evaluated"));
  EXPECT_THAT(result.messages, Not(HasSubstr("error")));
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("s"));
  EXPECT_THAT(result.values["s"], ElementsAre(FloatNear(0.5f, 1e-6f), FloatNear(-1.0f, 1e-6f)));
}

TEST(Several, AFunctionOfATokenThatIsRepeatedIsInverted) {
  // `token.exp().expand(3, -1)`: the rows are not the token, but its image.
  auto make = [](const std::string &sources) {
    return classify(makeEvaluated("expand", "3,2", {1, 2, 1, 2, 1, 2}, "token", sources));
  };
  Classified result = make("['exp', 'token', 'val_1']");
  EXPECT_THAT(result.messages, HasSubstr("does not tell everything about them: token"));
  EXPECT_THAT(result.values["token"], ElementsAre(FloatNear(0, 1e-6f), FloatNear(std::log(2.0f), 1e-6f)));
  // Times a number that is gone, and by a function that has no inverse.
  EXPECT_THAT(make("['mul', 'token', 'val_1']").messages, HasSubstr("folded from parameter 'token' and changed by"));
  for (const char *name : {"relu", "cumsum", "mean", "flip", "silu"})
    EXPECT_THAT(make("['" + std::string(name) + "', 'token', 'val_1']").messages,
                HasSubstr("folded from parameter 'token' and changed by"))
        << name;
  EXPECT_THAT(make("['cat', 'neg', 'token', 'val_1']").messages, HasSubstr("changed by 'neg'"));
  EXPECT_EQ(make("['token', 'val_1']").messages, "");
  // Positions are not computed by these.
  EXPECT_THAT(classify(makeEvaluated("index", "3,2", {1, 2, 3, 4, 1, 2}, "table", "['tanh', 'table']")).messages,
              HasSubstr("folded from parameter 'table' and changed by 'tanh'"));
}

TEST(Several, AProductWithABufferIsNotTheWeight) {
  // `linear(coordinates, weight, bias)`, of which the exporter evaluated the product.
  auto say = [](const std::string &sources) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x) => (float[2,2] y) <float[2,2] val_1 = {1, 2, 3, 4}, float[2] b = {1, 2}> {
        linear = Add(val_1, b)
        y = Mul(x, linear)
      })");
    setSignature(model, {"w", "b"}, "b_places: BUFFER target='places' persistent=False\n");
    setFoldedFrom(model, "val_1", sources);
    setOperation(model, 0, "linear", 1, "linear.default", "%b_places, %p_w, %p_b");
    return classify(model).messages;
  };
  EXPECT_THAT(say("['places', 'val_0', 'w']"), HasSubstr("folded from parameter 'w' and computed of 'places', too"));
  EXPECT_THAT(say("['arange', 'view', 'val_0', 'w']"), HasSubstr("computed of 'arange', too"));
  EXPECT_THAT(say("['val_0', 'w']"), Not(HasSubstr("folded from parameter")));
}

TEST(Several, AFunctionThatIsMovedIsOfTheParametersOwnShape) {
  auto make = [](const std::string &name, const std::string &dims, const std::string &sources) {
    return classify(makeEvaluated(name, dims, {1, 2, 4, 8, 16, 32}, "w", sources));
  };
  auto has = [](float number) { return FloatNear(std::log(number), 1e-6f); };
  Classified turned = make("permute", "2,3", "['exp', 'w']");
  EXPECT_EQ(turned.messages, "");
  ASSERT_TRUE(turned.find("w"));
  EXPECT_THAT(turned.find("w")->dims, ElementsAre(3, 2));
  EXPECT_THAT(turned.values["w"], ElementsAre(has(1), has(8), has(2), has(16), has(4), has(32)));
  EXPECT_THAT(make("permute", "1,2,3", "['exp', 'w']").messages, HasSubstr("their own is not"));
  EXPECT_THAT(make("view", "2,3", "['exp', 'w']").messages, HasSubstr("their own is not"));
  EXPECT_THAT(make("select", "6", "['exp', 'w']").messages, HasSubstr("takes by index or slice"));
}

TEST(Several, AFunctionOfAPartOfAJoinIsNoneOfTheWhole) {
  // `cat([w, -w])`, `stack([w, w], 1)`
  auto say = [](const std::string &name, const std::string &sources, const std::vector<float> &values) {
    return classify(makeEvaluated(name, "4,2", values, "w", sources)).messages;
  };
  EXPECT_THAT(say("cat", "['neg', 'w']", {1, 2, 3, 4, -1, -2, -3, -4}), HasSubstr("changed by 'neg'"));
  EXPECT_THAT(say("stack", "['w']", {1, 1, 2, 2, 3, 3, 4, 4}), HasSubstr("some of its elements several times"));
  EXPECT_THAT(say("stack", "['w']", {1, 1, 1, 1, 1, 1, 1, 1}), HasSubstr("one value everywhere"));
  // Next to w itself, -w is no constant.
  auto sayNext = [](const std::string &sources) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[4,4] x) => (float[6,4] y)
      <float[2,4] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[4,4] cat = {1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, -4, -5, -6, -7, -8}> {
        a = MatMul(cat, x)
        b = MatMul(w, x)
        y = Concat<axis = 0>(a, b)
      })");
    setSignature(model, {"w"});
    setFoldedFrom(model, "cat", sources);
    return classify(model).messages;
  };
  EXPECT_THAT(sayNext("['neg', 'w']"), HasSubstr("is in the file twice"));
  EXPECT_THAT(sayNext("['w']"), Not(HasSubstr("error"))); // numbers that the program knows
}

TEST(Several, RowsThatDifferAreNoFunctionOfOneParameter) {
  EXPECT_THAT(classify(makeLogProbability("5.5")).messages, HasSubstr("is in the file twice"));
}

TEST(Several, AFunctionWithANumberInsideIsComputedNextToItsParameter) {
  // exp(-2 s); with exp(-2.1234567 s) nothing tells that it is one.
  auto make = [](const std::string &image) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[4] x) => (float[4] y) <float[4] s = {0.5, -0.25, 0.125, -1.0}, float[4] exp = {)" +
                                  image + R"(}> {
        a = Mul(x, exp)
        y = Add(a, s)
      })");
    setSignature(model, {"s"});
    setFoldedFrom(model, "exp", "['mul', 's', 'scalar_tensor_default', 'val_1']");
    return classify(model);
  };
  Classified result = make("0.36787945, 1.6487213, 0.77880079, 7.3890562");
  EXPECT_EQ(result.messages, "");
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("s"));
  EXPECT_THAT(make("0.34586, 1.70038, 0.76688, 8.36").messages, HasSubstr("is in the file twice"));
}

/// Three numbers of one softmax, read one by one; `last` completes them to one.
static ModelProto makeMixture(const std::string &last, const std::string &sources) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[4] x) => (float[4] y) <float select = {0.2}, float select_1 = {0.5}, float select_2 = {)" +
                                last + R"(}> {
      a = Mul(x, select_1)
      b = Mul(a, select)
      y = Mul(b, select_2)
    })");
  setSignature(model, {"w"});
  for (const char *name : {"select", "select_1", "select_2"})
    setFoldedFrom(model, name, sources);
  return model;
}

TEST(Several, NumbersOfASoftmaxAreOneParameter) {
  Classified result = classify(makeMixture("0.3", "['softmax', 'val_0', 'w']"));
  EXPECT_THAT(result.messages, HasSubstr("taken out of what the exporter evaluated"));
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("w"));
  EXPECT_THAT(result.values["w"],
              ElementsAre(FloatNear(-1.609438f, 1e-5f), FloatNear(-0.693147f, 1e-5f), FloatNear(-1.203973f, 1e-5f)));
}

TEST(Several, AnEntropyIsComputedOfWhatASoftmaxGaveBack) {
  auto make = [](float entropy) {
    ModelProto model = makeMixture("0.3", "['softmax', 'val_0', 'w']");
    ::onnx::GraphProto &graph = *model.mutable_graph();
    ::onnx::TensorProto &number = *graph.add_initializer();
    number.set_name("mul_4");
    number.set_data_type(::onnx::TensorProto::FLOAT);
    number.add_float_data(entropy);
    graph.mutable_node(2)->set_output(0, "c");
    ::onnx::NodeProto &node = *graph.add_node();
    node.set_op_type("Add");
    node.add_input("c");
    node.add_input("mul_4");
    node.add_output("y");
    setFoldedFrom(model, "mul_4", "['log', 'mul_3', 'softmax', 'sum_1', 'val_6', 'w']");
    return classify(model);
  };
  Classified result = make(-0.10296530f); // a tenth of it
  EXPECT_THAT(result.messages, testing::Not(HasSubstr("error")));
  EXPECT_THAT(result.messages, testing::Not(HasSubstr("is in the file twice")));
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("w"));
  EXPECT_THAT(result.replaced, testing::Contains(testing::Key("mul_4")));
  EXPECT_THAT(make(-0.1234567f).messages, HasSubstr("is in the file twice"));
}

TEST(Several, NumbersThatAreNoWholeSoftmaxAreRefused) {
  EXPECT_THAT(classify(makeMixture("0.25", "['softmax', 'val_0', 'w']")).messages, HasSubstr("is in the file twice"));
  EXPECT_THAT(classify(makeMixture("0.3", "['add', 'div', 'relu', 'sum_1', 'val_0', 'w']")).messages,
              HasSubstr("is in the file twice"));
}

TEST(Several, PenaltiesOnProductsAreComputed) {
  // w = (1, 2; 0.5, -1; 2, 0): w·wᵀ − 1 has squares that add up to 39.5625 over rows, 38.5625 over columns.
  auto make = [](const std::string &number, const std::string &sources) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2] x) => (float[3] y) <float[3,2] w = {1, 2, 0.5, -1, 2, 0}, float mul = {)" +
                                  number + R"(}> {
        a = MatMul(w, x)
        y = Add(a, mul)
      })");
    setSignature(model, {"w"});
    setFoldedFrom(model, "mul", "[" + sources + ", 'val_1', 'w']");
    return classify(model).messages;
  };
  const std::string squares = "'_to_copy', 'arange', 'eq', 'matmul', 'permute', 'pow_2', 'sub', 'sum_1', 'unsqueeze'";
  EXPECT_EQ(make("3.95625", squares), "");
  EXPECT_EQ(make("3.85625", squares), "");
  EXPECT_THAT(make("4.2137", squares), HasSubstr("is in the file twice"));
  EXPECT_THAT(make("3.95625", squares + ", 'erf'"), HasSubstr("is in the file twice"));
}

TEST(Several, PartsThatWereTurnedAreSaid) {
  // `linear(x, w[:2]) + linear(x, w[2:])`, decomposed: the halves are in the file as products read them.
  auto make = [](const std::string &first, const std::string &second) {
    ModelProto model = parseModel(
        "<ir_version: 10, opset_import: [\"\" : 20]> g (float[2,3] x) => (float[2,2] y) <float[3,2] " + first +
        " = {1, 2, 3, 4, 5, 6}, float[3,2] " + second + " = {7, 8, 9, 10, 11, 12}> { a = MatMul(x, " + first +
        ") b = MatMul(x, " + second + ") y = Add(a, b) }");
    setSignature(model, {"w"});
    setFoldedFrom(model, first, "['slice_1', 'w']");
    setFoldedFrom(model, second, "['slice_2', 'w']");
    return classify(model);
  };
  Classified turned = make("permute", "permute_1");
  EXPECT_THAT(turned.names(InitializerRole::Parameter), ElementsAre("w@permute", "w@permute_1")) << turned.messages;
  EXPECT_THAT(turned.messages, HasSubstr("their own is not; they are trained alike, and saved so: w"));
  EXPECT_THAT(make("slice_1", "slice_2").messages, Not(HasSubstr("saved so")));
}

TEST(Several, WhatACleanerTookTheNoteOfIsSaid) {
  // A group norm in steps: the shape is no parameter, and the scale was evaluated of one of the two.
  auto make = [](bool isNoted) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x) => (float[2,2,1] y) <int64[3] val_13 = {0, 2, -1}, float[2,1] val_30 = {1, 1}> {
        r = Reshape(x, val_13)
        y = Mul(r, val_30)
      })");
    setSignature(model, {"g.weight", "g.bias"});
    for (int node : {0, 1})
      setOrigin(model, node, "g", "%x, %p_g_weight, %p_g_bias");
    if (isNoted)
      setFoldedFrom(model, "val_30", "['g.weight', 'val_29']");
    return classify(model).messages;
  };
  EXPECT_THAT(make(false), HasSubstr("'val_30' is read in module 'g' and could be any of g.weight, g.bias there: the "
                                     "exporter evaluated it, and a cleaner removed the note"));
  EXPECT_THAT(make(false), Not(HasSubstr("val_13")));
  EXPECT_THAT(make(true), Not(HasSubstr("could be any of")));
}

TEST(Several, EvaluatedTensorsWithoutANoteAreSaid) {
  // Of a transposed weight that is tied to an embedding: a tool removed value_info, and the notes with it.
  auto make = [](const std::string &values, bool isNoted) {
    ModelProto model =
        parseModel("<ir_version: 10, opset_import: [\"\" : 20]> g (float[2,2] x, int64[2] i) => (float[2,2] y) "
                   "<float[2,2] e = {1, 2, 3, 4}, float[2,2] val_34 = {" +
                   values + "}> { h = Gather(e, i) s = Add(h, x) y = MatMul(s, val_34) }");
    setSignature(model, {"e"});
    if (isNoted)
      setFoldedFrom(model, "val_34", "['arange', 'val_1']");
    return classify(model).messages;
  };
  EXPECT_THAT(make("1, 3, 2, 5", false), HasSubstr("perhaps from parameters; they are not trained: val_34"));
  // One number throughout is one of the program; what was made of constants is noted so.
  EXPECT_THAT(make("2, 2, 2, 2", false), Not(HasSubstr("not trained")));
  EXPECT_THAT(make("1, 3, 2, 5", true), Not(HasSubstr("not trained")));
}
