//===- ExporterFormsTest.cpp - what exporters write for what ONNX has no word for --===//

#include "TestModel.h"

#include "lowtide/Recover/Evidence.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <cstring>

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// An instance norm without a scale that keeps statistics; tensors of ones and zeros stand where its operator needs
/// them.
static Classified classifyInstanceNorm(const std::string &operands, bool isFolded) {
  ModelProto model =
      parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,2,3] x) => (float[2,2,3] y) <float[2,2,1] "c.weight" = {2, 3, 4, 5})" +
                 std::string(isFolded ? R"(, float[2] val_3 = {1, 1}, float[2] val_7 = {0, 0})" : "") +
                 "> { c = Conv(x, \"c.weight\") " + (isFolded ? "" : R"(val_3 = Constant<value = float[2] {1, 1}>()
                                                    val_7 = Constant<value = float[2] {0, 0}>())") +
                 " y = InstanceNormalization(c, val_3, val_7) }");
  const bool isScaled = operands.find("p_n_weight") != std::string::npos;
  setSignature(model,
               isScaled ? std::vector<std::string>{"c.weight", "n.weight", "n.bias"}
                        : std::vector<std::string>{"c.weight"},
               "b_n_running_mean: BUFFER target='n.running_mean'\nb_n_running_var: BUFFER target='n.running_var'\n");
  const int norm = model.graph().node_size() - 1;
  setOperation(model, norm, "instance_norm", 1, "instance_norm.default", operands);
  setNote(model, norm, "pkg.torch.onnx.name_scopes", "['', 'n', 'instance_norm']");
  return classify(model);
}

TEST(KeptStatistics, BareInstanceNormsHaveConstantScales) {
  const std::string kept = "%c, None, None, %b_n_running_mean, %b_n_running_var, True, 0.2, 1e-05, False";
  for (bool isFolded : {true, false}) {
    Classified result = classifyInstanceNorm(kept, isFolded);
    EXPECT_EQ(result.failure, FailureKind::None) << result.messages;
    EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("c.weight"));
    EXPECT_THAT(result.messages, Not(HasSubstr("folded into the layers before")));
  }
  // Those of a norm that has a scale and a shift are these.
  Classified scaled = classifyInstanceNorm("%c, %p_n_weight, %p_n_bias, None, None, True, 0.2, 1e-05, False", true);
  EXPECT_THAT(scaled.names(InitializerRole::Parameter), ElementsAre("c.weight", "n.weight", "n.bias"));
}

TEST(KeptStatistics, RepeatedOnesAreOfANormThatTrains) {
  // Scale and shift of an instance norm in inference form are trained, unlike those of a detector's frozen norm.
  Classified result = classify(parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
    g (float[1,4,3] x) => (float[1,4,3] y)
    <float[2] "n.weight" = {1, 2}, float[2] "n.bias" = {3, 4}, float[2] "n.running_mean" = {0.3, 0.2},
     float[2] "n.running_var" = {0.9, 0.8}, int64[1] two = {2}> {
      w = Tile("n.weight", two) b = Tile("n.bias", two) m = Tile("n.running_mean", two) v = Tile("n.running_var", two)
      y = BatchNormalization(x, w, b, m, v)
    })"));
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("n.weight", "n.bias"));
  EXPECT_THAT(result.messages, Not(HasSubstr("frozen norms")));
}

