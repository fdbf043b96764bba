//===- GuessTest.cpp - who is a parameter, where the file does not say it ------------===//

#include "TestModel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using ::onnx::NodeProto;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

namespace {
/// A number as ONNX's text format has it.
std::string list(const std::vector<float> &values) {
  std::string text;
  for (float value : values)
    text += (text.empty() ? "" : ", ") + std::to_string(value);
  return "{" + text + "}";
}

/// `rows` positions, two dimensions for each of `angles`.
std::vector<float> makeSinusoids(int rows, const std::vector<double> &angles) {
  std::vector<float> values;
  for (int row = 0; row != rows; ++row)
    for (double angle : angles) {
      values.push_back(float(std::sin(row * angle)));
      values.push_back(float(std::cos(row * angle)));
    }
  return values;
}
} // namespace

TEST(Classification, SinusoidsAreNotTrained) {
  // `nn.Parameter(sinusoids, requires_grad=False)`: the signature lists it as any parameter.
  for (bool isNoted : {true, false}) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,8,4] x) => (float[2,8,4] y)
      <float[8,4] "positions.weight" = )" +
                                  list(makeSinusoids(8, {1, 0.1})) + R"(, float[8,4] "learned.weight" = )" +
                                  list(makeSinusoids(8, {0.0001, 0.001})) + R"(> {
        h = Add(x, "positions.weight")
        y = Add(h, "learned.weight")
      })");
    if (isNoted)
      setSignature(model, {"positions.weight", "learned.weight"});
    Classified result = classify(model);
    EXPECT_THAT(result.names(InitializerRole::Constant), ElementsAre("positions.weight"));
    EXPECT_THAT(result.messages, HasSubstr("sinusoids and are not trained: positions.weight"));
    ImportOptions options;
    options.selections = {{true, "+positions.*"}};
    EXPECT_THAT(classify(model, options).names(InitializerRole::Parameter),
                testing::UnorderedElementsAre("positions.weight", "learned.weight"));
  }
}

/// A norm of module `n` by running statistics, written with plain operations or otherwise, and a layer in front of it.
static Classified classifyNorm(const std::string &more, const std::string &body) {
  return classify(parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
    g (float[4,2] x) => (float[4,3] y)
    <float[2,3] "fc.weight" = {1, 2, 3, 4, 5, 6}, float[3] "n.weight" = {1, 2, 0.5}, float[3] "n.bias" = {0.1, 0.2, 0.3},
     float[3] "n.running_mean" = {0.3, 0.2, 0.1}, float[3] "n.running_var" = {0.9, 0.8, 1.1})" +
                             more + "> { h = MatMul(x, \"fc.weight\") " + body + "}"));
}

TEST(Classification, ScalesOfFrozenNormsAreNotTrained) {
  const std::string plain = R"(r = Sqrt("n.running_var") i = Reciprocal(r) s = Mul("n.weight", i)
    m = Mul("n.running_mean", s) b = Sub("n.bias", m) t = Mul(h, s) )";
  Classified frozen = classifyNorm("", plain + "y = Add(t, b)");
  EXPECT_THAT(frozen.names(InitializerRole::Parameter), ElementsAre("fc.weight"));
  EXPECT_THAT(frozen.messages, HasSubstr("as frozen norms of detectors do"));
  // A norm's operator, and a module that holds more than a norm.
  for (const Classified &trained :
       {classifyNorm("", R"(y = BatchNormalization(h, "n.weight", "n.bias", "n.running_mean", "n.running_var"))"),
        classifyNorm(R"(, float[3] "n.gate" = {2, 3, 4})", plain + "u = Add(t, b) y = Mul(u, \"n.gate\")")}) {
    EXPECT_THAT(trained.names(InitializerRole::Parameter), testing::IsSupersetOf({"fc.weight", "n.weight", "n.bias"}));
    EXPECT_THAT(trained.messages, testing::Not(HasSubstr("frozen norms")));
  }
}

