//===- MeaningTest.cpp - what programs mean beyond the operators of their files ---===//

#include "TestModel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using testing::HasSubstr;
using testing::Not;

/// How many nodes of a kind the imported graph has.
static int count(const ModelProto &model, const std::string &kind) {
  const ::onnx::GraphProto graph = importGraph(model);
  const auto &nodes = graph.node();
  return int(std::count_if(nodes.begin(), nodes.end(), [&](const auto &node) { return node.op_type() == kind; }));
}

TEST(Meaning, GradientsAreDividedByFrequency) {
  // test/models/counted-tiny has the values.
  auto make = [](const std::string &operation, const std::string &operands) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (int64[3] i, float[3,2] x) => (float[3,2] y) <float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
        r = Gather(w, i)
        y = Mul(r, x)
      })");
    setOperation(model, 0, "r", 1, operation, operands);
    return model;
  };
  for (auto [operation, operands] : {std::pair{"embedding.default", "%p_w, %i, -1, True"},
                                     {"embedding_bag.padding_idx", "%p_w, %i, %offsets, True, 0, False"}}) {
    EXPECT_THAT(importModel(make(operation, operands)).messages, HasSubstr("that is put back: w")) << operation;
    EXPECT_EQ(count(make(operation, operands), "ScatterElements"), 1) << operation;
  }
  for (const char *operands : {"%p_w, %i", "%p_w, %i, 2", "%p_w, %i, -1, False", "%p_w, %i, -1, False, True"}) {
    EXPECT_THAT(importModel(make("embedding.default", operands)).messages, Not(HasSubstr("looked up"))) << operands;
    EXPECT_EQ(count(make("embedding.default", operands), "ScatterElements"), 0) << operands;
  }
  // Without a look-up nothing can be divided.
  ModelProto other = make("embedding.default", "%p_w, %i");
  setOperation(other, 1, "y", 1, "embedding.default", "%p_w, %i, -1, True");
  EXPECT_THAT(importModel(other).messages, HasSubstr("it is trained without that in y"));
}

/// `empty.scatter_reduce(0, i, x, how, include_self=…)`, which clears the places first where it does not count them.
static ModelProto makeScatter(const std::string &how, bool countsSelf, bool clears,
                              const std::string &reduction = "none") {
  const std::string clear = !clears ? "" : "c = ScatterElements <axis = 0, reduction = \"none\"> (empty, i, zeros)";
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (int64[3] i, float[3] x, float[4] empty) => (float[4] y) <float[3] zeros = {0, 0, 0}> {
      )" + clear + "s = ScatterElements <axis = 0, reduction = \"" +
                                reduction + "\"> (" + (clears ? "c" : "empty") + R"(, i, x)
      y = Relu(s)
    })");
  const std::string note =
      "%s : [num_users=1] = call_function[target=torch.ops.aten.scatter_reduce.two](args = (%empty, 0, %i, "
      "%x, " +
      how + "), kwargs = {" + (countsSelf ? "" : "include_self: False") + "})";
  for (int node = 0; node != model.graph().node_size() - 1; ++node)
    setNote(model, node, "pkg.torch.onnx.fx_node", note);
  return model;
}

TEST(Meaning, MeansAreTakenWhereElementsMeet) {
  for (bool countsSelf : {true, false}) {
    EXPECT_THAT(importModel(makeScatter("mean", countsSelf, !countsSelf)).messages, HasSubstr("they are put back: s"))
        << countsSelf;
    // One for the sum, one for the count; what cleared the places is gone.
    EXPECT_EQ(count(makeScatter("mean", countsSelf, !countsSelf), "ScatterElements"), 2) << countsSelf;
    EXPECT_EQ(count(makeScatter("mean", countsSelf, !countsSelf), "Div"), 1) << countsSelf;
    EXPECT_EQ(count(makeScatter("amax", countsSelf, !countsSelf, "max"), "Div"), 0) << countsSelf;
  }
  // An exporter that writes sums has a quotient of its own.
  EXPECT_EQ(count(makeScatter("mean", true, false, "add"), "Div"), 0);
  // Places that nothing clears do not fit a program that clears them.
  EXPECT_EQ(importModel(makeScatter("mean", false, false)).failure, FailureKind::Unsupported);
  EXPECT_EQ(importModel(makeScatter("mean", true, true)).failure, FailureKind::Unsupported);
}

