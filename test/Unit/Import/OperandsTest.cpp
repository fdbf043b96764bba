//===- OperandsTest.cpp - learned operands of operations that take steps -------------------===//
//
// As PyTorch's current exporter writes attention and `lerp`; `tools/dev zoo --only='programs/learned-*'` has the real
// files.
//
//===----------------------------------------------------------------------===//

#include "TestModel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// Attention of two queries, which were evaluated times a half, as `values` of `dims`; `operand`: what the program
/// calls them; `sources`: what they were evaluated from.
static ModelProto makeAttention(const std::string &dims, const std::string &values, const std::string &operand,
                                const std::string &sources) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,1,2,3] a, float[2,1,3,2] v) => (float[2,1,2,2] y)
    <float[)" + dims + "] val_24 = {" +
                                values + R"(}, float[1] val_26 = {0.5}> {
      val_27 = Mul(a, val_26)
      val_28 = MatMul(val_24, val_27)
      y = MatMul(val_28, v)
    })");
  setSignature(model, {"q"}, "k: USER_INPUT\nv: USER_INPUT\n");
  for (int node : {0, 1, 2})
    setOperation(model, node, "attention", 1, "scaled_dot_product_attention.default", "%" + operand + ", %k, %v");
  setFoldedFrom(model, "val_24", sources);
  setFoldedFrom(model, "val_26", "['q', 'val_0', 'val_25']");
  return model;
}

TEST(Operands, ALearnedQueryIsTakenOutOfItsScaledForm) {
  Classified result =
      classify(makeAttention("2,1,2,2", "0.5, 1, 1.5, 2, -0.5, -1, -1.5, -2", "p_q", "['q', 'val_0', 'k']"));
  EXPECT_THAT(result.messages, Not(HasSubstr("error")));
  EXPECT_THAT(result.messages, Not(HasSubstr("scaled")));
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("q"));
  EXPECT_THAT(result.values["q"], ElementsAre(1, 2, 3, 4, -1, -2, -3, -4));
  EXPECT_THAT(result.replaced, testing::Contains(testing::Key("val_24")));
}

TEST(Operands, AQueryThatIsRepeatedForEachSampleIsOne) {
  Classified result =
      classify(makeAttention("2,1,2,2", "0.5, 1, 1.5, 2, 0.5, 1, 1.5, 2", "expand", "['q', 'expand', 'val_0', 'k']"));
  EXPECT_THAT(result.messages, Not(HasSubstr("error")));
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("q"));
  EXPECT_THAT(result.values["q"], ElementsAre(1, 2, 3, 4));
}

TEST(Operands, AQueryOfAnotherValueStaysAsItIs) {
  // The operation reads a value that the tensor was not made of.
  EXPECT_THAT(classify(makeAttention("2,1,2,2", "0.5, 1, 1.5, 2, 1, 2, 3, 4", "linear", "['q', 'val_0']")).messages,
              HasSubstr("perhaps scaled by the operation that reads it"));
}

/// `lerp(x, y, w)`, in f32, with a factor of y − x and another of what is taken from y.
static ModelProto makeMixture(const std::string &rest, const std::string &operand, const std::string &sources) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[3,2] x, float[3,2] y) => (float[3,2] z)
    <float[2] weight_0 = {0.25, 0.75}, float[2] tmp_4 = {)" +
                                rest + R"(}, bool[2] tmp = {1, 0}> {
      diff = Sub(y, x)
      tmp_1 = Mul(weight_0, diff)
      tmp_2 = Add(x, tmp_1)
      tmp_5 = Mul(diff, tmp_4)
      tmp_6 = Sub(y, tmp_5)
      z = Where(tmp, tmp_2, tmp_6)
    })");
  setSignature(model, {"w"}, "x: USER_INPUT\ny: USER_INPUT\n");
  for (int node = 0; node != 6; ++node)
    setOperation(model, node, "lerp", 1, "lerp.Tensor", "%x, %y, %" + operand);
  setFoldedFrom(model, "weight_0", "['w'" + sources + "]");
  setFoldedFrom(model, "tmp_4", "['w', 'const_3', 'weight_0'" + sources + "]");
  setFoldedFrom(model, "tmp", "['w', 'const', 'weight_0'" + sources + "]");
  return model;
}