TEST(Classification, CopiesByNameAreTrainedWithAWarning) {
  auto classifyTwo = [](const std::string &other, const std::string &last) {
    return classify(parseModel(R"(
      <ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
      g (float[4,2] x) => (float[4,2] y) <float[2,2] "net.)" +
                               last + R"(.weight" = {1, 2, 3, 5}, float[2,2] "net.)" + other +
                               R"(.fc.weight" = {1, 2, 3, 4}> { h = MatMul(x, "net.)" + last +
                               R"(.weight") t = MatMul(x, "net.)" + other + R"(.fc.weight") y = Sub(h, t) })"));
  };
  Classified taught = classifyTwo("teacher", "student");
  EXPECT_THAT(taught.names(InitializerRole::Parameter), testing::SizeIs(2));
  EXPECT_THAT(taught.messages, HasSubstr("called as copies"));
  EXPECT_THAT(taught.messages, HasSubstr("--frozen='net.teacher.*'"));
  EXPECT_THAT(classifyTwo("head", "student").messages, testing::Not(HasSubstr("called as copies")));
  // A file that holds the teacher alone trains it.
  EXPECT_THAT(classifyTwo("teacher", "teacher.a").messages, testing::Not(HasSubstr("called as copies")));
}

TEST(Classification, NumberedTensorsOfTheOldExporterAreConstants) {
  // `torch.ones(6, 4).scatter_reduce(…)`: a tensor of the program's text, which the exporter evaluated.
  ModelProto model = parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
    g (float[2,2] x, int64[2,2] i) => (float[2,2] y) <float[2,2] ones = {1, 1, 1, 1}, float[2,2] "fc.weight" = {1, 2, 3, 5}> {
      h = MatMul(x, "fc.weight")
      y = ScatterElements <reduction = "mul"> (ones, i, h)
    })");
  renameValue(model, "ones", "5");
  EXPECT_THAT(classify(model).names(InitializerRole::Parameter), ElementsAre("fc.weight"));
}

TEST(Classification, NumbersThatBeganAtZeroOrOneAreNotSilent) {
  // `gates[0]` of a parameter of zeros or ones, evaluated; counts come from shapes.
  auto say = [](const std::string &name, const std::string &value) {
    ModelProto model = parseModel(R"(
      <ir_version: 8, producer_name: "pytorch", opset_import: ["" : 17]>
      g (float[3,2] x) => (float[3,2] y) <float[2,2] "a.weight" = {1, 2, 3, 4}, float gate = {)" +
                                  value + R"(}> {
        h = MatMul(x, "a.weight")
        s = Mul(h, gate)
        y = Add(x, s)
      })");
    renameValue(model, "gate", name);
    return classify(model).messages;
  };
  for (const char *value : {"0", "1", "0.25"})
    EXPECT_THAT(say("onnx::Mul_12", value), HasSubstr("they are not trained: onnx::Mul_12")) << value;
  EXPECT_EQ(say("onnx::Mul_12", "3"), "");
  EXPECT_EQ(say("/Constant_output_0", "1"), "");
}

TEST(Classification, BlocksAmongZerosAreNotStated) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[3,2] x) => (float[3,2] y) <float[2,2] cat_2 = {1, 0, 0, 2}> { y = MatMul(x, cat_2) })");
  setSignature(model, {"p", "q"},
               "b_b: BUFFER target='b' persistent=True\nc_lifted: CONSTANT_TENSOR target='lifted_tensor_0'\n");
  setFoldedFrom(model, "cat_2", "['p', 'q', 'cat', 'cat_1', 'zeros_1', 'val_3']");
  EXPECT_THAT(classify(model).messages, HasSubstr("was folded from several parameters (p, q): training it is not"));
  // Blocks of one parameter.
  model.mutable_graph()->clear_value_info();
  setFoldedFrom(model, "cat_2", "['p', 'getitem', 'getitem_1', 'cat', 'cat_1', 'zeros_1', 'val_3']");
  EXPECT_THAT(classify(model).messages, HasSubstr("joined with numbers that the program does not train"));
  // A range, a buffer and a constant of the program.
  for (const std::string other : {"'arange'", "'b'", "'lifted_tensor_0', 'clone'"}) {
    model.mutable_graph()->clear_value_info();
    setFoldedFrom(model, "cat_2", "['p', " + other + ", 'val_3']");
    EXPECT_THAT(classify(model).messages, HasSubstr("joined with numbers that the program does not train")) << other;
  }
  model.mutable_graph()->clear_value_info();
  setFoldedFrom(model, "cat_2", "['p', 'getitem', 'getitem_1', 'cat', 'cat_1', 'val_3']");
  EXPECT_THAT(classify(model).messages, testing::Not(HasSubstr("joined with numbers")));
  model.mutable_graph()->clear_value_info();
  setFoldedFrom(model, "cat_2", "['p', 'q', 'val_3']");
  EXPECT_THAT(classify(model).messages, testing::Not(HasSubstr("training it is not")));
}