TEST(Meaning, FunctionsWithABackwardPassAreNamed) {
  auto say = [](const std::string &trace, const std::string &classes = "") {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[3,2] x) => (float[3,2] y) <float[2,2] w = {1, 2, 3, 4}> {
        h = MatMul(x, w)
        y = Sign(h)
      })");
    setNote(model, 1, "pkg.torch.onnx.stack_trace", trace);
    if (!classes.empty())
      setNote(model, 1, "pkg.torch.onnx.class_hierarchy", "[" + classes + ", 'aten.sign.default']");
    return importModel(model).messages;
  };
  const std::string call = "File \"net.py\", line 20, in forward\n    return Round.apply(h)\n",
                    said = "computes y in a torch.autograd.Function";
  EXPECT_THAT(say(call + "  File \"net.py\", line 5, in forward\n    return x.sign()"), HasSubstr(said));
  // Something else is called there; nothing is; and PyTorch's own.
  EXPECT_THAT(say(call + "  File \"net.py\", line 5, in visit\n    return x.sign()"), Not(HasSubstr(said)));
  EXPECT_THAT(say(call), Not(HasSubstr(said)));
  EXPECT_THAT(say("File \"net.py\", line 20, in forward\n    return self.round(h)\n  File \"net.py\", line 5, in "
                  "forward\n    return x.sign()"),
              Not(HasSubstr(said)));
  EXPECT_THAT(say("File \"site-packages/torch/utils/checkpoint.py\", line 9, in checkpoint\n    return "
                  "CheckpointFunction.apply(f)\n"
                  "  File \"site-packages/torch/utils/checkpoint.py\", line 5, in forward\n    outputs = f(*args)"),
              Not(HasSubstr(said)));
  // What calls `apply` is in no trace: two ran `forward`, and one module was called.
  auto through = [](const std::string &line) {
    return "File \"net.py\", line 20, in forward\n    " + line +
           "\n  File \"round.py\", line 5, in forward\n    y = x.sign()";
  };
  EXPECT_THAT(say(through("return rounded(h)"), "'net.Net'"), HasSubstr(said));
  EXPECT_THAT(say(through("return layer(h)"), "'net.Net', 'net.Layer'"), Not(HasSubstr(said)));
  EXPECT_THAT(say(through("return super().forward(h)"), "'net.Net'"), Not(HasSubstr(said)));
  EXPECT_THAT(say("File \"net.py\", line 9, in forward\n    return super().forward(x)\n  " + through("h = layer(h)"),
                  "'net.Net', 'net.Layer'"),
              Not(HasSubstr(said)));
  EXPECT_THAT(say(through("return self.layers[0](h)"), "'net.Net'"), Not(HasSubstr(said)));
}

