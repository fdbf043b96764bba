//===- UnfoldTest.cpp - parameters out of what an exporter evaluated --------------===//
//
// Each class of evaluated tensors: what is taken out of it, and when it is left alone.
//
//===----------------------------------------------------------------------===//

#include "TestModel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using ::onnx::NodeProto;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

namespace {
/// T5's numbers for the pairs of `length` queries and keys, both ways, with 32 buckets up to distance 128.
std::vector<int> t5Buckets(int length) {
  std::vector<int> buckets;
  for (int query = 0; query != length; ++query)
    for (int key = 0; key != length; ++key) {
      int distance = std::abs(key - query), base = key > query ? 16 : 0;
      int far = 8 + int(std::log(float(distance) / 8) / float(std::log(16.0)) * 8);
      buckets.push_back(base + (distance < 8 ? distance : std::min(far, 15)));
    }
  return buckets;
}
} // namespace

TEST(Unfold, RepeatedRowsAreOneRow) {
  Classified result =
      classify(makeEvaluated("embedding", "3,2", {1, 2, 1, 2, 3, 4}, "types.weight", "['types.weight', 'val_2']"));
  ASSERT_TRUE(result.find("types.weight")) << result.messages;
  EXPECT_EQ(result.find("types.weight")->role, InitializerRole::Parameter);
  EXPECT_THAT(result.values["types.weight"], ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(result.unfolded["types.weight"].tensor, "embedding");
  EXPECT_THAT(result.replaced, ElementsAre(Pair("embedding", ElementsAre("embedding"))));
}

TEST(Unfold, RelativePositionsAreOrderedByTheirRule) {
  // 130 positions read all of T5's 32 buckets but 16, which no pair has; two heads in front, as attention wants them.
  const int length = 130;
  std::vector<float> values;
  for (int head = 0; head != 2; ++head)
    for (int bucket : t5Buckets(length))
      values.push_back(float(100 * head + bucket) / 4);
  Classified result =
      classify(makeEvaluated("unsqueeze_3", "1,2,130,130", values, "bias.weight",
                             "['arange', 'abs_1', 'bias.weight', 'embedding', 'log', 'permute', 'where']"));
  ASSERT_TRUE(result.find("bias.weight")) << result.messages;
  EXPECT_THAT(result.find("bias.weight")->dims, ElementsAre(31, 2));
  std::vector<float> table;
  for (int bucket = 0; bucket != 32; ++bucket)
    for (int head = 0; head != 2 && bucket != 16; ++head)
      table.push_back(float(100 * head + bucket) / 4);
  EXPECT_THAT(result.values["bias.weight"], ElementsAreArray(table));
}

TEST(Unfold, MaskedPairsHoldNoRow) {
  const float mask = -3e38f;
  Classified result = classify(makeEvaluated("add_2", "1,2,2,2", {5, mask, 6, 5, 7, mask, 8, 7}, "bias.weight",
                                             "['bias.weight', 'embedding', 'full', 'permute', 'triu', 'unsqueeze']"));
  ASSERT_TRUE(result.find("bias.weight")) << result.messages;
  EXPECT_THAT(result.values["bias.weight"], testing::UnorderedElementsAre(5, 7, 6, 8));
  EXPECT_EQ(result.messages, "");
}

TEST(Unfold, RowsOfOneNumberProveNothing) {
  Classified result = classify(makeEvaluated("permute", "1,2,2,2", {0, 0, 0, 0, 0, 0, 0, 0}, "bias.weight",
                                             "['arange', 'abs_1', 'bias.weight', 'embedding']"));
  EXPECT_THAT(result.unfolded, IsEmpty());
  EXPECT_THAT(result.messages, HasSubstr("it cannot be seen which of its rows are one"));
}

TEST(Unfold, FewEqualNumbersAreChance) {
  // Every row once, which makes the tensor the parameter itself; two of its numbers happen to be equal.
  std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 2, 9, 10, 11, 12};
  Classified result =
      classify(makeEvaluated("embedding", "4,3", values, "wpe.weight", "['arange', 'slice_1', 'wpe.weight']"));
  EXPECT_THAT(result.unfolded, IsEmpty());
  ASSERT_TRUE(result.find("wpe.weight")) << result.messages;
  EXPECT_THAT(result.find("wpe.weight")->dims, ElementsAre(4, 3));
}