TEST(Classification, WhatIndicesAndSlicesTookIsSaid) {
  auto say = [](const std::string &name, const std::string &sources) {
    return classify(makeEvaluated(name, "3,4", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, "table",
                                  "['table', " + sources + "]"))
        .messages;
  };
  const std::string said =
      "no more than what the program takes by index or slice; that is trained, and saved in its own "
      "shape: table";
  EXPECT_THAT(say("index", "'lifted_tensor_0'"), HasSubstr(said));
  EXPECT_THAT(say("slice_1", "'val_0', 'val_1'"), HasSubstr(said));
  EXPECT_THAT(say("cat", "'slice_1', 'slice_2'"), HasSubstr(said));
  EXPECT_EQ(say("permute", "'val_0'"), "");
}

TEST(Classification, ElementsInAnotherOrderAreSaid) {
  // A vector that is turned as a matrix, and pieces that are joined the other way around.
  auto say = [](const std::string &name, const std::string &dims, const std::string &sources) {
    return classify(makeEvaluated(name, dims, {1, 4, 2, 5, 3, 6}, "w", "['w', " + sources + "]")).messages;
  };
  const std::string said = "in the shape and order in which the program views, permutes or joins them";
  EXPECT_THAT(say("view_1", "6", "'view', 't'"), HasSubstr(said));
  EXPECT_THAT(say("stack", "3,2", "'getitem', 'getitem_1'"), HasSubstr(said));
  EXPECT_EQ(say("unsqueeze", "6", "'val_0'"), "");
  // `take(w, i)` reads a matrix as a vector; what is done to one else keeps its shape.
  EXPECT_THAT(say("val_3", "6", "'val_1', 'view'"), HasSubstr(said));
  EXPECT_EQ(say("val_3", "6", "'val_1', 'clone'"), "");
}

TEST(Classification, JoinedParametersAreSaid) {
  auto say = [](const std::string &sources) {
    ModelProto model = makeEvaluated("cat", "6", {1, 4, 2, 5, 3, 6}, "w", sources);
    model.mutable_graph()->clear_metadata_props();
    setSignature(model, {"w", "v"});
    return classify(model).messages;
  };
  EXPECT_THAT(say("['v', 'w']"), HasSubstr("in which the program views, permutes or joins them"));
  EXPECT_THAT(say("['v', 'w']"), HasSubstr("and saved so: v, w"));
  // Of none of the two.
  EXPECT_THAT(say("['val_1']"), testing::Not(HasSubstr("joins them")));
}