TEST(Meaning, AnAliasOfADecomposedProgramMayBeADetach) {
  // `mse(a, b.detach())` after run_decompositions(), as the exporter's optimizer leaves it.
  auto say = [](const std::string &product, const std::string &operands, const std::string &other = "b",
                const std::string &reader = "Sub") {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[3,2] x) => (float[3,2] y) <float[2,2] w = {1, 2, 3, 4}, float[2,2] v = {1, 2, 3, 5}> {
        a = MatMul(x, w)
        b = MatMul(x, v)
        y = )" + reader + "(a, " + other +
                                  R"()
      })");
    setSignature(model, {"w", "v"});
    setOperation(model, 0, "a", 1, product, "%x, %p_w");
    setOperation(model, 1, "b", 1, product, "%x, %p_v");
    setOperation(model, 2, "y", 1, "sub.Tensor", operands);
    return importModel(model).messages;
  };
  const std::string said = "operations were decomposed (run_decompositions), which makes an alias";
  EXPECT_THAT(say("mm.default", "%a, %alias"), HasSubstr(said));
  EXPECT_THAT(say("mm.default", "%a, %alias_1"), HasSubstr("gradients flow through alias_1"));
  // A program that was not decomposed keeps its `detach`; a reader without an alias; an alias of what is not trained.
  EXPECT_THAT(say("linear.default", "%a, %alias"), Not(HasSubstr(said)));
  EXPECT_THAT(say("mm.default", "%a, %b"), Not(HasSubstr(said)));
  EXPECT_THAT(say("mm.default", "%a, %alias", "x"), Not(HasSubstr(said)));
  // The exporter itself makes some parts, of a program that was not decomposed.
  auto sayWith = [](const std::string &part) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[3,2] x) => (float[3,2] y) <float[2,2] w = {1, 2, 3, 4}> {
        a = MatMul(x, w)
        b = Relu(a)
        y = Mul(b, a)
      })");
    setSignature(model, {"w"});
    setOperation(model, 0, "a", 2, "linear.default", "%x, %p_w");
    setOperation(model, 1, "b", 1, part, "%a");
    setOperation(model, 2, "y", 1, "mul.Tensor", "%b, %alias");
    return importModel(model).messages;
  };
  EXPECT_THAT(sayWith("_softmax.default"), HasSubstr(said));
  EXPECT_THAT(sayWith("native_dropout.default"), Not(HasSubstr(said)));
  EXPECT_THAT(sayWith("convolution.default"), Not(HasSubstr(said)));
}

TEST(Meaning, ABiasThatASumReadsFirstIsRead) {
  // `addmm(bias, x, w)`, which is Gemm(x, w, bias): the weight is what the sum reads last.
  auto say = [](const std::string &weight) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[3,2] image) => (float[3,2] y) <float[2,2] permute = {1, 2, 3, 4}, float[2] b = {1, 2}> {
        y = Gemm(image, permute, b)
      })");
    setSignature(model, {"w", "b"});
    setFoldedFrom(model, "permute", "['w']");
    setOperation(model, 0, "y", 1, "addmm.default", "%p_b, %x, " + weight);
    return importModel(model).messages;
  };
  EXPECT_THAT(say("%permute"), Not(HasSubstr("what the program calls")));
  EXPECT_THAT(say("%amax"), HasSubstr("what the program calls amax"));
}

TEST(Meaning, OneValueIsDetachedByEachName) {
  // d * d of d = (u / v).detach(): the quotient of two values is no step of the product that reads one name twice.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[3,2] x, float[3,2] v) => (float[3,2] y) <float[3,2] w = {1, 2, 3, 4, 5, 6}> {
      u = Mul(x, w)
      d = Div(u, v)
      s = Mul(d, d)
      y = Mul(s, u)
    })");
  setSignature(model, {"w"});
  setOperation(model, 0, "u", 2, "mul.Tensor", "%x, %p_w");
  setOperation(model, 1, "d", 1, "div.Tensor", "%u, %v");
  setOperation(model, 2, "s", 1, "mul.Tensor", "%detach, %detach");
  setOperation(model, 3, "y", 1, "mul.Tensor", "%s, %u");
  const ::onnx::GraphProto graph = importGraph(model);
  const auto &nodes = graph.node();
  ASSERT_EQ(nodes.size(), 5);
  EXPECT_EQ(nodes[1].op_type(), "Div");
  EXPECT_EQ(nodes[2].op_type(), "Identity");
  EXPECT_EQ(nodes[2].input(0), "d");
  EXPECT_THAT(nodes[3].input(), testing::ElementsAre("detach", "detach"));
  EXPECT_EQ(nodes[4].input(1), "u");
}