TEST(Unfold, FunctionsAreInverted) {
  Classified result = classify(makeEvaluated("neg", "3", {-1, -2, -4}, "A_log", "['A_log', 'exp']"));
  ASSERT_TRUE(result.find("A_log")) << result.messages;
  EXPECT_THAT(result.values["A_log"], testing::Pointwise(testing::FloatEq(), {0.f, std::log(2.f), std::log(4.f)}));
  // The image is the parameter's place in the file.
  EXPECT_THAT(result.replaced, ElementsAre(Pair("neg", ElementsAre("neg"))));
  // Only one order gives negative numbers.
  Classified moved =
      classify(makeEvaluated("unsqueeze", "3", {-1, -2, -4}, "A_log", "['A_log', 'exp', 'neg', 'val_39']"));
  EXPECT_THAT(moved.values["A_log"], testing::Pointwise(testing::FloatEq(), {0.f, std::log(2.f), std::log(4.f)}));
  // Either order is the same function here, and there another one.
  EXPECT_THAT(classify(makeEvaluated("view", "2", {0.5, 0.25}, "s", "['neg', 's', 'tanh']")).unfolded,
              testing::SizeIs(1));
  EXPECT_THAT(classify(makeEvaluated("view", "2", {2, 3}, "s", "['exp', 's', 'softplus']")).unfolded, IsEmpty());
  // A saturated one has many inverse images, and of two steps the order is not written down.
  EXPECT_THAT(classify(makeEvaluated("sigmoid", "2", {0.5, 1}, "gate", "['gate']")).unfolded, IsEmpty());
  Classified twice = classify(makeEvaluated("exp_1", "2", {1, 2}, "gate", "['gate', 'neg', 'sigmoid']"));
  EXPECT_THAT(twice.unfolded, IsEmpty());
  EXPECT_THAT(twice.messages, HasSubstr("training it is not training the parameter"));
}

TEST(Unfold, SoftplusInStepsIsInverted) {
  // The exporter names the steps of `aten.softplus`; with which beta, it does not.
  Classified result = classify(makeEvaluated("softplus", "2", {std::log(2.f), 1}, "raw",
                                             "['beta', 'beta_0', 'beta_0_cast', 'beta_cast', 'raw', 'self_scaled', "
                                             "'softplus_2', 'threshold', 'threshold_cast', 'tmp', 'tmp_1']"));
  EXPECT_THAT(result.values["raw"], testing::Pointwise(testing::FloatNear(1e-6f), {0.f, std::log(std::exp(1.f) - 1)}));
  EXPECT_THAT(result.messages, HasSubstr("the file does not tell everything about them: raw"));
  // A negative number is no softplus.
  EXPECT_THAT(
      classify(makeEvaluated("softplus", "2", {-1, 1}, "raw", "['raw', 'self_scaled', 'softplus_2', 'tmp']")).unfolded,
      IsEmpty());
}

TEST(Unfold, TransposedWeightsOfLengthAndDirection) {
  // `Linear` on tokens reads the transpose of g · v / |v|: rows of length 5 and 13.
  ModelProto model =
      makeEvaluated("val_9", "2,2", {3, 5, 4, 12}, "l.parametrizations.weight.original0",
                    "['div', 'l.parametrizations.weight.original0', 'l.parametrizations.weight.original1', "
                    "'linalg_vector_norm', 'mul', 'val_7']");
  model.mutable_graph()->clear_metadata_props();
  setSignature(model, {"l.parametrizations.weight.original0", "l.parametrizations.weight.original1"});
  Classified result = classify(model);
  EXPECT_THAT(result.values["l.parametrizations.weight.original0"], ElementsAre(5, 13)) << result.messages;
  EXPECT_THAT(result.values["l.parametrizations.weight.original1"], ElementsAre(3, 4, 5, 12));
  EXPECT_EQ(importModel(model).failure, FailureKind::None);
}