TEST(Classification, ADeviationThatMeasuresNoInputIsSaid) {
  // `self.std = nn.Parameter(…)` of a policy, and the deviation of images.
  auto say = [](const std::string &first, const std::string &second) {
    return classify(parseModel(R"(
      <ir_version: 8, producer_name: "pytorch", opset_import: ["" : 17]>
      g (float[3,2] x) => (float[3,2] y)
      <float[2,2] "a.weight" = {1, 2, 3, 4}, float[2] std = {0.5, 0.25}, float[2] mean = {1, 2}> {
        h = )" + first + R"(
        y = )" + second + R"(
      })"))
        .messages;
  };
  EXPECT_THAT(say("MatMul(x, \"a.weight\")", "Div(h, std)"), HasSubstr("by their names alone"));
  EXPECT_THAT(say("MatMul(x, \"a.weight\")", "Div(h, std)"), HasSubstr("--params=+std"));
  EXPECT_EQ(say("Sub(x, mean)", "Div(h, std)"), "");
}

TEST(Classification, WordsForBuffersAreBorneOutByValues) {
  // `self.mask = nn.Parameter(…)`, and a mask.
  auto say = [](const std::string &word, const std::string &values) {
    return classify(parseModel("<ir_version: 8, producer_name: \"pytorch\", opset_import: [\"\" : 17]> "
                               "g (float[3,4] x) => (float[3,4] y) <float[4] \"a." +
                               word + "\" = {" + values + "}> { y = Mul(x, \"a." + word + "\") }"))
        .messages;
  };
  EXPECT_THAT(say("mask", "0.5, -0.25, 0.75, 0.1"), HasSubstr("by their names alone"));
  EXPECT_THAT(say("mask", "1, 1, 1, 1"), HasSubstr("--params=+a.mask"));
  EXPECT_THAT(say("anchors", "0.5, -0.25, 0.75, 0.1"), HasSubstr("not trained: a.anchors"));
  EXPECT_EQ(say("mask", "0, 1, 1, 0"), "");
  EXPECT_EQ(say("freqs", "1, 0.1, 0.01, 0.001"), "");
  EXPECT_EQ(say("window", "0.25, 0.75, 0.75, 0.25"), "");
  EXPECT_EQ(say("anchors", "10, 13, 16, 30"), "");
  EXPECT_EQ(say("inv_freq", "0.5, -0.25, 0.75, 0.1"), "");
  // Zeros and ones that multiply are a mask, by whatever name.
  EXPECT_THAT(say("keep", "0, 1, 1, 0"), HasSubstr("are taken for buffers and not trained: a.keep"));
  EXPECT_EQ(say("keep", "1, 1, 1, 1"), "");
}

TEST(Classification, ParametersThatWereJoinedTwiceAreRefused) {
  // cat([p, q]) and stack([p[0], q[1]]) share elements, the halves of one join do not.
  auto say = [](const std::string &one, const std::string &other, const std::string &rows) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x) => (float[2,2] y) <float[2,2] )" +
                                  one + " = {1, 2, 3, 4}, float[2,2] " + other + " = {" + rows + "}> { h = MatMul(x, " +
                                  one + ") y = MatMul(h, " + other + ") }");
    setSignature(model, {"p", "q"});
    setFoldedFrom(model, one, "['p', 'q', 'cat', 'val_1']");
    setFoldedFrom(model, other, "['p', 'q', 'cat', 'val_2']");
    return importModel(model).messages;
  };
  EXPECT_THAT(say("cat", "stack", "1, 2, 7, 8"), HasSubstr("'p' is in the file twice, in 'cat' and in 'stack'"));
  EXPECT_THAT(say("slice_1", "slice_2", "5, 6, 7, 8"), testing::Not(HasSubstr("twice")));
}

TEST(Classification, AParameterInAnotherShapeIsSaid) {
  auto say = [](const std::string &name, const std::string &dims, const std::string &sources) {
    ModelProto model =
        parseModel("<ir_version: 10, opset_import: [\"\" : 20]> g (float[4,4] x) => (float[4,4] y) <float[" + dims +
                   "] " + name + " = {1, 2, 3, 4}> { y = Add(x, " + name + ") }");
    setSignature(model, {"w"});
    setOrigin(model, 0, "", "%x, %view_1");
    setFoldedFrom(model, name, "['w'" + sources + "]");
    return classify(model).messages;
  };
  EXPECT_THAT(say("view_1", "2,2", ", 'val_1', 'val_2'"),
              HasSubstr("in which the program views, permutes or joins them"));
  EXPECT_THAT(say("transpose", "2,2", ", 'view', 'val_1'"), HasSubstr("and saved so: w"));
  // A vector with dimensions of one, and what is only transposed.
  EXPECT_EQ(say("view_1", "4,1", ", 'val_1', 'val_2'"), "");
  EXPECT_EQ(say("permute", "2,2", ""), "");
}

