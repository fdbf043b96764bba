//===- RecoverFunctionsTest.cpp - functions of parameters that the file holds as well -------===//
//
// What the exporter evaluated although the parameter stays in the file is computed from the parameter.
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
using testing::UnorderedElementsAre;

TEST(RecoverFunctions, FunctionsOfParametersInTheFileAreComputed) {
  // mix and 1 - mix: the number is found in the values.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[4] x) => (float[4] y) <float[4] mix = {0.25, 0.5, 0.125, 0.75}, float[4] sub = {0.75, 0.5, 0.875, 0.25}> {
      a = Mul(x, mix)
      b = Mul(x, sub)
      y = Add(a, b)
    })");
  setSignature(model, {"mix"});
  setFoldedFrom(model, "sub", "['mix', 'scalar_tensor_default', 'val_3']");
  Classified result = classify(model);
  EXPECT_EQ(result.messages, "");
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("mix"));
  EXPECT_THAT(result.replaced, ElementsAre(testing::Pair("sub", ElementsAre("sub"))));
}

TEST(RecoverFunctions, OtherValuesAreNoFunctionOfTheParameter) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[4] x) => (float[4] y) <float[4] mix = {0.25, 0.5, 0.125, 0.75}, float[4] sub = {0.75, 0.5, 0.8, 0.25}> {
      a = Mul(x, mix)
      b = Mul(x, sub)
      y = Add(a, b)
    })");
  setSignature(model, {"mix"});
  setFoldedFrom(model, "sub", "['mix', 'scalar_tensor_default', 'val_3']");
  EXPECT_THAT(classify(model).messages, HasSubstr("is in the file twice"));
}

TEST(RecoverFunctions, PenaltiesAreComputed) {
  // 0.01 * (0.25 + 1 + 4 + 0.0625)
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[4] x) => (float y) <float[4] w = {0.5, 1.0, -2.0, 0.25}, float mul_3 = {0.053125}> {
      a = Mul(x, w)
      b = ReduceSum<keepdims = 0>(a)
      y = Add(b, mul_3)
    })");
  setSignature(model, {"w"});
  setFoldedFrom(model, "mul_3", "['pow_1', 'sum_1', 'val_3', 'val_4', 'w']");
  Classified result = classify(model);
  EXPECT_EQ(result.messages, "");
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("w"));
}

TEST(RecoverFunctions, PenaltiesOfNormsAreComputed) {
  // Of w = (3, -4; 0, 12) and v = (6, -8): lengths 13 and 10, rows 5 and 12, columns 3 and √160, sizes 19 and 14.
  auto make = [](const std::string &number, const std::string &sources) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x) => (float[2,2] y)
      <float[2,2] w = {3, -4, 0, 12}, float[2] v = {6, -8}, float mul_3 = {)" +
                                  number + R"(}> {
        a = MatMul(x, w)
        b = Add(a, v)
        y = Add(b, mul_3)
      })");
    setSignature(model, {"w", "v"});
    setFoldedFrom(model, "mul_3", "[" + sources + ", 'val_1', 'val_2']");
    return classify(model);
  };
  for (const Classified &result :
       {make("0.13", "'linalg_vector_norm', 'w'"), make("0.19", "'linalg_vector_norm', 'w'"),
        make("0.23", "'add', 'linalg_vector_norm', 'linalg_vector_norm_1', 'v', 'w'"),
        make("0.33", "'add', 'linalg_vector_norm', 'linalg_vector_norm_1', 'v', 'w'"),
        make("0.16401219", "'cat', 'linalg_vector_norm', 'v', 'view', 'w'"),
        make("0.17", "'linalg_vector_norm', 'sum_1', 'w'"), make("0.085", "'linalg_vector_norm', 'mean', 'w'")}) {
    EXPECT_EQ(result.messages, "");
    EXPECT_THAT(result.names(InitializerRole::Parameter), UnorderedElementsAre("w", "v"));
  }
  // Numbers of many digits, and operations that are no penalty's.
  EXPECT_THAT(make("0.1357913", "'linalg_vector_norm', 'w'").messages, HasSubstr("is in the file twice"));
  EXPECT_THAT(make("0.13", "'linalg_vector_norm', 'sort', 'w'").messages, HasSubstr("is in the file twice"));
}