TEST(Operands, BothFactorsOfAMixtureAreOneParameter) {
  Classified result = classify(makeMixture("0.75, 0.25", "p_w", ""));
  EXPECT_THAT(result.messages, Not(HasSubstr("error")));
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("w"));
  EXPECT_THAT(result.values["w"], ElementsAre(0.25f, 0.75f));
  // Of what a function made of it, the function is inverted.
  result = classify(makeMixture("0.75, 0.25", "sigmoid", ", 'sigmoid'"));
  EXPECT_THAT(result.messages, Not(HasSubstr("error")));
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("w"));
  EXPECT_THAT(result.values["w"],
              ElementsAre(testing::FloatNear(-1.0986123f, 1e-6f), testing::FloatNear(1.0986123f, 1e-6f)));
}

TEST(Operands, FactorsThatDoNotMakeOneAreNoMixture) {
  EXPECT_THAT(classify(makeMixture("0.75, 0.5", "p_w", "")).messages, HasSubstr("is in the file twice"));
}

/// A parameter, and what another operation made of its shape or of its numbers.
static ModelProto makeNext(const std::string &name, const std::string &number) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2] x) => (float[2] y) <float[2] q = {2, 3}, float[2] )" +
                                name + " = {" + number + ", " + number + R"(}> {
      a = Add(x, )" + name + R"()
      y = Mul(a, q)
    })");
  setSignature(model, {"q"}, "x: USER_INPUT\n");
  setFoldedFrom(model, name, "['q', 'val_0']");
  setOperation(model, 0, "add", 1, "add.Tensor", "%x, %" + name);
  setOperation(model, 1, "mul", 1, "mul.Tensor", "%add, %p_q");
  return model;
}

TEST(Operands, WhatIsMadeOfAShapeIsConstant) {
  for (const char *name : {"zeros_like", "new_zeros_1"}) {
    Classified result = classify(makeNext(name, "0"));
    EXPECT_EQ(result.messages, "") << name;
    EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("q")) << name;
    EXPECT_THAT(result.names(InitializerRole::Constant), ElementsAre(name));
  }
  EXPECT_THAT(classify(makeNext("special_entr", "0.5")).messages, HasSubstr("is in the file twice"));
}

TEST(Operands, AQueryOfAnotherShapeIsAGuess) {
  // Viewed as heads before it was repeated: the parameter's own shape is not in the file.
  Classified result = classify(makeAttention("2,1,2,2", "0.5, 1, 1.5, 2, 0.5, 1, 1.5, 2", "expand",
                                             "['q', 'expand', 'transpose', 'val_0', 'view', 'k']"));
  EXPECT_TRUE(result.unfolded["q"].isAssumed);
  EXPECT_THAT(result.messages, HasSubstr("q"));
  result = classify(makeAttention("2,1,2,2", "0.5, 1, 1.5, 2, 0.5, 1, 1.5, 2", "expand", "['q', 'expand', 'val_0']"));
  EXPECT_FALSE(result.unfolded["q"].isAssumed);
}

/// Attention whose mask was evaluated as `mask`, called `name`; `guards`: the exporter handles rows that see no key.
static Classified makeMasked(const std::string &name, bool guards) {
  ModelProto model = parseModel(
      R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[1,1,2,2] s, float[1,1,2,2] v) => (float[1,1,2,2] y)
    <float[2,2] )" +
      name + R"( = {-3.4028235e38, -3.4028235e38, 0, -3.4028235e38}, float zero = {0}, float[2,2] w = {1, 2, 3, 4}> {
      a = MatMul(s, w)
      b = Add(a, )" +
      name + R"()
      c = Softmax(b)
      d = IsNaN(c)
      e = Where(d, zero, c)
      y = MatMul(e, v)
    })");
  setSignature(model, {"w"}, "s: USER_INPUT\nv: USER_INPUT\n");
  for (int node = 1; node != 6; ++node)
    if (guards || node != 3)
      setOperation(model, node, "attention", 1, "scaled_dot_product_attention.default", "%linear, %k, %v, %gt");
  setFoldedFrom(model, name, "['arange', 'gt', 'val_41']");
  return classify(model);
}