TEST(Unfold, InitializersMayBeListedAsInputs) {
  // `keep_initializers_as_inputs=True`: the notes are the inputs', and what is computed again is none.
  ModelProto model = makeEvaluated("exp", "2", {2, 4}, "s", "['s']");
  auto &input = *model.mutable_graph()->add_input();
  input.Swap(model.mutable_graph()->mutable_value_info(0));
  model.mutable_graph()->clear_value_info();
  input.mutable_type()->mutable_tensor_type()->set_elem_type(::onnx::TensorProto::FLOAT);
  input.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(2);
  Classified result = classify(model);
  EXPECT_THAT(result.values["s"], testing::Pointwise(testing::FloatEq(), {std::log(2.f), std::log(4.f)}));
  EXPECT_EQ(importModel(model).messages, "");
}

TEST(Unfold, BoundsAreLeftOutAndSaidSo) {
  // exp(scale.clamp(max=log(100))): val_53 and val_54 are the bound, which is not in the file.
  Classified result = classify(makeEvaluated("exp", "2", {2, 4}, "scale", "['clamp', 'scale', 'val_53', 'val_54']"));
  EXPECT_THAT(result.values["scale"], testing::Pointwise(testing::FloatEq(), {std::log(2.f), std::log(4.f)}));
  EXPECT_THAT(result.messages, HasSubstr("the file does not tell everything about them: scale"));
  Classified plain = classify(makeEvaluated("clamp", "2", {2, 4}, "scale", "['scale', 'val_1']"));
  EXPECT_THAT(plain.values["scale"], ElementsAre(2, 4));
  // What is beyond a bound is lost.
  EXPECT_THAT(classify(makeEvaluated("exp", "4", {2, 4, 4, 3}, "scale", "['clamp', 'scale', 'val_53']")).unfolded,
              IsEmpty());
  // Other numbered steps may compute anything.
  EXPECT_THAT(classify(makeEvaluated("exp", "2", {2, 4}, "scale", "['scale', 'val_53']")).unfolded, IsEmpty());
}

TEST(Unfold, DroppedSmallNumbersAreAddedAgain) {
  // log(x + 1e-8) / (x + 1e-8): the exporter's optimizer took the number for zero.
  auto model = [](const std::string &logarithm, const std::string &quotient) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2] x) => (float[2] y) {
        l = Log(x)
        y = Div(l, x)
      })");
    setSignature(model, {});
    setOrigin(model, 0, "", logarithm);
    setOrigin(model, 1, "", quotient);
    return model;
  };
  Classified result = classify(model("%add_1", "%l, %add_1"));
  EXPECT_THAT(result.names(InitializerRole::Constant), ElementsAre("add_1_dropped"));
  EXPECT_THAT(result.messages, HasSubstr("1e-8 is added again: add_1\n"));
  // What the operations name is what they read.
  EXPECT_THAT(classify(model("%x", "%l, %x")).infos, IsEmpty());
  // A numerator may be zero.
  EXPECT_THAT(classify(model("%x", "%add_1, %x")).infos, IsEmpty());
  EXPECT_EQ(importModel(model("%add_1", "%l, %add_2")).failure, FailureKind::None);
}

TEST(Unfold, DroppedSmallNumbersAreAddedAgainWhereElementsMove) {
  // cat([x, x + 1e-10]).log(), as what a ray passes is computed; a logarithm or a sine reads the concatenation.
  auto make = [](const std::string &reader, const std::string &second) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2] x) => (float[4] y) {
        c = Concat<axis = 0>(x, x)
        y = )" + reader + R"((c)
      })");
    setSignature(model, {});
    setOrigin(model, 0, "", "%x, " + second);
    setOrigin(model, 1, "", "%c");
    return classify(model);
  };
  EXPECT_THAT(make("Log", "%add_1").names(InitializerRole::Constant), ElementsAre("add_1_dropped"));
  EXPECT_THAT(make("Log", "%x").infos, IsEmpty());
  EXPECT_THAT(make("Sin", "%add_1").infos, IsEmpty());
}