/// `y` and a penalty of `number`, made of matrix w and a = (1, -2; 0.5, 3) of another layer by `sources`.
static Classified makePenalty(const std::string &number, const std::string &sources) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,2] x) => (float[2,2] y)
    <float[2,2] "n.w" = {3, -4, 0, 12}, float[2,2] "o.w" = {1, -2, 0.5, 3}, float mul_3 = {)" +
                                number + R"(}> {
      a = MatMul(x, "n.w")
      b = MatMul(a, "o.w")
      y = Add(b, mul_3)
    })");
  setSignature(model, {"n.w", "o.w"});
  setFoldedFrom(model, "mul_3", "['n.w', 'o.w', 'add', 'val_1', 'val_2', " + sources + "]");
  return classify(model);
}

TEST(RecoverFunctions, PenaltiesOfSeveralParametersAreComputed) {
  // Squares 169 and 14.25, sizes 19 and 6.5, rows 5 + 12 and √5 + √9.25; apart: (2, -2; -0.5, 9), squares 89.25.
  // n·nᵀ − 1 = (24, -48; -48, 143): squares 25633; nᵀ·n − 1 = (8, -12; -12, 159): 25633 as well.
  for (const auto &[number, sources] : std::vector<std::pair<const char *, const char *>>{
           {"1.8325", "'linalg_vector_norm', 'linalg_vector_norm_1', 'pow_1', 'pow_2'"},
           {"0.00255", "'abs_1', 'abs_2', 'stack', 'sum_1', 'sum_2', 'sum_3', 'mul'"},
           {"0.1275", "'abs_1', 'abs_2', 'stack', 'sum_1', 'sum_2', 'mean', 'mul'"},
           {"0.0031875", "'abs_1', 'cat', 'mean', 'view', 'view_1'"},
           {"8.925", "'sub', 'pow_1', 'sum_1'"},
           {"1.17125", "'abs_1', 'abs_2', 'pow_1', 'pow_2', 'sum_1', 'sum_2', 'sum_3', 'sum_4', 'mul', 'mul_1'"},
           {"1.1565", "'pow_1', 'pow_2', 'sum_1', 'sum_2', 'mul'"},
           {"0.22277449", "'linalg_vector_norm', 'linalg_vector_norm_1', 'sum_1', 'sum_2'"},
           {"0.09577388", "'linalg_vector_norm', 'linalg_vector_norm_1', 'clamp_min', 'clamp_min_1', 'div', 'div_1', "
                          "'mul', 'sum_1'"}}) {
    Classified result = makePenalty(number, sources);
    EXPECT_EQ(result.messages, "") << sources;
    EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("n.w", "o.w"));
  }
}

TEST(RecoverFunctions, PenaltiesOfOtherKindsAreComputed) {
  // Lengths of rows less one; a length times the root of its numbers; |x|³; the root of all squares; the mean of all;
  // products of different rows, as they are; of two factors; a · bᵀ; a loss; differences of neighbours; 1 − cosines of
  // rows.
  for (const auto &[number, sources] : std::vector<std::pair<const char *, const char *>>{
           {"1.426951", "'linalg_vector_norm', 'linalg_vector_norm_1', 'sub', 'sub_1', 'pow_1', 'pow_2', 'sum_1', "
                        "'sum_2', 'mul'"},
           {"0.33549834", "'linalg_vector_norm', 'linalg_vector_norm_1', 'mul', 'mul_1', 'mul_2'"},
           {"1.855125", "'abs_1', 'abs_2', 'pow_1', 'pow_2', 'sum_1', 'sum_2', 'mul'"},
           {"1.3536986", "'pow_1', 'pow_2', 'sum_1', 'sum_2', 'sqrt'"},
           {"2.290625", "'pow_1', 'pow_2', 'sum_1', 'sum_2', 'mul', 'div'"},
           {"4.6685", "'matmul', 'matmul_1', 'rsub', 'rsub_1', 'mul', 'mul_1', 'pow_1', 'pow_2', 'sum_1', 'sum_2'"},
           {"1.7095", "'pow_1', 'sum_1', 'abs_1', 'sum_2', 'mul', 'mul_1'"},
           {"21.0325", "'matmul', 'pow_1', 'sum_1'"},
           {"11.15625", "'mse_loss'"},
           {"2.9025", "'slice_1', 'slice_2', 'slice_3', 'slice_4', 'sub', 'sub_1', 'pow_1', 'pow_2', 'sum_1', 'sum_2', "
                      "'mul'"},
           {"0.0014868083", "'linalg_vector_norm', 'linalg_vector_norm_1', 'clamp_min', 'clamp_min_1', 'div', 'div_1', "
                            "'mul', 'sum_1', 'rsub', 'mean'"}}) {
    Classified result = makePenalty(number, sources);
    EXPECT_EQ(result.messages, "") << sources;
    EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("n.w", "o.w"));
  }
}