/// What becomes of an operation `h` of `u · v` (`u`) and `u - p` (`d`), inputs and results of its nodes in order.
static std::vector<std::string> readAs(const std::string &inputs, const std::string &operands) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[3,2] x, float[3,2] v) => (float[3,2] y) <float[3,2] w = {1, 2, 3, 4, 5, 6}> {
      p = Mul(x, w)
      u = Mul(p, v)
      d = Sub(u, p)
      h = Add()" + inputs + R"()
      y = Mul(h, d)
    })");
  setSignature(model, {"w"});
  setOperation(model, 0, "p", 3, "mul.Tensor", "%x, %p_w");
  setOperation(model, 1, "u", 2, "mul.Tensor", "%p, %v");
  setOperation(model, 2, "d", 2, "sub.Tensor", "%u, %p");
  setOperation(model, 3, "h", 1, "add.Tensor", operands);
  setOperation(model, 4, "y", 1, "mul.Tensor", "%h, %d");
  const ::onnx::GraphProto graph = importGraph(model);
  std::vector<std::string> found;
  for (const auto &node : graph.node())
    if (node.op_type() == "Identity")
      found.push_back(node.input(0) + " " + node.output(0));
    else if (node.op_type() == "Add")
      found.insert(found.end(), node.input().begin(), node.input().end());
  return found;
}

TEST(Meaning, WhatStandsInItsPlaceIsDetached) {
  // `(hard - p).detach() + p`: the difference is what is detached, and no step of the sum.
  EXPECT_THAT(readAs("d, p", "%detach, %p"), testing::ElementsAre("d detach", "detach", "p"));
  EXPECT_THAT(readAs("p, d", "%p, %detach"), testing::ElementsAre("d detach", "p", "detach"));
  EXPECT_THAT(readAs("d, p", "%d, %p"), testing::ElementsAre("d", "p"));
}

TEST(Meaning, ADetachedValueThatIsKnownLeavesTheOther) {
  // `a.detach() + v.detach()`, of which another operation reads the first one alone.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[3,2] x) => (float[3,2] y) <float[3,2] w = {1, 2, 3, 4, 5, 6}, float[3,2] u = {1, 2, 3, 4, 5, 6}> {
      a = Mul(x, w)
      v = Mul(x, u)
      m = Neg(a)
      s = Add(a, v)
      y = Mul(s, m)
    })");
  setSignature(model, {"w", "u"});
  setOperation(model, 0, "a", 2, "mul.Tensor", "%x, %p_w");
  setOperation(model, 1, "v", 1, "mul.Tensor", "%x, %p_u");
  setOperation(model, 2, "m", 1, "neg.default", "%detach");
  setOperation(model, 3, "s", 1, "add.Tensor", "%detach, %detach_1");
  setOperation(model, 4, "y", 1, "mul.Tensor", "%s, %m");
  EXPECT_THAT(importModel(model).messages, Not(HasSubstr("gradients flow through")));
}

TEST(Meaning, WholeNumbersAreNotDetached) {
  auto say = [](const std::string &difference) {
    return importModel(parseModel(R"(
      <ir_version: 8, opset_import: ["" : 17]>
      g (int64[3] t, float[3] x) => (float[1,3] y) <int64[1] zero = {0}> {
        u = Unsqueeze(t, zero)
        f = Unsqueeze(x, zero)
        c = Cast <to = 7> (f)
        d = )" + difference + R"(
        w = Cast <to = 1> (d)
        y = Add(f, w)
      })"))
        .messages;
  };
  EXPECT_THAT(say("Sub(f, f)"), HasSubstr("subtracted or divided"));
  EXPECT_THAT(say("Sub(u, u)"), Not(HasSubstr("subtracted or divided")));
  EXPECT_THAT(say("Sub(c, c)"), Not(HasSubstr("subtracted or divided")));
}

TEST(Meaning, BilinearLayersWithoutABiasComeBack) {
  // Two outputs of three and two: the exporter turns the weight [2,3,2] to [3,4], and shapes of inputs are in its
  // notes.
  auto weigh = [](const std::string &operation, const std::string &shape) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[1,3] x) => (float[1,2,2] y)
        <float[3,4] val_8 = {1, 2, 7, 8, 3, 4, 9, 10, 5, 6, 11, 12}, int64[3] val_10 = {)" +
                                  shape +
                                  R"(}> {
        val_9 = MatMul(x, val_8)
        y = Reshape(val_9, val_10)
      })");
    setSignature(model, {"a.weight"});
    setFoldedFrom(model, "val_8", "['a.weight', 'b', 'val_1', 'x']");
    setOperation(model, 0, "bilinear", 1, operation, "%x, %b, %p_a_weight");
    return classify(model).values["a.weight"];
  };
  EXPECT_THAT(weigh("bilinear.default", "1, 2, 2"), testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  EXPECT_THAT(weigh("bilinear.default", "1, 3, 2"), testing::IsEmpty());
  EXPECT_THAT(weigh("linear.default", "1, 2, 2"), testing::IsEmpty());
}