TEST(KeptStatistics, AveragesOverAllBatchesAreSaid) {
  auto say = [](const std::string &attributes, const std::string &results = "y") {
    return importModel(parseModel(R"(
      <ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
      g (float[4,2] x) => (float[4,2] y)
      <float[2] "n.weight" = {1, 2}, float[2] "n.bias" = {3, 4}, float[2] "n.running_mean" = {0.3, 0.2},
       float[2] "n.running_var" = {0.9, 0.8}> {
        )" + results + " = BatchNormalization<" +
                                  attributes + R"(>(x, "n.weight", "n.bias", "n.running_mean", "n.running_var")
      })"))
        .messages;
  };
  for (const std::string &said : {say("momentum = 1.0"), say("momentum = 0.0, training_mode = 1", "y, m, v")})
    EXPECT_THAT(said, HasSubstr("(momentum=None), for which ONNX has no word: their running statistics are not "
                                "averaged: n"));
  for (const std::string &silent :
       {say("momentum = 0.9"), say("momentum = 0.0"), say("momentum = 1.0, training_mode = 1", "y, m, v"),
        say("training_mode = 1", "y, m, v")})
    EXPECT_THAT(silent, Not(HasSubstr("momentum=None")));
}

TEST(Cleaned, LayersThatWereScaledAreSaid) {
  // onnxslim multiplied the weight and the bias by what the program multiplies the layer's result by.
  auto say = [](const std::string &weight, const std::string &bias) {
    return importModel(parseModel(R"(
      <ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
      g (float[6,3] x) => (float[2,3,2] y)
      <float[2,3] ")" + weight + R"(" = {1, 2, 3, 4, 5, 6}, float[2] ")" +
                                  bias + R"(" = {1, 2}, int64[3] dims = {2, 3, 2}> {
        r = Gemm<transB = 1>(x, ")" +
                                  weight + R"(", ")" + bias + R"(")
        y = Reshape(r, dims)
      })"))
        .messages;
  };
  const std::string said = "multiplied weights and biases of layers by what the program multiplies their results by";
  EXPECT_THAT(say("y_weight_fused", "y_bias_fused"), HasSubstr(said));
  EXPECT_THAT(say("a.weight", "y_bias_fused"), HasSubstr("is training neither: y_bias_fused"));
  EXPECT_THAT(say("a.weight", "a.bias"), Not(HasSubstr(said)));
  // A parameter that a program calls so.
  EXPECT_THAT(say("a.weight_fused", "a.bias_fused"), Not(HasSubstr(said)));
}

TEST(Distances, WithoutAbsoluteValuesAreSaid) {
  // The exporter writes the root as 1 / (p + 1e-6), which a file that is not folded leaves to be computed.
  auto say = [](const std::string &order, const std::string &root) {
    return importModel(parseModel(R"(
      <ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
      g (float[3,2] a, float[3,2] b) => (float[3] y) <int64[1] last = {-1}> {
        d = Sub(a, b)
        p = Constant<value = float {)" +
                                  order + R"(}>()
        power = Pow(d, p)
        sum = ReduceSum<keepdims = 0>(power, last)
        )" + root + R"(
        y = Pow(sum, q)
      })"))
        .messages;
  };
  const std::string computed = R"(e = Constant<value = float {0.000001}>() s = Add(p, e)
                                  one = Constant<value = float {1.0}>() q = Div(one, s))";
  for (const std::string &said :
       {say("1.0", computed), say("3.0", computed), say("1.0", "q = Constant<value = float {1.0}>()")})
    EXPECT_THAT(said, HasSubstr("without their absolute values, which count at these orders: y"));
  // Even orders, and powers that are no distance.
  for (const std::string &silent : {say("2.0", computed), say("3.0", "q = Constant<value = float {0.5}>()"),
                                    say("3.0", "q = Div(p, p)"), say("3.0", "q = Add(p, p)")})
    EXPECT_THAT(silent, Not(HasSubstr("absolute values")));
}

TEST(Pools, OfAllPlacesPickOneElement) {
  auto isPool = [](const std::string &operation, const std::string &modules, const std::string &line) {
    ::onnx::NodeProto node;
    node.set_op_type("ReduceMax");
    for (const auto &[key, value] :
         {std::pair<std::string, std::string>("class_hierarchy", "['M', " + modules + "'aten." + operation + "']"),
          std::pair<std::string, std::string>("stack_trace", "File \"net.py\", line 7, in forward\n    " + line)}) {
      auto *prop = node.add_metadata_props();
      prop->set_key("pkg.torch.onnx." + key);
      prop->set_value(value);
    }
    return isOfMaximumPool(node);
  };
  EXPECT_TRUE(isPool("amax.default", "'torch.nn.modules.pooling.AdaptiveMaxPool2d', ", ""));
  EXPECT_TRUE(isPool("amax.default", "", "h = F.adaptive_max_pool1d(h, 1)"));
  EXPECT_TRUE(isPool("amax.default", "", "h = getattr(F, f'adaptive_max_pool{d}d')(h, 1)\n"));
  EXPECT_FALSE(isPool("amax.default", "", "h = h.amax(-1)  # as adaptive_max_pool1d, but ties share"));
  EXPECT_FALSE(isPool("amax.default", "", "h = h.amax((-2, -1), keepdim=True)"));
  EXPECT_FALSE(isPool("amax.default", "", "adaptive_max_pooled = h.amax(-1)"));
  EXPECT_TRUE(isPool("amax.default", "", "adaptive_max_pool_out = F.adaptive_max_pool1d(h, 1)"));
  EXPECT_FALSE(isPool("amin.default", "", "h = -F.adaptive_max_pool1d(-h, 1)"));
}

/// `buffer[:2] = h` of rows, and a loss that reads the buffer; who writes names what it writes `written`.
static ModelProto makeWritten(const std::string &written, const std::string &copy = "") {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[3,2] x) => (float[3,2] y)
    <float[2] w = {1, 2}, float[3,2] k = {0, 0, 0, 0, 0, 0}, int64[2,1] rows = {0, 1}, int64[2] first = {0, 1}> {
      h = Mul(x, w)
      part = Gather(h, first)
      )" + copy + R"(
      all = ScatterND(k, rows, part)
      y = Mul(h, all)
    })");
  setSignature(model, {"w"},
               "b_k: BUFFER target='k' persistent=True\nx: USER_INPUT\n\n# outputs\nall: BUFFER_MUTATION target='k'\n"
               "y: USER_OUTPUT\n");
  setOperation(model, 0, "h", 2, "mul.Tensor", "%x, %p_w");
  setOperation(model, 1, "part", 1, "slice.Tensor", "%h, 0, 0, 2");
  setOperation(model, copy.empty() ? 2 : 3, "all", 2, "slice_scatter.default", "%b_k, %" + written + ", 0, 0, 2");
  setOperation(model, copy.empty() ? 3 : 4, "y", 1, "mul.Tensor", "%h, %all");
  return model;
}