TEST(RecoverFunctions, DivergencesOfDrawnWeightsAreComputed) {
  // Of means and log-deviations, what `softplus` makes deviations of, and log-variances.
  auto make = [](const std::string &number, const std::string &name) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[4] x) => (float[4] y)
      <float[4] "m.mu" = {1, -0.5, 0.75, 2}, float[4] "m.)" +
                                  name + R"(" = {-1, -2, -0.5, 0.25}, float mul_3 = {)" + number + R"(}> {
        a = Mul(x, "m.)" + name + R"(")
        b = Add(a, "m.mu")
        y = Add(b, mul_3)
      })");
    setSignature(model, {"m.mu", "m." + name});
    setFoldedFrom(model, "mul_3",
                  "['m.mu', 'm." + name +
                      "', 'add', 'exp', 'log', 'mul_1', 'mul_2', 'pow_1', 'sub', 'sum_1', 'val_1']");
    return classify(model);
  };
  for (const char *number : {"0.052413758", "0.0055793052", "0.037281354"}) {
    Classified result = make(number, "rho");
    EXPECT_EQ(result.messages, "") << number;
    EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("m.mu", "m.rho"));
  }
  // Of a name that is no deviation's, and of another number.
  EXPECT_THAT(make("0.052413758", "w").messages, HasSubstr("is in the file twice"));
  EXPECT_THAT(make("0.0271828", "rho").messages, HasSubstr("is in the file twice"));
}

TEST(RecoverFunctions, NumbersThatSeveralPenaltiesMayGiveAreRefused) {
  // Numbers of many digits; of a detached parameter; of factors that several pairs fit.
  for (const auto &[number, sources] : std::vector<std::pair<const char *, const char *>>{
           {"1.8324321", "'linalg_vector_norm', 'linalg_vector_norm_1', 'pow_1', 'pow_2'"},
           {"8.925", "'sub', 'pow_1', 'sum_1', 'detach'"},
           {"8.9271", "'sub', 'pow_1', 'sum_1'"},
           {"1.1237161", "'abs_1', 'abs_2', 'pow_1', 'pow_2', 'sum_1', 'sum_2', 'sum_3', 'sum_4', 'mul', 'mul_1'"}})
    EXPECT_THAT(makePenalty(number, sources).messages, HasSubstr("is in the file twice")) << sources;
}

TEST(RecoverFunctions, ReductionsOfParametersAreComputed) {
  // |e|² of the rows of a codebook that is looked up as well.
  auto make = [](const std::string &name, const std::string &dims, const std::string &values,
                 const std::string &sources) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x, int64[2] i) => (float[2,2] y)
      <float[3,2] "cb.weight" = {1, 2, 3, 4, 5, 6}, float[)" +
                                  dims + "] " + name + " = {" + values + R"(}> {
        e = Gather("cb.weight", i)
        s = ReduceSum()" + name + R"()
        f = Mul(e, s)
        y = Add(x, f)
      })");
    setSignature(model, {"cb.weight"});
    setFoldedFrom(model, name, "['cb.weight', " + sources + "]");
    return classify(model);
  };
  for (const Classified &result :
       {make("sum_2", "3", "5, 25, 61", "'pow_2', 'val_2', 'val_3'"), make("sum_2", "1,2", "9, 12", "'val_2'"),
        make("mean", "3", "1.5, 3.5, 5.5", "'val_2'"),
        make("linalg_vector_norm", "3,1", "2.236068, 5, 7.8102497", "'val_2'"),
        make("div", "3,2", "0.44721360, 0.89442719, 0.6, 0.8, 0.64018440, 0.76822128",
             "'linalg_vector_norm', 'clamp_min', 'val_2'"),
        // Of each sample, as a similarity with every entry compares them.
        make("div_1", "2,3,2",
             "0.44721360, 0.89442719, 0.6, 0.8, 0.64018440, 0.76822128, 0.44721360, 0.89442719, 0.6, 0.8, 0.64018440, "
             "0.76822128",
             "'expand', 'linalg_vector_norm', 'clamp_min', 'unsqueeze', 'val_2'")}) {
    EXPECT_EQ(result.messages, "");
    EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("cb.weight"));
  }
  // Other numbers are none, also of one sample alone.
  EXPECT_THAT(make("linalg_vector_norm", "2,3", "2.236068, 5, 7.8102497, 2.236068, 5, 8", "'expand', 'val_2'").messages,
              HasSubstr("is in the file twice"));
  EXPECT_THAT(make("sum_2", "3", "5, 25, 62", "'pow_2', 'val_2'").messages, HasSubstr("is in the file twice"));
}