TEST(Operands, RowsOfAConstantMaskThatSeeNoKeyAreHidden) {
  Classified result = makeMasked("val_43", true);
  EXPECT_EQ(result.messages, "");
  EXPECT_THAT(result.names(InitializerRole::Constant), testing::Contains("val_43@hidden"));
  // A mask of numbers that the program adds, and attention without a guard, stay as they are.
  EXPECT_THAT(makeMasked("masked_fill", true).names(InitializerRole::Constant), testing::Contains("masked_fill"));
  EXPECT_THAT(makeMasked("val_43", false).names(InitializerRole::Constant), testing::Contains("val_43"));
}

TEST(Operands, AFirstStateIsNoPartOfARecurrentLayersWeights) {
  auto make = [](const std::string &operands) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,1,1] x) => (float[2,1,1,2] y)
      <float[1,2,1] val_1 = {1, 2}, float[1,2,2] val_2 = {1, 2, 3, 4}, float[1,4] val_3 = {1, 2, 3, 4},
       float[1,1,2] clone = {5, 6}> {
        y, last = RNN<hidden_size = 2>(x, val_1, val_2, val_3, "", clone)
      })");
    setSignature(model, {"h", "n.weight_ih_l0", "n.weight_hh_l0", "n.bias_ih_l0", "n.bias_hh_l0"}, "x: USER_INPUT\n");
    setOperation(model, 0, "rnn", 1, "rnn_tanh.input", operands);
    setFoldedFrom(model, "val_1", "['h', 'n.weight_ih_l0', 'clone', 'val_0']");
    setFoldedFrom(model, "val_2", "['h', 'n.weight_hh_l0', 'clone', 'val_0']");
    setFoldedFrom(model, "val_3", "['h', 'n.bias_ih_l0', 'n.bias_hh_l0', 'clone', 'val_0']");
    setFoldedFrom(model, "clone", "['h']");
    return classify(model);
  };
  Classified result =
      make("%x, %clone, [%p_n_weight_ih_l0, %p_n_weight_hh_l0, %p_n_bias_ih_l0, %p_n_bias_hh_l0], True, 1, 0.0, True");
  EXPECT_THAT(result.messages, Not(HasSubstr("error")));
  EXPECT_THAT(result.names(InitializerRole::Parameter),
              testing::UnorderedElementsAre("h", "n.weight_ih_l0", "n.weight_hh_l0", "n.bias_ih_l0", "n.bias_hh_l0"));
  // Where the note does not name the weights, nothing tells them from the state.
  EXPECT_THAT(make("%x, %clone").messages, HasSubstr("is in the file twice"));
}

TEST(Operands, PairsOfTwoParametersAreReported) {
  // `cartesian_prod(u, v)`: each element is there twice; joined next to one another, each once.
  auto make = [](const std::string &values, const std::string &sources) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[4,2] x) => (float[4,2] y) <float[4,2] stack = {)" +
                                  values + "}> { y = Mul(x, stack) }");
    setSignature(model, {"u", "v"});
    setFoldedFrom(model, "stack", sources);
    return classify(model).messages;
  };
  EXPECT_THAT(make("1, 3, 1, 4, 2, 3, 2, 4", "['clone', 'expand', 'expand_1', 'u', 'v', 'val_1']"),
              HasSubstr("was folded from several parameters (u, v)"));
  // Those are trained alike, under the tensor's name, which is said.
  const std::string joined = make("1, 2, 3, 4, 5, 6, 7, 8", "['clone', 'expand', 'expand_1', 'u', 'v', 'val_1']");
  EXPECT_THAT(joined, Not(HasSubstr("was folded from several parameters")));
  EXPECT_THAT(joined, HasSubstr("they are trained alike, and saved so: u, v"));
}

TEST(Operands, WhatWasViewedInItsOwnShapeIsNotTurned) {
  // `w.reshape(2, 3)` of a matrix of that shape: the exporter notes nothing but the parameter.
  auto turns = [](const std::string &name) {
    ModelProto model = parseModel("<ir_version: 10, opset_import: [\"\" : 20]> g (float[2,3] x) => (float[2,3] y) "
                                  "<float[2,3] " +
                                  name + " = {1, 2, 3, 4, 5, 6}> { y = Add(x, " + name + ") }");
    setSignature(model, {"w"});
    setFoldedFrom(model, name, "['w']");
    Classified result = classify(model);
    const InitializerInfo *info = result.find("w");
    return info ? int(!info->transposed.empty()) : -1;
  };
  for (const char *name : {"view", "reshape_1", "squeeze", "unsqueeze_2", "expand", "clone"})
    EXPECT_EQ(turns(name), 0) << name;
  for (const char *name : {"t", "permute_3"})
    EXPECT_EQ(turns(name), 1) << name;
}