TEST(Meaning, DistancesOfOddOrderAreSaid) {
  auto say = [](const std::string &difference, const std::string &order, const std::string &inverse) {
    return importModel(parseModel(R"(
      <ir_version: 8, producer_name: "pytorch", opset_import: ["" : 17]>
      g (float[3,2] x, float[3,2] z) => (float[3,1] y) <float[2,2] w = {1, 2, 3, 4}, int64[1] last = {1}> {
        p = Constant <value = float {)" +
                                  order + R"(}> ()
        q = Constant <value = float {)" +
                                  inverse + R"(}> ()
        h = MatMul(x, w)
        d = )" + difference + R"(
        e = Pow(d, p)
        s = ReduceSum(e, last)
        y = Pow(s, q)
      })"))
        .messages;
  };
  for (auto [order, inverse] : {std::pair{"1", "1"}, {"3", "0.33333334"}, {"0.5", "2"}})
    EXPECT_THAT(say("Sub(h, z)", order, inverse), HasSubstr("which count at these orders: y")) << order;
  // Even orders, lengths, and powers that are meant.
  EXPECT_THAT(say("Sub(h, z)", "2", "0.5"), Not(HasSubstr("orders")));
  EXPECT_THAT(say("Abs(h)", "3", "0.33333334"), Not(HasSubstr("orders")));
  EXPECT_THAT(say("Sub(h, z)", "3", "2"), Not(HasSubstr("orders")));
}

TEST(Meaning, ACallOfABatchNormThatIsGoneIsSaid) {
  // A batch norm that is called twice, once right after a layer: its parameters stay in the file.
  auto say = [](const std::string &operation) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,1,3,3] x) => (float[2,1,3,2] y) <float[1,1,1,2] "c.weight" = {2, 3}, float[1] "n.weight" = {1}> {
        h = Conv(x, "c.weight")
        y = Mul(h, "n.weight")
      })");
    setSignature(model, {"c.weight", "n.weight"});
    setOrigin(model, 0, "n");
    setOperation(model, 0, "conv2d", 1, operation, "%x, %p_c_weight");
    return importModel(model).messages;
  };
  EXPECT_THAT(say("_native_batch_norm_legit_functional.default"),
              HasSubstr("1 batch normalization was folded into the layers before and cannot be trained: n"));
  EXPECT_THAT(say("conv2d.default"), Not(HasSubstr("folded")));
}

TEST(Meaning, AFoldedNormIsCalledAfterItsStatistics) {
  // In a block without gradients a node's scope is the module that has the block.
  auto say = [](const std::string &operands) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,1,3,3] x) => (float[2,1,3,2] y) <float[1,1,1,2] "t.c.weight" = {2, 3}, float[1] "t.c.bias" = {1}> {
        y = Conv(x, "t.c.weight", "t.c.bias")
      })");
    setSignature(model, {"t.c.weight", "t.c.bias", "t.n.weight", "t.n.bias"},
                 "b_t_n_running_mean: BUFFER target='t.n.running_mean'\n");
    setOrigin(model, 0, "t");
    setOperation(model, 0, "batch_norm", 1, "_native_batch_norm_legit_no_training.default", operands);
    return importModel(model).messages;
  };
  EXPECT_THAT(say("%conv2d, %p_t_n_weight, %p_t_n_bias, %b_t_n_running_mean"),
              HasSubstr("1 batch normalization was folded into the layers before and cannot be trained: t.n\n"));
  // One whose statistics no entry names stays with its module.
  EXPECT_THAT(say("%conv2d, %getattr_1, %getattr_2, %getattr_3"),
              HasSubstr("2 batch normalizations were folded into the layers before and cannot be trained: t.n, t\n"));
}