TEST(Unfold, DroppedReductionsOfLossesComeBack) {
  // cross_entropy(z, t, reduction="none").sum(), of which the exporter thinks that it sums a number.
  auto make = [](const std::string &output) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,3] x, int64[2] t) => (float loss) <float[3] w = {1, 2, 3}> {
        z = Mul(x, w)
        loss = SoftmaxCrossEntropyLoss<reduction = "none">(z, t)
      })");
    setSignature(model, {"w"}, "x: USER_INPUT\nt: USER_INPUT\n\n# outputs\n" + output + ": USER_OUTPUT\n");
    setOrigin(model, 0, "", "%x, %p_w");
    setOrigin(model, 1, "", "%mul, %t, None, 0");
    return model;
  };
  Outcome sum = importModel(make("sum_1"));
  EXPECT_EQ(sum.failure, FailureKind::None) << sum.messages;
  EXPECT_THAT(sum.messages, HasSubstr("reduced over all dimensions again: sum_1"));
  EXPECT_THAT(importModel(make("cross_entropy_loss")).messages, testing::Not(HasSubstr("reduced over all")));
}

TEST(Unfold, LabelSmoothingComesBack) {
  // test/models/smooth-tiny has the values; here, what is said, and when nothing is.
  auto make = [](const std::string &operands) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,3] x, int64[2] t) => (float loss) <float[3] w = {1, 2, 3}> {
        z = Mul(x, w)
        loss = SoftmaxCrossEntropyLoss(z, t)
      })");
    setNote(model, 1, "pkg.torch.onnx.fx_node",
            "%loss : [num_users=1] = call_function[target=torch.ops.aten.cross_entropy_loss.default](args = (" +
                operands + "), kwargs = {})");
    return model;
  };
  Outcome smooth = importModel(make("%z, %t, None, 1, -100, 0.25"));
  EXPECT_EQ(smooth.failure, FailureKind::None) << smooth.messages;
  EXPECT_THAT(smooth.messages, HasSubstr("left the program's label smoothing out of cross-entropies"));
  for (const char *operands : {"%z, %t", "%z, %t, None, 1, -100, 0.0", "%z, %t, None, 1, -100, %smoothing"})
    EXPECT_THAT(importModel(make(operands)).messages, testing::Not(HasSubstr("smoothing"))) << operands;
  // An exporter that writes it out needs no help.
  ModelProto whole = make("%z, %t, None, 1, -100, 0.25");
  whole.mutable_graph()->mutable_node(1)->set_output(0, "hard");
  auto &rest = *whole.mutable_graph()->add_node();
  rest.set_op_type("Neg");
  rest.add_input("hard");
  rest.add_output("loss");
  *rest.mutable_metadata_props() = whole.graph().node(1).metadata_props();
  EXPECT_THAT(importModel(whole).messages, testing::Not(HasSubstr("smoothing")));
}

TEST(Unfold, OperationsThatDidNothingAreMissed) {
  // exp(-s) * loss + s, with s = 0: what adds s is gone, and the result is called after it.
  auto make = [](const std::string &output, const std::string &value) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2] x) => (float[2] y) <float[2] s = {)" +
                                  value + ", " + value + R"(}> {
        e = Exp(s)
        y = Mul(e, x)
      })");
    setSignature(model, {"s"}, "x: USER_INPUT\n\n# outputs\n" + output + ": USER_OUTPUT\n");
    setOrigin(model, 0, "", "%p_s");
    setNote(model, 1, "pkg.torch.onnx.fx_node", "%mul : [num_users=1] = call_function[target=m](args = (%e, %x))");
    return classify(model).messages;
  };
  EXPECT_THAT(make("add_1", "0"), HasSubstr("dropped operations that did nothing to the first values of what they "
                                            "read (add_1 of the program), perhaps to those of s"));
  EXPECT_EQ(make("mul", "0"), "");
  // Nothing but zeros and ones does nothing.
  EXPECT_EQ(make("add_1", "0.5"), "");
}