TEST(Classification, RowsAfterAnOffsetAreNotStated) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,3,2] x) => (float[2,3,2] y) <float[3,2] embedding = {1, 2, 3, 4, 5, 6}> { y = Add(x, embedding) })");
  setSignature(model, {"positions"});
  setFoldedFrom(model, "embedding", "['positions', 'arange']");
  Classified result = classify(model);
  ASSERT_TRUE(result.find("positions")) << result.messages;
  EXPECT_TRUE(result.find("positions")->sourceRows);
  setFoldedFrom(model, "embedding", "['positions', 'arange', 'add_1']");
  model.mutable_graph()->mutable_value_info()->DeleteSubrange(0, 1);
  result = classify(model);
  ASSERT_TRUE(result.find("positions")) << result.messages;
  EXPECT_FALSE(result.find("positions")->sourceRows);
}

TEST(Classification, FoldedScalesAndExponentsOfOnesAreTrained) {
  // What a state space layer looks like when it is fresh: every number of it follows a rule.
  ModelProto model = parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[1,2,3] x) => (float[1,2,3] y, float[2,2] e)
    <float[2,1,1] W = {1, 2}, float[2] "m.conv.bias" = {0, 0}, float[1,2,1] D = {1, 1}, float[2,2] A = {0, 0.5, 0, 0.5},
     float[1,3,1] M = {1, 1, 1}, float[2,1] B = {5, 7}, float[2,2] "m.dt.weight" = {1, 2, 3, 5}> {
      c = Conv <group = 2> (x, W, "m.conv.bias")
      s = Mul(c, D)
      e = Exp(A)
      t = Transpose <perm = [0, 2, 1]> (s)
      u = Mul(t, M)
      v = Transpose <perm = [0, 2, 1]> (u)
      w = MatMul("m.dt.weight", v)
      y = Add(w, B)
    })");
  model.set_producer_name("pytorch");
  ::onnx::GraphProto &graph = *model.mutable_graph();
  const char *names[] = {"onnx::Conv_1", "", "onnx::Mul_2", "onnx::Exp_3", "onnx::Mul_4", "onnx::Add_5"};
  for (int i = 0; i != 6; ++i) {
    std::string old = graph.initializer(i).name(), now = *names[i] ? names[i] : old;
    graph.mutable_initializer(i)->set_name(now);
    for (NodeProto &node : *graph.mutable_node())
      for (std::string &input : *node.mutable_input())
        input = input == old ? now : input;
  }
  for (NodeProto &node : *graph.mutable_node())
    node.set_name("/m/" + node.op_type());
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter),
              ElementsAre("m.conv.weight", "m.conv.bias", "onnx::Mul_2", "onnx::Exp_3", "m.dt.bias", "m.dt.weight"))
      << result.messages;
  // Ones along rows may be a mask.
  EXPECT_THAT(result.names(InitializerRole::Constant), ElementsAre("onnx::Mul_4"));
}

TEST(Classification, AnExponentThatIsNoRampIsTrained) {
  for (bool isRamp : {true, false}) {
    ModelProto model = parseModel(std::string(R"(
      <ir_version: 8, opset_import: ["" : 17]>
      g (float[2,4] x) => (float[2,4] y) <float[4] A = )") +
                                  (isRamp ? "{0, -0.5, -1, -1.5}" : "{0, 0.6931472, 1.0986123, 1.3862944}") + R"(> {
        e = Exp(A)
        y = Mul(x, e)
      })");
    ::onnx::GraphProto &graph = *model.mutable_graph();
    graph.mutable_initializer(0)->set_name("onnx::Exp_1");
    graph.mutable_node(0)->set_input(0, "onnx::Exp_1");
    EXPECT_EQ(classify(model).names(InitializerRole::Parameter).empty(), isRamp);
  }
}

TEST(Classification, AnExponentThatAModuleKeepsIsTrained) {
  // PyTorch's old exporter gives names of its own to exponents that are numbers.
  auto make = [](const std::string &name, const std::string &producer = "pytorch") {
    ModelProto model = parseModel(R"(
      <ir_version: 8, opset_import: ["" : 17]>
      g (float[2,3] x) => (float[2,3] y) <float[3,3] "fc.weight" = {1,2,3,4,5,6,7,8,9}, float[1] p = {1}> {
        a = MatMul(x, "fc.weight")
        y = Pow(a, p)
      })");
    model.set_producer_name(producer);
    renameValue(model, "p", name);
    return classify(model).names(InitializerRole::Parameter);
  };
  EXPECT_THAT(make("pool.p"), testing::UnorderedElementsAre("fc.weight", "pool.p"));
  // Of the root module.
  EXPECT_THAT(make("p"), testing::UnorderedElementsAre("fc.weight", "p"));
  EXPECT_THAT(make("onnx::Pow_7"), ElementsAre("fc.weight"));
  for (const char *name : {"pool.p", "p"})
    EXPECT_THAT(make(name, "other"), ElementsAre("fc.weight"));
}