TEST(AssignedParts, AreDetachedWhereTheirCopyIsGone) {
  EXPECT_THAT(importModel(makeWritten("copy")).messages,
              HasSubstr("would end the next step: no gradient flows through all"));
  EXPECT_THAT(importModel(makeWritten("copy_2")).messages, HasSubstr("no gradient flows through all"));
  // What stands in the file is as the program has it.
  EXPECT_THAT(importModel(makeWritten("part")).messages, Not(HasSubstr("no gradient flows")));
  EXPECT_THAT(importModel(makeWritten("copy", "copy = Identity(part)")).messages, Not(HasSubstr("no gradient flows")));
}

TEST(AssignedParts, ThatWereEvaluatedAreSaid) {
  auto say = [](const std::string &folded) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, float[2] k = {0, 3}, float[2] old = {0, 6}> {
        h = Mul(x, w)
        all = Add(h, k)
        z = Add(all, old)
        y = Relu(z)
      })");
    setSignature(model, {"w"},
                 "b_k: BUFFER target='k' persistent=True\nx: USER_INPUT\n\n# outputs\nall: BUFFER_MUTATION target='k'\n"
                 "y: USER_OUTPUT\n");
    setFoldedFrom(model, "old", folded);
    setOperation(model, 0, "h", 1, "mul.Tensor", "%x, %p_w");
    setOperation(model, 1, "all", 1, "add.Tensor", "%h, %b_k");
    setOperation(model, 2, "z", 1, "add.Tensor", "%all, %slice_1");
    setOperation(model, 3, "y", 1, "relu.default", "%z,");
    return importModel(model).messages;
  };
  EXPECT_THAT(say("['k', 'val_0']"), HasSubstr("the step computes with their first values for ever: k"));
  EXPECT_THAT(say("['val_0']"), Not(HasSubstr("for ever")));
}