TEST(RecoverFunctions, PowersNextToTheirParameterAreComputed) {
  auto make = [](const std::string &values) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[3] x) => (float[3] y) <float[3] w = {0.5, -2, 3}, float[3] pow_2 = {)" +
                                  values + R"(}> {
        a = Mul(x, w)
        y = Add(a, pow_2)
      })");
    setSignature(model, {"w"});
    setFoldedFrom(model, "pow_2", "['scalar_tensor_default', 'val_0', 'w']");
    return classify(model);
  };
  // Squares, cubes, and two to the power of w.
  for (const char *values : {"0.25, 4, 9", "0.125, -8, 27", "1.4142135, 0.25, 8"}) {
    Classified result = make(values);
    EXPECT_EQ(result.messages, "") << values;
    EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("w"));
  }
  EXPECT_THAT(make("0.125, -8, 28").messages, HasSubstr("is in the file twice"));
}

TEST(RecoverFunctions, WhatAnInvertedFunctionGaveMakesTheOthers) {
  // tanh(g), and sqrt(1 - tanh(g)²), of which the program computes the tangent twice.
  auto make = [](const std::string &values) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[4] x) => (float[4] y)
      <float[4] tanh = {0.6469762, -0.1597051, -0.7928361, 0.2523913}, float[4] sqrt = {)" +
                                  values + R"(}> {
        a = Mul(x, tanh)
        y = Add(a, sqrt)
      })");
    setSignature(model, {"g"});
    setFoldedFrom(model, "tanh", "['g']");
    setFoldedFrom(model, "sqrt", "['g', 'pow_1', 'scalar_tensor_default', 'sub', 'tanh_1', 'val_0', 'val_1']");
    return classify(model);
  };
  Classified result = make("0.7625102, 0.9871648, 0.6094348, 0.9676253");
  EXPECT_THAT(result.messages, testing::Not(HasSubstr("error")));
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("g"));
  EXPECT_THAT(make("0.7625102, 0.9871648, 0.6094348, 0.9").messages, HasSubstr("is in the file twice"));
}

TEST(RecoverFunctions, ChainsBesideTheirParameterAreComputed) {
  // A loss weighted by its uncertainty: exp(-s) * loss + s, with s = 0.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2] x) => (float[2] y) <float[2] s = {0, 0}, float[2] exp = {1, 1}> {
      a = Mul(x, exp)
      y = Add(a, s)
    })");
  setSignature(model, {"s"});
  setFoldedFrom(model, "exp", "['neg', 's']");
  Classified result = classify(model);
  EXPECT_EQ(result.messages, "");
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("s"));
}