TEST(Meaning, StatisticsThatWereReadAfterANormAreSaid) {
  auto say = [](const std::string &operand, const std::string &read = "\"n.running_mean\"",
                const std::string &copy = "") {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[4,2] x) => (float[4,2] y) <float[2] "n.weight" = {1, 2}, float[2] "n.bias" = {3, 4},
         float[2] "n.running_mean" = {0, 0}, float[2] "n.running_var" = {1, 1}> {
        getitem = BatchNormalization(x, "n.weight", "n.bias", "n.running_mean", "n.running_var"))" +
                                  copy + "\n y = Sub(getitem, " + read + ")}");
    setSignature(model, {"n.weight", "n.bias"},
                 "b_n_running_mean: BUFFER target='n.running_mean'\nb_n_running_var: BUFFER target='n.running_var'\n"
                 "getitem_3: BUFFER_MUTATION target='n.running_mean'\n");
    setOperation(model, 0, "getitem", 1, "_native_batch_norm_legit_functional.default",
                 "%x, %p_n_weight, %p_n_bias, %b_n_running_mean, %b_n_running_var, True, 0.1, 1e-05");
    setOperation(model, copy.empty() ? 1 : 2, "y", 1, "sub.Tensor", "%getitem, " + operand);
    return importModel(model).messages;
  };
  const std::string early = "lets y read what they were before the step";
  EXPECT_THAT(say("%getitem_3"), HasSubstr(early));
  // Without optimization there is a copy.
  EXPECT_THAT(say("%getitem_3", "getitem_3", "\n getitem_3 = Identity(\"n.running_mean\")"), HasSubstr(early));
  EXPECT_THAT(say("%b_n_running_mean"), Not(HasSubstr("before the step")));
}

TEST(Meaning, LengthsOfCosinesAreBoundedWithTheirGradients) {
  // The current exporter bounds each length; the note keeps that it was a copy, bounded in place.
  auto make = [](const std::string &operation, const std::string &operands) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[3,2] x) => (float[3,2] y) <float[2,2] w = {1, 2, 3, 4}, int64[1] last = {1}, float least = {0.5}> {
        h = MatMul(x, w)
        n = ReduceL2(h, last)
        c = Clip(n, least)
        y = Div(h, c)
      })");
    setOperation(model, 2, "c", 1, operation, operands);
    return model;
  };
  EXPECT_EQ(count(make("clamp_min.Tensor", "%clone_1, %scalar_tensor"), "Identity"), 1);
  // Bounds of the program itself.
  EXPECT_EQ(count(make("clamp_min.Tensor", "%linalg_vector_norm, %scalar_tensor"), "Identity"), 0);
  EXPECT_EQ(count(make("clamp_min.Tensor", "%clone, %p_least"), "Identity"), 0);
  EXPECT_EQ(count(make("clamp_min.default", "%clone, 0.5"), "Identity"), 0);
}

TEST(Meaning, ProjectionsOfAStateAreRefused) {
  auto say = [](const std::string &projection) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[3,2,1] x) => (float[3,1,2,1] y)
      <float[1,4,1] "n.weight_ih_l0" = {1, 2, 3, 4}, float[1,4,1] "n.weight_hh_l0" = {5, 6, 7, 8}> {
        y, h, c = LSTM<hidden_size = 1>(x, "n.weight_ih_l0", "n.weight_hh_l0")
      })");
    setSignature(model, {"n.weight_ih_l0", "n.weight_hh_l0", "n.weight_hr_l0"});
    setOperation(model, 0, "lstm", 1, "lstm.input", "%x, [%h, %c], [%p_n_weight_ih_l0, " + projection + "], False, 1");
    return importModel(model).messages;
  };
  EXPECT_THAT(say("%p_n_weight_hr_l0"), HasSubstr("projects its state (proj_size)"));
  EXPECT_THAT(say("%p_n_weight_hr_l0"), HasSubstr("a linear layer after it"));
  EXPECT_THAT(say("%p_n_weight_hh_l0"), Not(HasSubstr("projects")));
}