TEST(Unfold, RecurrentLayersGetTheirGatesBack) {
  // Hidden size 1, input size 1; ONNX's gates are i o f c, PyTorch's i f c o.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,1,1] x) => (float[2,1,1,1] y)
    <float[1,4,1] w = {1, 2, 3, 4}, float[1,4,1] r = {5, 6, 7, 8}, float[1,8] b = {1, 2, 3, 4, 11, 12, 13, 14}> {
      y = LSTM<hidden_size = 1>(x, w, r, b)
    })");
  setSignature(model, {"rnn.weight_ih_l0", "rnn.weight_hh_l0", "rnn.bias_ih_l0", "rnn.bias_hh_l0"});
  setFoldedFrom(model, "w", "['rnn.weight_ih_l0', 'val_1']");
  setFoldedFrom(model, "r", "['rnn.weight_hh_l0', 'val_1']");
  setFoldedFrom(model, "b", "['rnn.bias_hh_l0', 'rnn.bias_ih_l0', 'val_1']");
  setOrigin(model, 0, "rnn");
  Classified result = classify(model);
  EXPECT_THAT(result.values["rnn.weight_ih_l0"], ElementsAre(1, 3, 4, 2)) << result.messages;
  EXPECT_THAT(result.values["rnn.weight_hh_l0"], ElementsAre(5, 7, 8, 6));
  EXPECT_THAT(result.values["rnn.bias_ih_l0"], ElementsAre(1, 3, 4, 2));
  EXPECT_THAT(result.values["rnn.bias_hh_l0"], ElementsAre(11, 13, 14, 12));
  EXPECT_THAT(result.replaced,
              ElementsAre(Pair("b", ElementsAre("b")), Pair("r", ElementsAre("r")), Pair("w", ElementsAre("w"))));
  EXPECT_EQ(importModel(model).failure, FailureKind::None);
  // Without notes the operator tells.
  model.mutable_graph()->clear_metadata_props();
  model.mutable_graph()->clear_value_info();
  NodeProto *node = model.mutable_graph()->mutable_node(0);
  node->clear_metadata_props();
  node->set_name("/encoder/rnn/LSTM_1");
  for (int i = 0; i != 3; ++i) {
    std::string name = "onnx::LSTM_" + std::to_string(40 + i);
    model.mutable_graph()->mutable_initializer(i)->set_name(name);
    node->set_input(i + 1, name);
  }
  EXPECT_THAT(classify(model).values["encoder.rnn.bias_hh_l1"], ElementsAre(11, 13, 14, 12));
}

TEST(Unfold, DroppedBiasesComeBack) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,3] x) => (float[2,2] y) <float[2,3] "fc.weight" = {1, 2, 3, 4, 5, 6}> {
      y = Gemm<transB = 1>(x, "fc.weight")
    })");
  setSignature(model, {"fc.weight", "fc.bias"});
  setOrigin(model, 0, "fc", "%x, %p_fc_weight, %p_fc_bias");
  Classified result = classify(model);
  ASSERT_TRUE(result.find("fc.bias")) << result.messages;
  EXPECT_THAT(result.values["fc.bias"], ElementsAre(0, 0));
  EXPECT_EQ(importModel(model).failure, FailureKind::None);
}

TEST(Unfold, WhatIsGoneIsReported) {
  // `y = h + b` with b = [0], dropped as a sum with zero.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,3] x) => (float[2,2] y) <float[3,2] t = {1, 2, 3, 4, 5, 6}> { y = MatMul(x, t) })");
  setSignature(model, {"fc.weight", "shift"});
  setFoldedFrom(model, "t", "['fc.weight']");
  setOrigin(model, 0, "fc");
  EXPECT_THAT(classify(model).messages, HasSubstr("parameters of the program are not in the file"));
}

TEST(Unfold, AScaleIsOneMoreThanItsParameter) {
  ModelProto model = makeEvaluated("add_3", "2", {1.5, 1}, "norm.weight", "['norm.weight', 'scalar_tensor_default']");
  model.mutable_graph()->mutable_node(0)->set_op_type("Mul");
  Classified result = classify(model);
  ASSERT_TRUE(result.find("norm.weight")) << result.messages;
  EXPECT_THAT(result.values["norm.weight"], ElementsAre(0.5, 0));
  // A divisor is kept from zero by any number.
  model.mutable_graph()->mutable_node(0)->set_op_type("Div");
  EXPECT_THAT(classify(model).unfolded, IsEmpty());
}