TEST(RecoverFunctions, LayersThatReadZerosAreTheirBias) {
  // The first step of a recurrence: zeros · hh + b, for two samples.
  auto make = [](const std::string &rows, const std::string &hh, const std::string &bias, const std::string &sources) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x) => (float[2,2] y)
      <float[2,2] hh = {)" + hh + "}" +
                                  (bias.empty() ? "" : ", float[2] bias = {" + bias + "}") +
                                  ", float[1,2,2] linear_1 = {" + rows + R"(}> {
        a = Add(x, linear_1)
        b = MatMul(a, hh)
        y = )" + (bias.empty() ? "Identity(b)" : "Add(b, bias)") +
                                  R"(
      })");
    setSignature(model, {"hh", "bias"});
    setFoldedFrom(model, "linear_1", "[" + sources + "]");
    return classify(model);
  };
  const std::string both = "'bias', 'getitem', 'hh', 'val_2', 'zeros'";
  Classified result = make("3, 4, 3, 4", "1, 2, 0, 4", "3, 4", both);
  EXPECT_EQ(result.messages, "");
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("hh", "bias"));
  // Without a bias there are zeros alone.
  result = make("0, 0, 0, 0", "1, 2, 0, 4", "", "'hh', 'val_2', 'zeros'");
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("hh")) << result.messages;
  // Other rows, a product that is zero for its own sake, an input that is no zeros, or a bias that is gone are none.
  for (const Classified &other :
       {make("3, 4, 3, 5", "1, 2, 0, 4", "3, 4", both), make("3, 4, 3, 4", "0, 0, 0, 0", "3, 4", both),
        make("3, 4, 3, 4", "1, 2, 0, 4", "3, 4", "'bias', 'getitem', 'hh', 'val_2'"),
        make("0, 0, 0, 0", "1, 2, 0, 4", "", both)})
    EXPECT_THAT(other.messages, HasSubstr("is in the file twice"));
}

TEST(RecoverFunctions, LengthsOfRowsAreComputedWithoutNotes) {
  // What `F.normalize(w)` divides by, as the TorchScript exporter evaluates it: a row of 3 and 4, one of 1, 2 and 2.
  auto find = [](const std::string &values, const std::string &dims = "2,1") {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 17]>
      g (float[4,3] x) => (float[4,2] y) <float[2,3] "m.w" = {3, 0, 4, 1, 2, 2}, float[)" +
                                  dims + R"(] n = )" + values + R"(> {
        e = Constant<value = float {1e-12}>()
        b = Clip(n, e)
        u = Div("m.w", b)
        t = Transpose<perm = [1, 0]>(u)
        y = MatMul(x, t)
      })");
    ::onnx::GraphProto &graph = *model.mutable_graph();
    graph.mutable_initializer(1)->set_name("onnx::Clip_37");
    graph.mutable_node(1)->set_input(0, "onnx::Clip_37");
    for (::onnx::NodeProto &node : *graph.mutable_node())
      node.set_name("/m/" + node.op_type());
    return classify(model);
  };
  for (const char *values : {"{5, 3}", "{7, 5}", "{25, 9}"}) { // lengths, sizes, squares
    Classified result = find(values);
    EXPECT_EQ(result.messages, "") << values;
    EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("m.w"));
    EXPECT_THAT(result.replaced, ElementsAre(testing::Pair("onnx::Clip_37", ElementsAre("onnx::Clip_37"))));
  }
  // The length of all, which is no number of few digits.
  EXPECT_THAT(find("{5.8309517}", "1,1").names(InitializerRole::Parameter), ElementsAre("m.w"));
  EXPECT_THAT(find("{12}", "1,1").replaced, testing::IsEmpty()); // the sum, or a constant
  // Other numbers; one row's; equal ones.
  for (auto [values, dims] : {std::pair("{5, 3.001}", "2,1"), {"{5, 4}", "2,1"}, {"{5, 5}", "2,1"}})
    EXPECT_THAT(find(values, dims).messages, HasSubstr("onnx::Clip_37")) << values;
}

TEST(RecoverFunctions, WhatTwoParametersMakeIsComputedWithoutNotes) {
  // What a loss compares of two layers, as the old exporter evaluates it.
  auto make = [](const std::string &values) {
    ModelProto model = parseModel(R"(
      <ir_version: 8, opset_import: ["" : 17]>
      g (float[3,2] x) => (float[3,2] y)
      <float[2,2] "a.weight" = {1, 2, 3, 4}, float[2,2] "b.weight" = {0.5, 0.25, 2, -1},
       float[4] "onnx::ReduceSum_62" = {)" +
                                  values + R"(}> {
        h = MatMul(x, "a.weight")
        i = MatMul(h, "b.weight")
        s = ReduceSum("onnx::ReduceSum_62")
        y = Add(i, s)
      })");
    return classify(model);
  };
  for (const char *values : {"0.5, 1.75, 1, 5", "-0.5, -1.75, -1, -5", "1.5, 2.25, 5, 3", "0.5, 0.5, 6, -4"}) {
    Classified result = make(values);
    EXPECT_THAT(result.names(InitializerRole::Parameter), UnorderedElementsAre("a.weight", "b.weight")) << values;
    EXPECT_THAT(result.replaced, testing::Contains(testing::Key("onnx::ReduceSum_62")));
  }
  EXPECT_THAT(make("0.5, 1.75, 1, 5.5").replaced, testing::IsEmpty());
}