TEST(DetachedPieces, EachReadsItsOwnValue) {
  // `stack([a.detach(), b.detach(), c.detach()], 1)` is a node for each, whose notes name all three; products read two.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[3,2] x) => (float[3,3,2] y)
      <float[3,2] w = {1, 2, 3, 4, 5, 6}, float[3,2] u = {1, 2, 3, 4, 5, 6}, float[3,2] t = {1, 2, 3, 4, 5, 6}, int64[1] one = {1}> {
      a = Mul(x, w)
      b = Mul(x, u)
      c = Mul(x, t)
      m = Neg(a)
      n = Neg(b)
      k = Mul(m, n)
      ka = Unsqueeze(a, one)
      kb = Unsqueeze(b, one)
      kc = Unsqueeze(c, one)
      stack = Concat <axis = 1> (ka, kb, kc)
      kk = Unsqueeze(k, one)
      y = Mul(stack, kk)
    })");
  setSignature(model, {"w", "u", "t"});
  setOperation(model, 0, "a", 2, "mul.Tensor", "%x, %p_w");
  setOperation(model, 1, "b", 2, "mul.Tensor", "%x, %p_u");
  setOperation(model, 2, "c", 1, "mul.Tensor", "%x, %p_t");
  setOperation(model, 3, "m", 1, "neg.default", "%detach");
  setOperation(model, 4, "n", 1, "neg.default", "%detach_1");
  setOperation(model, 5, "k", 1, "mul.Tensor", "%m, %n");
  for (int i : {6, 7, 8, 9})
    setOperation(model, i, "stack", 1, "stack.default", "[%detach, %detach_1, %detach_2], 1");
  setOperation(model, 10, "kk", 1, "unsqueeze.default", "%k, 1");
  setOperation(model, 11, "y", 1, "mul.Tensor", "%stack, %kk");
  const ::onnx::GraphProto graph = importGraph(model);
  std::vector<std::string> read;
  for (const auto &node : graph.node())
    if (node.op_type() == "Identity" || (node.op_type() == "Unsqueeze" && node.output(0) != "kk"))
      read.push_back(node.input(0) + " " + node.output(0));
  EXPECT_THAT(read, testing::UnorderedElementsAre("a detach", "b detach_1", "c detach_2", "detach ka", "detach_1 kb",
                                                  "detach_2 kc"));
}