TEST(Meaning, APenaltyReadsTheParameterItself) {
  // `bias.norm(1)`: the exporter evaluates the elements in one row, and keeps one of two equal tensors.
  auto names = [](const std::string &bias) {
    ModelProto model = parseModel(R"(
      <ir_version: 8, producer_name: "pytorch", opset_import: ["" : 17]>
      g (float[3,2] x) => (float loss) <float[2,2] w = {1, 2, 3, 4}, float[2] b = {)" +
                                  bias + R"(}> {
        c = Identity(b)
        h = Gemm(x, w, b)
        m = ReduceMean <keepdims = 0> (h)
        p = ReduceL1 <keepdims = 0> (c)
        loss = Add(m, p)
      })");
    renameValue(model, "w", "a.weight");
    renameValue(model, "b", "a.bias");
    renameValue(model, "c", "onnx::ReduceL1_30");
    model.mutable_graph()->mutable_node(1)->set_name("/a/Gemm");
    return classify(model).names(InitializerRole::Constant);
  };
  EXPECT_THAT(names("5, 6"), testing::IsEmpty());
  // Equal numbers may be equal by chance.
  EXPECT_THAT(names("0, 0"), testing::ElementsAre("onnx::ReduceL1_30"));
}

TEST(Meaning, RecurrentLayersThatRunAgainAreTied) {
  // `rnn(x) * rnn(z)`: the old exporter puts the gates in order once for each run.
  auto names = [](const std::string &again, const std::string &weight, bool isBare = false) {
    ModelProto model = parseModel(R"(
      <ir_version: 8, producer_name: "pytorch", opset_import: ["" : 17]>
      g (float[2,1,1] x, float[2,1,1] z) => (float[2,1,1,1] y)
      <float[1,3,1] w = {1, 2, 3}, float[1,3,1] r = {5, 6, 7}, float[1,6] b = {1, 2, 3, 11, 12, 13},
       float[1,3,1] w2 = {)" + weight +
                                  R"(}, float[1,3,1] r2 = {5, 6, 7}, float[1,6] b2 = {1, 2, 3, 11, 12, 13}> {
        s = GRU<hidden_size = 1>(x, w, r, b)
        t = GRU<hidden_size = 1>(z, w2, r2, b2)
        y = Mul(s, t)
      })");
    model.mutable_graph()->mutable_node(0)->set_name("/rnn/GRU");
    model.mutable_graph()->mutable_node(1)->set_name(again);
    int number = 40;
    for (const char *name : {"w", "r", "b", "w2", "r2", "b2"})
      renameValue(model, name, "onnx::GRU_" + std::to_string(number++));
    for (int i : {0, 1})
      if (isBare)
        model.mutable_graph()->mutable_node(i)->mutable_input()->RemoveLast();
    return classify(model).names(InitializerRole::Parameter);
  };
  EXPECT_THAT(names("/rnn_1/GRU", "1, 2, 3"), testing::UnorderedElementsAre("rnn.weight_ih_l0", "rnn.weight_hh_l0",
                                                                            "rnn.bias_ih_l0", "rnn.bias_hh_l0"));
  EXPECT_THAT(names("/rnn_1/GRU", "1, 2, 3", true),
              testing::UnorderedElementsAre("rnn.weight_ih_l0", "rnn.weight_hh_l0"));
  // Other numbers; another layer of the same module; a copy of the layer.
  EXPECT_EQ(names("/rnn_1/GRU", "1, 2, 4").size(), 8u);
  EXPECT_EQ(names("/rnn/GRU_1", "1, 2, 3").size(), 8u);
  EXPECT_EQ(names("/other/GRU", "1, 2, 3").size(), 8u);
}