TEST(Classification, ParametersWithNamesTellWhereAModuleIs) {
  // The program calls `self.model.decoder` itself, so that the scopes lack `model`.
  for (bool isCopied : {false, true}) {
    ModelProto model = parseModel(R"(
      <ir_version: 8, opset_import: ["" : 17]>
      g (float[2,2] x) => (float[2,2] y)
      <float[2,2] W = {1, 2, 3, 5}, float[2] "net.model.decoder.fc.bias" = {0, 0}, float[2,2] V = {2, 7, 1, 8}> {
        a = MatMul(x, W)
        b = Add("net.model.decoder.fc.bias", a)
        y = MatMul(b, V)
      })");
    model.set_producer_name("pytorch");
    ::onnx::GraphProto &graph = *model.mutable_graph();
    graph.mutable_initializer(0)->set_name("onnx::MatMul_7");
    graph.mutable_node(0)->set_input(1, "onnx::MatMul_7");
    graph.mutable_node(0)->set_name("/net/decoder/fc/MatMul");
    graph.mutable_node(1)->set_name("/net/decoder/fc/Add");
    graph.mutable_initializer(2)->set_name("onnx::MatMul_9");
    graph.mutable_node(2)->set_input(1, "onnx::MatMul_9");
    graph.mutable_node(2)->set_name("/net/head/MatMul");
    if (isCopied) {
      graph.mutable_initializer(1)->set_name("net.other.bias");
      NodeProto *copy = graph.add_node();
      copy->set_op_type("Identity");
      copy->add_input("net.other.bias");
      copy->add_output("net.model.decoder.fc.bias");
    }
    Classified result = classify(model);
    EXPECT_THAT(result.names(InitializerRole::Parameter),
                ElementsAre("net.model.decoder.fc.weight", "net.model.decoder.fc.bias", "net.head.weight"))
        << result.messages;
  }
}

TEST(Classification, TheUserOverrules) {
  ModelProto model = makeLinear();
  ImportOptions options;
  options.selections = {{false, "w*"}};
  options.renames.emplace_back("b", "fc.bias");
  Classified result = classify(model, options);
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("fc.bias"));
  EXPECT_THAT(result.names(InitializerRole::Constant), ElementsAre("w"));
  options.selections = {{false, "nothing.*"}};
  EXPECT_THAT(classify(model, options).messages, HasSubstr("no initializer matches 'nothing.*'"));
  EXPECT_EQ(classify(model, options).failure, FailureKind::Usage);
}

TEST(Classification, FourierMatricesAreNoWeights) {
  // cos(2 pi j k / 6); the other matrix is a weight of the same shape.
  ModelProto model = parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2,6] x) => (float[2,6] y)
    <float[6,6] C = {1,1,1,1,1,1, 1,0.5,-0.5,-1,-0.5,0.5, 1,-0.5,-0.5,1,-0.5,-0.5,
                     1,-1,1,-1,1,-1, 1,-0.5,-0.5,1,-0.5,-0.5, 1,0.5,-0.5,-1,-0.5,0.5},
     float[6,6] W = {1,2,1,1,3,1, 1,0.5,-0.5,-1,-0.5,0.5, 1,-0.5,-0.5,1,-0.5,-0.5,
                     1,-1,1,-1,1,-1, 1,-0.5,-0.5,1,-0.5,-0.5, 1,0.5,-0.5,-1,-0.5,0.5}> {
      h = MatMul(x, C)
      y = MatMul(h, W)
    })");
  EXPECT_THAT(classify(model).names(InitializerRole::Parameter), ElementsAre("W"));
}