TEST(Standardized, FiltersThatABatchNormReadsAreTheLayersWeight) {
  // PyTorch's old exporter evaluates the filters as a matrix, and turned for the statistics; the module's scale of them
  // is another tensor.
  const std::string text = R"(
    <ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
    g (float[1,1,3,3] x) => (float[1,2,2,2] y)
    <float[1,2,4] "onnx::BatchNormalization_1" = {1, 2, 3, 5, 7, 11, 13, 17},
     float[1,4,2] "onnx::ReduceMean_2" = {1, 7, 2, 11, 3, 13, 5, LAST}, float[2] "onnx::BatchNormalization_3" = {0.3, 0.4},
     int64[4] "onnx::Reshape_4" = {SHAPE}> {
      "/net/c/Constant_output_0" = Constant<value = float[2] {0, 0}>()
      mean = ReduceMean<axes = [0, 1], keepdims = 0>("onnx::ReduceMean_2")
      n, a, b = BatchNormalization<training_mode = 1>("onnx::BatchNormalization_1", "onnx::BatchNormalization_3", "/net/c/Constant_output_0", mean, mean)
      w = Reshape(n, "onnx::Reshape_4")
      y = Conv(x, w)
    })";
  auto read = [&](const std::string &last, const std::string &shape, const char *layer = "/net/c/Conv") {
    std::string whole = text;
    whole.replace(whole.find("LAST"), 4, last);
    whole.replace(whole.find("SHAPE"), 5, shape);
    ModelProto model = parseModel(whole);
    for (auto &node : *model.mutable_graph()->mutable_node())
      node.set_name(node.op_type() == "Conv" ? layer : "/net/c/" + node.op_type());
    return classify(model);
  };
  Classified result = read("17", "2, 1, 2, 2");
  EXPECT_EQ(result.failure, FailureKind::None) << result.messages;
  EXPECT_THAT(result.names(InitializerRole::Parameter),
              testing::UnorderedElementsAre("net.c.weight", "onnx::BatchNormalization_3"));
  EXPECT_THAT(result.find("net.c.weight")->dims, ElementsAre(2, 1, 2, 2));
  EXPECT_THAT(result.values["net.c.weight"], ElementsAre(1, 2, 3, 5, 7, 11, 13, 17));
  EXPECT_THAT(result.messages, HasSubstr("the file does not tell everything about them: net.c.weight"));
  // Numbers that are not the same ones turned are another tensor.
  EXPECT_THAT(read("16", "2, 1, 2, 2").names(InitializerRole::Parameter), testing::Contains("onnx::ReduceMean_2"));
  // Another module's convolution reads the result, or none of that shape does.
  EXPECT_THAT(read("17", "2, 1, 2, 2", "/net/d/Conv").unfolded, testing::IsEmpty());
  EXPECT_THAT(read("17", "2, 1, 2, -1").unfolded, testing::IsEmpty());
}

TEST(WeightNorm, IsNotInAModuleThatCallsOthers) {
  // `F.conv1d(x, self.conv.weight.unsqueeze(1))` in a module with layers of its own, as short convolutions of LFM2.
  auto make = [](const std::string &projection) {
    ModelProto model = parseModel(R"(
      <ir_version: 8, opset_import: ["" : 17]>
      g (float[1,2,4] x) => (float[1,2,2] y) <float[2,1,3] w = {3, 5, 0.5, -4, 12, 0.25}, float[2,2] p = {1, 2, 3, 5}> {
        h = MatMul(p, x)
        y = Conv <group = 2> (h, w)
      })");
    model.set_producer_name("pytorch");
    renameValue(model, "w", "onnx::Conv_9");
    renameValue(model, "p", "onnx::MatMul_8");
    model.mutable_graph()->mutable_node(0)->set_name(projection);
    model.mutable_graph()->mutable_node(1)->set_name("/m/short/Conv");
    return classify(model).names(InitializerRole::Parameter);
  };
  EXPECT_THAT(make("/m/short/in_proj/MatMul"), testing::Contains("m.short.weight"));
  EXPECT_THAT(make("/m/in_proj/MatMul"), testing::Contains("m.short.parametrizations.weight.original0"));
}