TEST(RecoverFunctions, ParametersThatAreJoinedAreTheirOwnWithoutNotes) {
  // `torch.cat([p.flatten() for p in …])`, as the old exporter evaluates it.
  auto make = [](const std::string &values) {
    return classify(parseModel(R"(
      <ir_version: 8, opset_import: ["" : 17]>
      g (float[3,2] x) => (float[3,2] y)
      <float[2,2] "a.weight" = {1, 2, 3, 4}, float[2] "a.bias" = {0, 0}, float[6] "onnx::Abs_9" = {)" +
                               values + R"(}> {
        h = MatMul(x, "a.weight")
        i = Add(h, "a.bias")
        b = Abs("onnx::Abs_9")
        s = ReduceSum(b)
        y = Add(i, s)
      })"));
  };
  for (const char *values : {"1, 2, 3, 4, 0, 0", "0, 0, 1, 2, 3, 4"}) {
    Classified result = make(values);
    EXPECT_EQ(result.messages, "") << values;
    EXPECT_THAT(result.names(InitializerRole::Parameter), UnorderedElementsAre("a.weight", "a.bias"));
  }
  EXPECT_THAT(make("1, 2, 3, 5, 0, 0").replaced, testing::IsEmpty());
}

TEST(Unfold, MovedElementsOfALivingParameterAreTakenFromIt) {
  // `x @ w + (x * w[…])`: what is evaluated holds elements of `w` in other places, some of them twice.
  auto make = [](const std::string &name, const std::string &values, const std::string &weights = "1, 2, 3, 4") {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x) => (float[3,2] y) <float[2,2] w = {)" +
                                  weights + "}, float[3,2] " + name + " = {" + values + R"(}> {
        h = MatMul(x, w)
        y = MatMul()" + name + R"(, h)
      })");
    setSignature(model, {"w"});
    setFoldedFrom(model, name, "['w', 'lifted_tensor_0', 'val_0']");
    return model;
  };
  Classified index = classify(make("index", "3, 4, 1, 2, 3, 4"));
  EXPECT_THAT(index.names(InitializerRole::Parameter), ElementsAre("w")) << index.messages;
  EXPECT_EQ(index.find("index"), nullptr);
  EXPECT_EQ(index.messages, "");
  // Values that are not the parameter's, equal ones, and an operation of which the values decide where its elements go.
  for (ModelProto &model :
       std::vector<ModelProto>{make("index", "3, 4, 1, 2, 3, 5"), make("index", "3, 1, 1, 1, 3, 1", "1, 1, 3, 4"),
                               make("sort", "3, 4, 1, 2, 3, 4")})
    EXPECT_THAT(classify(model).messages, HasSubstr("is in the file twice"));
}

TEST(Unfold, WeightsThatALayerConvertsAreKeptInF32) {
  // `torch.autocast` around a layer, through the exporter without notes: what it read is converted, too.
  auto make = [](const std::string &type, const std::string &before) {
    ModelProto model = parseModel(R"(
      <ir_version: 8, producer_name: "pytorch", opset_import: ["" : 17]>
      g ()" + type + R"([2,2] x) => (float[2,3] y) <float16[2,3] w = {15360, 16384, 16896, 17408, 17664, 17920}> {
        n = )" + before + R"((x)
        h = MatMul(n, w)
        y = Cast <to = 1> (h)
      })");
    auto &nodes = *model.mutable_graph()->mutable_node();
    for (int i : {0, 1})
      nodes[i].set_name("/fc/" + nodes[i].op_type());
    renameValue(model, "w", "onnx::MatMul_9");
    return classify(model);
  };
  Classified converts = make("float", "Cast <to = 10> ");
  const InitializerInfo *weight = converts.find("fc.weight");
  ASSERT_NE(weight, nullptr) << converts.messages;
  EXPECT_THAT(weight->dims, ElementsAre(3, 2));
  EXPECT_THAT(converts.values["fc.weight"], ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(converts.messages, HasSubstr("fc.weight"));
  // A module that is kept in 16 bits is trained in them.
  EXPECT_EQ(make("float16", "Relu").values.count("fc.weight"), 0u);
}