TEST(Classification, ScalesOfOneModuleThatBeganEqualAreTakenApart) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,2,3] x) => (float[2,2,3] y) <float[2,1] unsqueeze = {0.5, 0.5}> {
      h = Mul(x, unsqueeze)
      y = Mul(h, unsqueeze)
    })");
  setSignature(model, {"m.scale_1", "m.scale_2"});
  setFoldedFrom(model, "unsqueeze", "['m.scale_1']");
  setOrigin(model, 0, "m", "%x, %unsqueeze");
  setOrigin(model, 1, "m", "%mul, %unsqueeze_1");
  EXPECT_THAT(classify(model).names(InitializerRole::Parameter), ElementsAre("m.scale_1", "m.scale_2"));
}

TEST(Classification, VectorsOfFilesWithoutNamesAdjustLayers) {
  // Keras on PyTorch converts each parameter before it is read, and the exporter evaluates all. What is subtracted is a
  // running mean, and what shifts the data themselves describes them.
  const std::string text = R"(<ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
    g (float[2,4] x) => (float[2,3] y)
      <float[4] "onnx::Add_1" = {5, 7, 11, 2}, float[4,3] "onnx::MatMul_2" = {1, 2, 3, 5, 7, 9, 2, 4, 1, 8, 6, 7},
       float[1,3] "onnx::Add_3" = {0, 0, 0}, float[3] "onnx::Sub_4" = {3, 1, 4}, float[3] "onnx::Mul_5" = {1, 5, 9},
       float[3] NAME = {2, 6, 5}> {
      a = Add(x, "onnx::Add_1")
      b = MatMul(a, "onnx::MatMul_2")
      c = Cast<to = 1>(b)
      d = Add(c, "onnx::Add_3")
      e = Sub(d, "onnx::Sub_4")
      f = Mul(e, "onnx::Mul_5")
      shape = Constant<value_ints = [1, 3]>()
      g = Reshape(NAME, shape)
      y = Add(f, g)
    })";
  auto classifyWith = [&](const std::string &name) {
    std::string named = text;
    for (size_t at = named.find("NAME"); at != std::string::npos; at = named.find("NAME"))
      named.replace(at, 4, '"' + name + '"');
    return classify(parseModel(named));
  };
  Classified whole = classifyWith("onnx::Add_6");
  EXPECT_THAT(whole.names(InitializerRole::Parameter),
              UnorderedElementsAre("onnx::MatMul_2", "onnx::Add_3", "onnx::Mul_5", "onnx::Add_6"));
  EXPECT_THAT(whole.messages, HasSubstr("they are trained: onnx::Add_3, onnx::Mul_5, onnx::Add_6"));
  EXPECT_THAT(whole.messages, HasSubstr("they are not trained: onnx::Add_1, onnx::Sub_4"));
  Classified named = classifyWith("net.shift");
  EXPECT_THAT(named.names(InitializerRole::Parameter), UnorderedElementsAre("onnx::MatMul_2", "net.shift"));
}

TEST(Classification, VectorsOfConstantNodesAdjustLayers) {
  // ndonnx chooses between two products by the sizes of what it multiplies.
  Classified result = classify(parseModel(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,4] x) => (float[2,3] y) <bool c = {1}> {
      Constant_0_output = Constant<value = float[4,3] {1, 2, 3, 5, 7, 9, 2, 4, 1, 8, 6, 7}>()
      a = If<then_branch = yes () => (float[2,3] m) { m = MatMul(x, Constant_0_output) },
             else_branch = no () => (float[2,3] n) { n = MatMul(x, Constant_0_output) }>(c)
      Constant_1_output = Constant<value = float[3] {2, 6, 5}>()
      b = Add(a, Constant_1_output)
      Constant_2_output = Constant<value = float[3] {3, 1, 4}>()
      y = Sub(b, Constant_2_output)
    })"));
  EXPECT_THAT(result.names(InitializerRole::Parameter), UnorderedElementsAre("Constant_0_output", "Constant_1_output"));
  EXPECT_THAT(result.messages, HasSubstr("they are trained: Constant_1_output"));
  EXPECT_THAT(result.messages, HasSubstr("they are not trained: Constant_2_output"));
}