TEST(Operands, NumbersOfAddcmulAreTakenOutOfWhatTheyMultiplied) {
  // `addcmul(x, w, x, value=c)`: c · w was evaluated.
  auto read = [](const std::string &given, const std::string &from, const std::string &operation = "addcmul",
                 const std::string &operand = "p_net_w") {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,3] x) => (float[2,3] y) <float[3] tmp_2 = {1, 3, 5}> {
        tmp_0 = Mul(tmp_2, x)
        y = Add(x, tmp_0)
      })");
    setSignature(model, {"net.w"});
    setFoldedFrom(model, "tmp_2", from);
    for (int node : {0, 1})
      setNote(model, node, "pkg.torch.onnx.fx_node",
              "%" + operation + " : [num_users=1] = call_function[target=torch.ops.aten." + operation +
                  ".default](args = (%x, %" + operand + ", %x), kwargs = {" + given + "})");
    return classify(model);
  };
  const std::string from = "['net.w', 'value_2', 'value_cast_2']";
  for (auto [given, values] : {std::pair("", std::vector<float>{1, 3, 5}),
                               {"value: 0.5", std::vector<float>{2, 6, 10}},
                               {"value: -2", std::vector<float>{-0.5, -1.5, -2.5}}}) {
    Classified result = read(given, from);
    EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("net.w")) << given;
    EXPECT_THAT(result.values["net.w"], testing::ElementsAreArray(values)) << given;
    EXPECT_EQ(result.messages, "") << given;
  }
  // A number that is data, zero, another operation, and more than a number.
  for (const char *given : {"value: %item", "value: 0.0"})
    EXPECT_THAT(read(given, from).messages, HasSubstr("training it is not training the parameter")) << given;
  EXPECT_THAT(read("", from, "addcdiv").messages, HasSubstr("training it is not training the parameter"));
  // What the program made of the parameter before is taken apart next.
  Classified viewed = read("value: 0.5", "['net.w', 'val_9', 'value_2', 'view_1']", "addcmul", "view_1");
  EXPECT_THAT(viewed.names(InitializerRole::Parameter), ElementsAre("net.w")) << viewed.messages;
  EXPECT_EQ(viewed.find("net.w")->tensor, "view_1");
}

TEST(Operands, NumbersOfSumsAreTakenOutOfWhatTheyMultiplied) {
  // `add(x, w.expand_as(x), alpha=c)`: c · w was evaluated, for each sample.
  auto read = [](const std::string &given, const std::string &operation = "add") {
    ModelProto model = parseModel(std::string(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,3] x) => (float[2,3] y) <float[2,3] val_6 = {1, 3, 5, 1, 3, 5}> {
        y = )") + (operation == "sub" ? "Sub" : "Add") +
                                  R"((x, val_6)
      })");
    setSignature(model, {"net.w"});
    setFoldedFrom(model, "val_6", "['expand', 'net.w', 'val_1', 'val_5']");
    setNote(model, 0, "pkg.torch.onnx.fx_node",
            "%" + operation + " : [num_users=1] = call_function[target=torch.ops.aten." + operation +
                ".Tensor](args = (%x, %expand), kwargs = {" + given + "})");
    setNote(model, 0, "pkg.torch.onnx.class_hierarchy", "['aten." + operation + ".Tensor']");
    return classify(model);
  };
  for (const char *operation : {"add", "sub"})
    for (auto [given, values] : {std::pair("", std::vector<float>{1, 3, 5}),
                                 {"alpha: 0.5", std::vector<float>{2, 6, 10}},
                                 {"alpha: -2", std::vector<float>{-0.5, -1.5, -2.5}}}) {
      Classified result = read(given, operation);
      EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("net.w")) << given;
      EXPECT_THAT(result.values["net.w"], testing::ElementsAreArray(values)) << given;
      EXPECT_EQ(result.messages, "") << given;
    }
  // A number that is data.
  EXPECT_THAT(read("alpha: %item").messages, HasSubstr("perhaps scaled by the operation that reads it"));
}