TEST(Unfold, ScalesOfNormsWithoutNotes) {
  ModelProto model = parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2,2] x) => (float[2,2] y) <float[2] w = {1, 1}> {
      v = Identity(w)
      r = Sqrt(x)
      d = Div(x, r)
      a = Mul(d, w)
      q = Sqrt(a)
      e = Div(a, q)
      y = Mul(v, e)
    })");
  auto &graph = *model.mutable_graph();
  graph.mutable_initializer(0)->set_name("onnx::Mul_7");
  for (auto &node : *graph.mutable_node()) {
    for (auto *list : {node.mutable_input(), node.mutable_output()})
      for (std::string &name : *list)
        name = name == "w" ? "onnx::Mul_7" : name == "v" ? "onnx::Mul_8" : name;
    bool isFirst = node.output(0) == "r" || node.output(0) == "d" || node.output(0) == "a";
    if (node.op_type() != "Identity")
      node.set_name((isFirst ? "/n.0/" : "/n.1/") + node.op_type());
  }
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter), testing::UnorderedElementsAre("n.0.weight", "n.1.weight"));
  EXPECT_THAT(result.values["n.1.weight"], ElementsAre(0, 0));
}

TEST(Unfold, AnotherFormOfALivingParameter) {
  ModelProto model = parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2,4] x) => (float[1,2,4] y) <float[4] w = {1, 2, 3, 5}, float[1,1,4] v = {1, 2, 3, 5}> {
      h = Mul(x, w)
      y = Mul(h, v)
    })");
  auto &graph = *model.mutable_graph();
  graph.mutable_initializer(1)->set_name("onnx::Mul_7");
  graph.mutable_node(1)->set_input(1, "onnx::Mul_7");
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("w"));
  EXPECT_EQ(result.find("onnx::Mul_7"), nullptr);
  EXPECT_THAT(result.replaced, ElementsAre(Pair("onnx::Mul_7", ElementsAre("onnx::Mul_7"))));
}

/// `y = x · w + select`, where row `row` of `w` was evaluated by itself.
static ModelProto makePart(const std::string &table, const std::string &row) {
  ModelProto model = parseModel("<ir_version: 10, opset_import: [\"\" : 20]> g (float[2,3] x) => (float[2,2] y) "
                                "<float[3,2] w = {" +
                                table + "}, float[2] select = {" + row +
                                "}> "
                                "{ h = MatMul(x, w) y = Add(h, select) }");
  setSignature(model, {"w"});
  setFoldedFrom(model, "select", "['w', 'val_0']");
  return model;
}

TEST(Unfold, PartsOfALivingParameterAreTakenFromIt) {
  ModelProto model = makePart("1, 2, 3, 4, 5, 6", "3, 4");
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("w")) << result.messages;
  EXPECT_THAT(result.replaced, ElementsAre(Pair("select", ElementsAre("select"))));
  EXPECT_EQ(importModel(model).failure, FailureKind::None);
  // Which of equal rows it was, nothing tells.
  EXPECT_THAT(classify(makePart("3, 4, 3, 4, 5, 6", "3, 4")).messages, HasSubstr("is in the file twice"));
}

/// `z = table[ids] · joined`: `joined` is the table's transpose over a row of its own.
static ModelProto makeJoined(const std::string &joined) {
  ModelProto model = parseModel("<ir_version: 8, opset_import: [\"\" : 17]> g (int64[2] ids, float[2,3] x) => "
                                "(float[2,2] y, float[2,4] z) <float[4,2] table = {1, 2, 3, 4, 5, 6, 7, 8}, "
                                "float[3,4] joined = {" +
                                joined + "}> { y = Gather(table, ids) z = MatMul(x, joined) }");
  renameValue(model, "table", "words.weight");
  return model;
}