TEST(Classification, NumbersOfScikitLearnsScalersAreNotTrained) {
  Classified result = classify(parseModel(R"(<ir_version: 8, opset_import: ["" : 17], producer_name: "skl2onnx">
    g (float[2,2] X) => (float[2,2] y)
      <float[2] Mu_Mulcst = {2, 7}, float[2] Ad_Addcst1 = {5, 3}, float[2,2] coefficient = {1, 5, 2, 3}, float[1,2] intercepts = {0, 0}> {
      a = Mul(X, Mu_Mulcst)
      b = Add(a, Ad_Addcst1)
      c = MatMul(b, coefficient)
      y = Add(c, intercepts)
    })"));
  EXPECT_THAT(result.names(InitializerRole::Parameter), UnorderedElementsAre("coefficient", "intercepts"));
  EXPECT_THAT(result.messages, HasSubstr("they are not trained: Mu_Mulcst, Ad_Addcst1"));
}

TEST(Classification, NodesThatOnnxruntimeFusedAreOfTheirModules) {
  // It appends what it did, in recent versions without a slash at the end; a module may be called so itself.
  auto nameOf = [](const std::string &node) {
    ModelProto model = parseModel(R"(
      <ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
      g (float[2,3] x) => (float[2,4] y) <float[3,4] "onnx::MatMul_9" = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}, float[4] "o.bias" = {1, 2, 3, 4}> {
        y = Gemm(x, "onnx::MatMul_9", "o.bias")
      })");
    model.mutable_graph()->mutable_node(0)->set_name(node);
    return classify(model).names(InitializerRole::Parameter);
  };
  for (const char *node : {"/o/MatMul/MatMulAddFusion", "/o/MatMul/MatMulAddFusion/", "/o/MatMul"})
    EXPECT_THAT(nameOf(node), UnorderedElementsAre("o.weight", "o.bias")) << node;
  EXPECT_THAT(nameOf("/headFusion/MatMul"), UnorderedElementsAre("headFusion.weight", "o.bias"));
}

TEST(Classification, AWeightIsOfTheLayerWhoseBiasIsAdded) {
  // `F.linear(x, self.qkv.weight, self.qkv.bias)` in the attention's own code, as torchvision's Swin writes it.
  auto namesWith = [](const std::string &bias, const std::string &other) {
    ModelProto model = parseModel(R"(
      <ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
      g (float[2,1,3] x) => (float[2,1,4] y)
        <float[3,4] "onnx::MatMul_9" = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}, float[4] ")" +
                                  bias + R"(" = {1, 2, 3, 4}, float[4] ")" + other + R"(" = {4, 1, 3, 2}> {
        a = MatMul(x, "onnx::MatMul_9")
        b = Add(")" + bias + R"(", a)
        y = Mul(b, ")" + other + R"(")
      })");
    for (auto &node : *model.mutable_graph()->mutable_node())
      node.set_name("/attn/" + node.op_type());
    return classify(model).names(InitializerRole::Parameter);
  };
  EXPECT_THAT(namesWith("attn.qkv.bias", "attn.scale"),
              UnorderedElementsAre("attn.qkv.weight", "attn.qkv.bias", "attn.scale"));
  // A bias of another module, and of a layer that has its weight.
  EXPECT_THAT(namesWith("norm.bias", "attn.scale"), UnorderedElementsAre("attn.weight", "norm.bias", "attn.scale"));
  EXPECT_THAT(namesWith("attn.norm.bias", "attn.norm.weight"),
              UnorderedElementsAre("attn.weight", "attn.norm.bias", "attn.norm.weight"));
}

TEST(Classification, RemovedDropoutIsNamedOnce) {
  // onnxruntime leaves the types of both results of a `Dropout` that it removed.
  Classified result = classify(parseModel(R"(<ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
    g (float[2,3] x) => (float[2,3] y)
      <float[3] "a.weight" = {1, 2, 3}, float[2,3] "/d/Dropout_output_0", bool[2,3] "/d/Dropout_output_1",
       float[2,3] "/e/Dropout_output_0"> {
      y = Mul(x, "a.weight")
    })"));
  EXPECT_THAT(result.messages, HasSubstr("trained without them: d, e"));
}