TEST(Operands, RowsThatEachSampleReadsAreLookedUpOnce) {
  // Positions that were repeated for each sample: rows 0, 1, 2 of a table, unless the program added to the positions.
  auto make = [](const std::string &sources) {
    return makeEvaluated("embedding", "2,3,2", {1, 2, 3, 5, 7, 11, 1, 2, 3, 5, 7, 11}, "positions.weight", sources);
  };
  Classified plain = classify(make("['arange', 'expand', 'positions.weight']"));
  ASSERT_TRUE(plain.find("positions.weight")) << plain.messages;
  EXPECT_TRUE(plain.find("positions.weight")->sourceRows);
  EXPECT_EQ(importModel(make("['arange', 'expand', 'positions.weight']")).failure, FailureKind::None);
  EXPECT_THAT(classify(make("['add', 'arange', 'expand', 'positions.weight']")).messages,
              HasSubstr("looked up at positions that were computed"));
  // A row of zeros, which is a padding row's, is a row like others, and no number that others share.
  Classified padded = classify(makeEvaluated("embedding", "2,3,2", {0, 0, 3, 5, 7, 11, 0, 0, 3, 5, 7, 11},
                                             "positions.weight", "['arange', 'expand', 'positions.weight']"));
  ASSERT_TRUE(padded.find("positions.weight")) << padded.messages;
  EXPECT_TRUE(padded.find("positions.weight")->sourceRows);
  EXPECT_EQ(padded.messages, "");
}

TEST(Operands, ARowThatIsLookedUpEverywhereIsOneRow) {
  // Kinds of tokens that the program did not give, of a table that began with zeros.
  auto make = [](const std::string &sources) {
    return classify(makeEvaluated("embedding", "2,3,2", std::vector<float>(12, 0.0f), "kinds.weight", sources));
  };
  Classified one = make("['kinds.weight', 'zeros']");
  EXPECT_THAT(one.values["kinds.weight"], ElementsAre(0, 0));
  EXPECT_THAT(one.messages, HasSubstr("the file does not tell everything about them: kinds.weight"));
  // At other positions, rows that began equal are not one row.
  EXPECT_THAT(make("['arange', 'kinds.weight', 'zeros']").values["kinds.weight"], Not(ElementsAre(0, 0)));
}

TEST(Operands, ABufferNextToAFunctionIsTakenOff) {
  // `self.beta + softplus(self.alpha)`, as xIELU computes it: the file holds beta, itself or of another module.
  auto make = [](bool isMerged, const std::string &sources) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2] x) => (float[2] y) <float[1] add = {1.1931472}, float beta = {0.5}> {
        z = Mul(x, add)
        y = Mul(z, beta)
      })");
    renameValue(model, "beta", isMerged ? "a.beta" : "b.beta");
    setSignature(model, {"b.alpha"},
                 "b_a_beta: BUFFER target='a.beta' persistent=True\n"
                 "b_b_beta: BUFFER target='b.beta' persistent=True\nx: USER_INPUT\n");
    setFoldedFrom(model, "add", sources);
    setOrigin(model, 0, "b", "%x, %add");
    setOrigin(model, 1, "b", "%z, %b_b_beta");
    return model;
  };
  const std::string steps = "'b.alpha', 'b.beta', 'beta', 'beta_cast', 'self_scaled', 'softplus', 'softplus_2', 'tmp'";
  for (bool isMerged : {false, true}) {
    Classified result = classify(make(isMerged, "[" + steps + "]"));
    EXPECT_THAT(result.values["b.alpha"], testing::Pointwise(testing::FloatNear(1e-6f), {0.f})) << result.messages;
    EXPECT_EQ(importModel(make(isMerged, "[" + steps + "]")).failure, FailureKind::None);
  }
  // Of two functions, the order is not known; another sum may be anything.
  for (const std::string &other : {"'exp'", "'add_2'"}) {
    Classified result = classify(make(false, "[" + steps + ", " + other + "]"));
    EXPECT_THAT(result.messages, HasSubstr("training it is not training the parameter"));
  }
}