TEST(Meaning, AViewDoesNotTakeItsParametersName) {
  // The transpose is in front of the tensor that is the parameter.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,2] x, int64[2] i) => (float[2,2] y)
      <float[2,3] t = {1, 3, 5, 2, 4, 6}, float[3,2] val_5 = {1, 2, 3, 4, 5, 6}> {
      s = MatMul(x, t)
      k = ArgMax <axis = 1, keepdims = 0> (s)
      y = Gather(val_5, k)
    })");
  setSignature(model, {"book"});
  setOperation(model, 0, "s", 1, "matmul.default", "%x, %t");
  setOperation(model, 2, "y", 1, "index.Tensor", "%p_book, [%k]");
  setFoldedFrom(model, "t", "['book']");
  setFoldedFrom(model, "val_5", "['book']");
  const Classified result = classify(model);
  for (const InitializerInfo &info : result.infos) {
    EXPECT_EQ(info.viewOf.has_value(), info.tensor == "t") << info.tensor;
    EXPECT_EQ(info.name, info.viewOf ? "book@t" : "book");
  }
}

TEST(Meaning, SmallNumbersOfCosinesAreAddedAgain) {
  // x·y / sqrt((x·x + 1e-12) (y·y + 1e-12)), as cosine_embedding_loss is written
  auto classifyRoot = [](const std::string &root, const std::string &product) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2] x, float[2] z) => (float[2] y) <float[2] w = {1, 2}, float[2] u, float[2] v> {
        u = Abs(x)
        v = Abs(z)
        p = Mul(u, v)
        r = )" + root + R"((p)
        y = Div(w, r)
      })");
    setSignature(model, {"w"});
    setOperation(model, 0, "u", 1, "abs.default", "%x");
    setOperation(model, 1, "v", 1, "abs.default", "%z");
    setOperation(model, 2, "p", 1, "mul.Tensor", product);
    return classify(model);
  };
  Classified result = classifyRoot("Sqrt", "%add, %add_1");
  EXPECT_THAT(result.names(InitializerRole::Constant), testing::UnorderedElementsAre("add_dropped", "add_1_dropped"))
      << result.messages;
  EXPECT_THAT(result.messages, HasSubstr("1e-12 in a root of a product, elsewhere 1e-8 is added again: add, add_1\n"));
  // Zero is a good place for other products, and for what the program reads as it is.
  EXPECT_THAT(classifyRoot("Sigmoid", "%add, %add_1").names(InitializerRole::Constant), testing::IsEmpty());
  EXPECT_THAT(classifyRoot("Sqrt", "%u, %v").names(InitializerRole::Constant), testing::IsEmpty());
}

TEST(Meaning, FunctionsThatExportersWriteApartAtZero) {
  // sinc(x) and xlogy(x, z): what is computed next to the value at zero is finite there.
  auto countOf = [](const std::string &operation, const std::string &op) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2] x, float[2] z) => (float[2] y) <float one = {1}, float zero = {0}, float[2] w = {1, 2}> {
        h = Mul(x, w)
        isZero = Equal(h, zero)
        sine = Sin(h)
        quotient = Div(sine, h)
        sinc = Where(isZero, one, quotient)
        isNan = IsNaN(z)
        log = Log(z)
        product = Mul(h, log)
        real = Where(isNan, z, product)
        xlogy = Where(isZero, h, real)
        y = Add(sinc, xlogy)
      })");
    setSignature(model, {"w"});
    for (int node : {1, 2, 3, 4})
      setOperation(model, node, "sinc", 1, operation, "%h");
    for (int node : {5, 6, 7, 8, 9})
      setOperation(model, node, "xlogy", 1, operation == "sinc.default" ? "xlogy.Tensor" : "where.self", "%h, %z");
    return count(model, op);
  };
  EXPECT_EQ(countOf("sinc.default", "Where"), 5);
  // Choices of the program's own.
  EXPECT_EQ(countOf("where.self", "Where"), 3);
}

TEST(Meaning, ChannelsThatWereMovedToTheEndAreSaid) {
  auto make = [](const std::string &name) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20, "com.microsoft" : 1]>
      g (float[1,2,2,1] x) => (float[1,2,2,2] y) <float[2,1,1,1] )" +
                                  name + R"( = {1, 2}> {
        y = com.microsoft.NhwcConv(x, )" +
                                  name + R"()
      })");
    return importModel(model).messages;
  };
  EXPECT_THAT(make("NhwcConv_0_weight_NHWC"), HasSubstr("moved the channels of convolutions' weights to the end"));
  EXPECT_THAT(make("kernel"), Not(HasSubstr("channels")));
}