TEST(Unfold, AJoinedParameterIsTakenFromItsBlock) {
  // With notes, the part that is gone has its name.
  ModelProto model = makeJoined("1, 3, 5, 7, 2, 4, 6, 8, 0.5, 0.25, 0.125, 3.5");
  setSignature(model, {"words.weight", "head.own"});
  setFoldedFrom(model, "joined", "['head.own', 't', 'words.weight']");
  Classified result = classify(model);
  EXPECT_EQ(result.messages, "");
  EXPECT_THAT(result.names(InitializerRole::Parameter), testing::UnorderedElementsAre("words.weight", "head.own"));
  EXPECT_THAT(result.values["head.own"], ElementsAre(0.5, 0.25, 0.125, 3.5));
  EXPECT_EQ(importModel(model).failure, FailureKind::None);

  // Without, it is called after the module that reads it.
  model = makeJoined("0.5, 0.25, 0.125, 3.5, 1, 3, 5, 7, 2, 4, 6, 8");
  renameValue(model, "joined", "onnx::MatMul_9");
  model.mutable_graph()->mutable_node(1)->set_name("/head/MatMul");
  result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter), testing::UnorderedElementsAre("words.weight", "head.weight"));
  EXPECT_THAT(result.values["head.weight"], ElementsAre(0.5, 0.25, 0.125, 3.5));

  // Other numbers are another parameter.
  model = makeJoined("1, 3, 5, 7, 2, 4, 6, 9, 0.5, 0.25, 0.125, 3.5");
  renameValue(model, "joined", "onnx::MatMul_9");
  result = classify(model);
  EXPECT_TRUE(result.unfolded.empty());
}

TEST(Unfold, TheRestOfAJoinedParameterMayHaveSeveralNames) {
  ModelProto model = makeJoined("1, 3, 5, 7, 2, 4, 6, 8, 0.5, 0.25, 0.125, 3.5");
  setSignature(model, {"words.weight", "head.own", "head.tied"});
  setFoldedFrom(model, "joined", "['head.own', 'head.tied', 't']");
  Classified result = classify(model);
  EXPECT_THAT(result.messages, HasSubstr("does not tell which of head.own, head.tied it is"));
  EXPECT_THAT(result.names(InitializerRole::Parameter), testing::UnorderedElementsAre("words.weight", "head.own"));
}

TEST(Unfold, MergedReadersAreTakenApart) {
  // Both tokens are zeros, and the one Expand stands for two.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,1,2] x) => (float[2,3,2] y) <float[1,1,2] cls = {0, 0}, int64[3] shape = {2, 1, 2}> {
      expand = Expand(cls, shape)
      y = Concat<axis = 1>(expand, expand, x)
    })");
  setSignature(model, {"cls", "dist"});
  setOrigin(model, 0, "", "%p_cls, [2, 1, 2]");
  setOrigin(model, 1, "", "[%expand, %expand_1, %x], 1");
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter), testing::UnorderedElementsAre("cls", "dist"));
  EXPECT_THAT(result.values["dist"], ElementsAre(0, 0));
}

TEST(Unfold, TiedNamesAreNoMergedReaders) {
  // As above, but the module of `dist` reads `cls` in the program, too: they are one.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,1,2] x) => (float[2,3,2] y) <float[1,1,2] weight = {0, 0}, int64[3] shape = {2, 1, 2}> {
      expand = Expand(weight, shape)
      y = Concat<axis = 1>(expand, expand, x)
    })");
  renameValue(model, "weight", "cls.weight");
  setSignature(model, {"cls.weight", "dist.weight"});
  setOrigin(model, 0, "dist", "%p_cls_weight, [2, 1, 2]");
  setOrigin(model, 1, "", "[%expand, %expand_1, %x], 1");
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("cls.weight"));
  EXPECT_TRUE(result.unfolded.empty());
}

TEST(Unfold, StepsOfAFunctionAreNoFunctions) {
  // The exporter writes softplus by steps of its own, and the operation's name says what they come to.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2] x) => (float[2] y) <float t = {2.0}, float softplus = {2.126928}> {
      a = Div(x, t)
      y = Add(a, softplus)
    })");
  setSignature(model, {"t"});
  setFoldedFrom(model, "softplus", "['beta', 'beta_cast', 'self_scaled', 'softplus_2', 't', 'threshold', 'tmp']");
  Classified result = classify(model);
  EXPECT_EQ(result.messages, "");
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("t"));
  // Of another number, it is something else.
  model.mutable_graph()->mutable_initializer(1)->set_float_data(0, 2.2f);
  EXPECT_THAT(classify(model).messages, HasSubstr("is in the file twice"));
}