TEST(NormScales, NumbersTellWhatWasEvaluated) {
  // RMS norms in f32: `w.float() * x` is one operation on the scale, `(1 + w.float()) * x` two. The second has the
  // number of the first, or the one after it, and the first is like the second.
  // A power is a root as well.
  auto make = [](const std::string &second, bool converts = true) {
    std::string text = R"(
      <ir_version: 8, opset_import: ["" : 17]>
      g (float[2,2] x) => (float[2,2] y)
        <float[2] a = {1.5, 0.5}, float[2,2] p = {1, 2, 3, 5}, float[2] b = {2, 3}, float half = {0.5}, float eps = {0.001}> {
        ax = )" + std::string(converts ? "Cast <to = 1>" : "Neg") +
                       R"( (x)
        as = Pow(ax, half)
        am = ReduceMean <axes = [-1]> (as)
        ap = Constant <value = float {-0.5}> ()
        ar = Pow(am, ap)
        ad = Mul(ax, ar)
        ay = Mul(ad, a)
        h = MatMul(ay, p)
        bx = )" + (converts ? "Cast <to = 1>" : "Neg") +
                       R"( (h)
        bs = Pow(bx, half)
        bm = ReduceMean <axes = [-1]> (bs)
        br = Sqrt(bm)
        bd = Div(bx, br)
        y = Mul(bd, b)
      })";
    ModelProto model = parseModel(text);
    model.set_producer_name("pytorch");
    renameValue(model, "a", "onnx::Mul_20");
    renameValue(model, "p", "onnx::MatMul_21");
    renameValue(model, "b", "onnx::Mul_" + second);
    for (auto &node : *model.mutable_graph()->mutable_node()) {
      const std::string module = node.op_type() == "MatMul" ? "fc" : node.output(0)[0] == 'a' ? "first" : "second";
      node.set_name("/" + module + "/" + node.op_type());
    }
    return classify(model).values;
  };
  auto one = make("22");
  EXPECT_THAT(one["first.weight"], testing::ElementsAre(1.5, 0.5));
  EXPECT_THAT(one["second.weight"], testing::ElementsAre(2, 3));
  auto two = make("23");
  EXPECT_THAT(two["first.weight"], testing::ElementsAre(0.5, -0.5));
  EXPECT_THAT(two["second.weight"], testing::ElementsAre(1, 2));
  // What converts nothing adds one.
  EXPECT_THAT(make("22", false)["second.weight"], testing::ElementsAre(1, 2));
}

TEST(ExporterForms, SqueezeLeavesOtherSizesThanOne) {
  // PyTorch's `squeeze` leaves them, ONNX's `Squeeze` may not meet them; what is not the program's stays an error.
  auto make = [](const std::string &dims, const std::string &axes, const std::string &operation) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,3,1] x) => (float[N,M] y)
      <float[)" + dims + R"(] h, int64[)" +
                                  std::to_string(std::count(axes.begin(), axes.end(), ',') + 1) + "] axes = {" + axes +
                                  R"(}> {
        h = Relu(x)
        y = Squeeze(h, axes)
      })");
    setOperation(model, 0, "relu", 1, "relu.default", "%x");
    setOperation(model, 1, "squeeze", 1, operation, "%relu, 1");
    return model;
  };
  for (const char *dims : {"2,3,1", "2,n,1"}) {
    const ::onnx::GraphProto kept = importGraph(make(dims, "1", "squeeze.dim"));
    ASSERT_EQ(kept.node_size(), 2);
    EXPECT_EQ(kept.node(1).op_type(), "Identity");
    EXPECT_THAT(kept.node(1).input(), ElementsAre("h"));
  }
  // Of two dimensions, the one of size one goes.
  const ::onnx::GraphProto one = importGraph(make("2,3,1", "1,-1", "squeeze.dims"));
  ASSERT_EQ(one.node_size(), 3);
  const ::onnx::NodeProto &axes = one.node(1), &squeeze = one.node(2);
  EXPECT_EQ(squeeze.op_type(), "Squeeze");
  EXPECT_THAT(squeeze.input(), ElementsAre("h", axes.output(0)));
  int64_t axis = 0;
  ASSERT_EQ(axes.attribute(0).t().raw_data().size(), sizeof(axis));
  std::memcpy(&axis, axes.attribute(0).t().raw_data().data(), sizeof(axis));
  EXPECT_EQ(axis, -1);
  for (const ModelProto &other : {make("2,3,1", "2", "squeeze.dim"), make("2,3,1", "1", "view.default")}) {
    const ::onnx::GraphProto same = importGraph(other);
    EXPECT_EQ(same.node(1).op_type(), "Squeeze");
    EXPECT_EQ(same.node(1).input(1), "axes");
  }
}