TEST(Unfold, TwoFunctionsOfAGoneParameterAreTakenFromOne) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2] x) => (float[2] y) <float[2] exp = {2.0, 4.0}, float[2] sigmoid = {0.6666667, 0.8}> {
      a = Mul(x, exp)
      y = Mul(a, sigmoid)
    })");
  setSignature(model, {"s"});
  setFoldedFrom(model, "exp", "['s']");
  setFoldedFrom(model, "sigmoid", "['s']");
  Classified result = classify(model);
  EXPECT_EQ(result.messages, "");
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("s"));
  EXPECT_THAT(result.values["s"], ElementsAre(testing::FloatEq(std::log(2.0f)), testing::FloatEq(std::log(4.0f))));
}

TEST(Unfold, FunctionsBesideTheirParameterWithoutNotes) {
  // 1 - mix and 0.5 * w, named after their readers.
  ModelProto model = parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[4] y)
    <float[4] mix = {0.25, 0.5, 0.125, 0.75}, float[4] a = {0.75, 0.5, 0.875, 0.25},
     float[4] w = {1, -2, 3, 0.5}, float[1,4] b = {0.5, -1, 1.5, 0.25}> {
      h0 = Mul(x, mix)
      h1 = Mul(x, a)
      h2 = Mul(h0, w)
      h3 = Mul(h1, b)
      y = Add(h2, h3)
    })");
  renameValue(model, "a", "onnx::Mul_7");
  renameValue(model, "b", "onnx::Mul_9");
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter), testing::UnorderedElementsAre("mix", "w"));
  EXPECT_THAT(result.replaced, ElementsAre(Pair("onnx::Mul_7", ElementsAre("onnx::Mul_7")),
                                           Pair("onnx::Mul_9", ElementsAre("onnx::Mul_9"))));
}

TEST(Unfold, MixturesOfMergedNumbersAreTakenApart) {
  // alpha * x + (1 - alpha) * x in two blocks; equal, so that the file has each number once.
  ModelProto model = parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
    g (float[4] x) => (float[4] y) <float alpha = {0.3}, float rest = {0.7}> {
      copy = Identity(alpha)
      also = Identity(rest)
      a = Mul(x, alpha)
      b = Mul(x, rest)
      c = Mul(a, copy)
      d = Mul(b, also)
      y = Add(c, d)
    })");
  renameValue(model, "alpha", "block.0.alpha");
  renameValue(model, "copy", "block.1.alpha");
  renameValue(model, "rest", "onnx::Mul_9");
  for (auto [node, name] :
       {std::pair{2, "/block.0/Mul"}, {3, "/block.0/Mul_1"}, {4, "/block.1/Mul"}, {5, "/block.1/Mul_1"}})
    model.mutable_graph()->mutable_node(node)->set_name(name);
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("block.0.alpha", "block.1.alpha"));
  EXPECT_EQ(result.find("onnx::Mul_9"), nullptr);
}

TEST(Unfold, WhatFitsByChanceIsLeftAlone) {
  // All of one number, nearly of one number, and a number whose name tells nothing.
  ModelProto model = parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[4] y)
    <float[4] w = {1, 1, 1, 1}, float[4] a = {0.5, 0.5, 0.5, 0.5}, float[4] v = {0.0001, 0.0002, 0.0003, 0.0004},
     float[4] b = {100.0001, 100.00002, 100.00003, 100.00004}, float gate = {0.3}, float c = {0.7}> {
      h0 = Mul(x, w)
      h1 = Mul(h0, a)
      h2 = Mul(h1, v)
      h3 = Mul(h2, b)
      h4 = Add(h3, gate)
      y = Mul(h4, c)
    })");
  renameValue(model, "a", "onnx::Mul_1");
  renameValue(model, "b", "onnx::Mul_3");
  renameValue(model, "c", "onnx::Mul_5");
  Classified result = classify(model);
  for (const char *image : {"onnx::Mul_1", "onnx::Mul_3", "onnx::Mul_5"})
    EXPECT_NE(result.find(image), nullptr) << image;
}
