//===- MergedTest.cpp - what exporters merged because it began equal ---------------===//
//
// Layers, functions of parameters and parts of biases: what is taken apart, by which evidence, and what is refused.
//
//===----------------------------------------------------------------------===//

#include "TestModel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {
/// Two layers of zeros on one input, which became one node, as did what adds one to both.
ModelProto makeMergedLayers(const std::string &later = "%h, %add_1") {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,2] c) => (float[2,2] y) <float[2,2] "b.0.fc.weight" = {0, 0, 0, 0}, float one = {1}> {
      linear = Gemm<transB = 1>(c, "b.0.fc.weight")
      add = Add(linear, one)
      h = Mul(c, add)
      y = Mul(h, add)
    })");
  setSignature(model, {"b.0.fc.weight", "b.1.fc.weight"});
  setOrigin(model, 0, "b.0.fc", "%c, %p_b_0_fc_weight");
  setOrigin(model, 1, "b.0", "%linear, 1");
  setOrigin(model, 2, "b.0", "%c, %add");
  setOrigin(model, 3, "b.1", later);
  return model;
}
} // namespace

TEST(Merged, MergedLayersAreTakenApart) {
  Classified result = classify(makeMergedLayers());
  EXPECT_THAT(result.names(InitializerRole::Parameter),
              testing::UnorderedElementsAre("b.0.fc.weight", "b.1.fc.weight"));
  EXPECT_THAT(result.values["b.1.fc.weight"], ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(result.messages, HasSubstr("b.1.fc.weight"));
}

TEST(Merged, SeveralCopiesOfOneModuleAreTakenApart) {
  // Experts that were one layer each read the same: their results have names of their own where gates multiply them.
  auto make = [](const std::string &third) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x, float[2,1] p, float[2,1] q, float[2,1] r) => (float[2,2] y)
        <float[2,2] "e.0.a.weight" = {1, 2, 3, 4}, float[2,2] "e.0.b.weight" = {5, 6, 7, 8}> {
        linear = Gemm<transB = 1>(x, "e.0.a.weight")
        relu = Relu(linear)
        linear_1 = Gemm<transB = 1>(relu, "e.0.b.weight")
        mul = Mul(p, linear_1)
        mul_1 = Mul(q, linear_1)
        mul_2 = Mul(r, linear_1)
        y = Sum(mul, mul_1, mul_2)
      })");
    setSignature(model,
                 {"e.0.a.weight", "e.0.b.weight", "e.1.a.weight", "e.1.b.weight", "e.2.a.weight", "e.2.b.weight"});
    setOrigin(model, 0, "e.0.a", "%x, %p_e_0_a_weight");
    setOrigin(model, 1, "e.0", "%linear");
    setOrigin(model, 2, "e.0.b", "%relu, %p_e_0_b_weight");
    setOrigin(model, 3, "", "%p, %linear_1");
    setOrigin(model, 4, "", "%q, %linear_3");
    setOrigin(model, 5, "", "%r, " + third);
    return model;
  };
  Classified result = classify(make("%linear_5"));
  EXPECT_THAT(result.names(InitializerRole::Parameter),
              testing::UnorderedElementsAre("e.0.a.weight", "e.0.b.weight", "e.1.a.weight", "e.1.b.weight",
                                            "e.2.a.weight", "e.2.b.weight"));
  EXPECT_THAT(result.values["e.2.b.weight"], ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(result.messages, HasSubstr("the file does not tell everything about them: e.1.b.weight, e.2.b.weight"));
  // Two names are two of the three.
  EXPECT_THAT(classify(make("%linear_3")).names(InitializerRole::Parameter),
              testing::UnorderedElementsAre("e.0.a.weight", "e.0.b.weight", "e.1.a.weight", "e.1.b.weight"));
}

TEST(Merged, AShapeIsNoOperand) {
  // A shape that was evaluated is read next to a value with another name (`split_split_0` is the program's `getitem`):
  // nothing of the parameter is read there, but what was evaluated of floats under a lost name may be the parameter's.
  auto find = [](bool isShape) {
    ModelProto model = makeMergedLayers();
    ::onnx::GraphProto &graph = *model.mutable_graph();
    ::onnx::TensorProto &tensor = *graph.add_initializer();
    tensor.set_name("val_3");
    tensor.add_dims(2);
    tensor.set_data_type(isShape ? ::onnx::TensorProto::INT64 : ::onnx::TensorProto::FLOAT);
    for (int size : {2, 2})
      isShape ? tensor.add_int64_data(size) : tensor.add_float_data(float(size));
    ::onnx::NodeProto &node = *graph.add_node();
    node.set_op_type(isShape ? "Reshape" : "Mul");
    for (const char *input : {"y", "val_3"})
      node.add_input(input);
    node.add_output("view");
    graph.mutable_output(0)->set_name("view");
    setOrigin(model, 4, "b.1.fc", isShape ? "%getitem" : "%y, %getitem");
    setFoldedFrom(model, "val_3", "['val_1', 'val_2']");
    return classify(model).names(InitializerRole::Parameter);
  };
  EXPECT_THAT(find(true), testing::Contains("b.1.fc.weight"));
  EXPECT_THAT(find(false), testing::Not(testing::Contains("b.1.fc.weight")));
}

TEST(Merged, AMergedWeightIsNoBias) {
  // The exporter writes zeros for the bias that a convolution lacks and drops them: in the second, the only parameter
  // that is gone is the weight, which began as zeros like the first one's.
  auto make = [](const std::string &weight) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2,3,3] x) => (float[2,2,3,3] y) <float[2,2,1,1] "a.weight" = {0, 0, 0, 0}> {
        h = Conv(x, "a.weight")
        y = Conv(h, "a.weight")
      })");
    setSignature(model, {"a.weight", "b.kernel", "b.offset"});
    setOperation(model, 0, "conv2d", 1, "conv2d.default", "%x, %p_a_weight, None");
    setOperation(model, 1, "conv2d_1", 1, "conv2d.default", "%conv2d, " + weight);
    for (int node : {0, 1})
      setNote(model, node, "pkg.onnxscript.rewriter.rule_name", "RemoveOptionalBiasFromConv");
    return classify(model);
  };
  Classified merged = make("%p_b_kernel, None");
  EXPECT_THAT(merged.names(InitializerRole::Parameter), testing::UnorderedElementsAre("a.weight", "b.kernel"));
  // Of the weight that the node reads, what is gone is the bias.
  EXPECT_THAT(make("%p_a_weight, %p_b_offset").values["b.offset"], ElementsAre(0, 0));
}

TEST(Merged, ANodeWithoutNotesIsOfTheModuleThatReadsIt) {
  // Attention takes its bias apart for queries and keys, by a node that a rule of the exporter wrote. Two such nodes of
  // biases that began equal are one.
  auto make = [](const std::string &moduleOfKeys, std::vector<std::string> parameters) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,4] x) => (float[2,2] y) <float[4] "e.in_proj_bias" = {0, 0, 0, 0}, int64[2] parts = {2, 2}> {
        h = Add(x, "e.in_proj_bias")
        q, k = Split<axis = 0>("e.in_proj_bias", parts)
        a, b = Split<axis = 1>(h, parts)
        c = Add(a, q)
        y = Add(c, k)
      })");
    setSignature(model, parameters);
    setOrigin(model, 0, "e", "%x, %p_e_in_proj_bias");
    setOrigin(model, 2, "d", "%h");
    setOrigin(model, 3, "d", "%a, %getitem");
    setOrigin(model, 4, moduleOfKeys, "%c, %getitem_1");
    model.mutable_graph()->mutable_node(1)->set_name("node_Split_3");
    return model;
  };
  const std::vector<std::string> two = {"e.in_proj_bias", "d.in_proj_bias"};
  const std::vector<std::string> three = {"e.in_proj_bias", "d.in_proj_bias", "f.in_proj_bias"};
  auto parameters = [](const ModelProto &model) { return classify(model).names(InitializerRole::Parameter); };
  EXPECT_THAT(importModel(make("d", two)).messages, testing::Not(HasSubstr("nowhere else in the file")));
  EXPECT_THAT(parameters(make("e", two)), testing::UnorderedElementsAre("e.in_proj_bias", "d.in_proj_bias"));
  EXPECT_THAT(parameters(make("f", three)),
              testing::UnorderedElementsAre("e.in_proj_bias", "d.in_proj_bias", "f.in_proj_bias"));
  // One bias, handed to two modules that have none.
  EXPECT_THAT(parameters(make("f", {"e.in_proj_bias"})), ElementsAre("e.in_proj_bias"));
  // Of a reader no module is known: whose bias that is cannot be told.
  ModelProto model = make("f", three);
  model.mutable_graph()->mutable_node(4)->clear_metadata_props();
  EXPECT_THAT(importModel(model).messages, HasSubstr("a node that reads it does not say where it"));
}

TEST(Merged, NormsOfOneBlockAreTakenApart) {
  // Parallel branches, each with a norm of its own; all scales began as ones and are one tensor.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,2] x) => (float[2,2] y) <float[2] "b.0.ln1.weight" = {1, 1}> {
      layer_norm = LayerNormalization(x, "b.0.ln1.weight")
      h = Mul(layer_norm, layer_norm)
      layer_norm_2 = LayerNormalization(h, "b.0.ln1.weight")
      y = Mul(layer_norm_2, layer_norm_2)
    })");
  setSignature(model, {"b.0.ln1.weight", "b.0.ln2.weight", "b.1.ln1.weight", "b.1.ln2.weight"});
  setOrigin(model, 0, "b.0.ln1", "%x, [2], %p_b_0_ln1_weight");
  setOrigin(model, 1, "b.0", "%layer_norm, %layer_norm_1");
  setOrigin(model, 2, "b.1.ln1", "%h, [2], %p_b_1_ln1_weight");
  setOrigin(model, 3, "b.1", "%layer_norm_2, %layer_norm_3");
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter),
              testing::UnorderedElementsAre("b.0.ln1.weight", "b.0.ln2.weight", "b.1.ln1.weight", "b.1.ln2.weight"))
      << result.messages;
  EXPECT_EQ(importModel(model).failure, FailureKind::None);
}

TEST(Merged, AModuleThatNothingReadsIsNotWhatIsJoinedTwice) {
  // The pooler is not called. `cat_1` joins what `cat` does: all norms before that are in the file, by their numbers.
  auto make = [](const std::string &number) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x, float[2,2] z) => (float[2,4] y)
        <float[2] "words.norm.weight" = {1.5, 0.5}, float[4] "last.norm.weight" = {1, 2, 3, 5}> {
        layer_norm = LayerNormalization(x, "words.norm.weight")
        cat = Concat<axis = 1>(layer_norm, z)
        h = Mul(cat, cat)
        y = LayerNormalization(h, "last.norm.weight")
      })");
    setSignature(model, {"words.norm.weight", "last.norm.weight", "pooler.dense.weight"});
    setOperation(model, 0, "layer_norm", 1, "layer_norm.default", "%x, [2], %p_words_norm_weight");
    setOperation(model, 1, "cat", 1, "cat.default", "%layer_norm, %z");
    setOperation(model, 2, "h", 1, "mul.Tensor", "%cat, %cat_1");
    setOperation(model, 3, "layer_norm_" + number, 1, "layer_norm.default", "%h, [4], %p_last_norm_weight");
    return classify(model);
  };
  Classified one = make("1");
  EXPECT_THAT(one.names(InitializerRole::Parameter), ElementsAre("words.norm.weight", "last.norm.weight"));
  EXPECT_EQ(
      one.messages,
      "parameters of the program are not in the file, for it reads nothing under these names, and checkpoints will "
      "lack them: pooler.dense.weight\nnote: load checkpoints into the module with strict=False, which keeps its "
      "own values there\n");
  // With a norm that is gone, the module may be that.
  EXPECT_THAT(make("2").names(InitializerRole::Parameter), testing::Contains("pooler.dense.weight"));
}

TEST(Merged, OneNameIsOneValue) {
  // The second reads what the first does: the other layer is not used, for all that the file tells.
  Classified result = classify(makeMergedLayers("%h, %add"));
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("b.0.fc.weight"));
}

TEST(Merged, ANormWithoutWeightsReadsNumbers) {
  // Ones and zeros stand for the weights that `n` does not have; they are another norm's weights, and `n`'s running
  // statistics, as well.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,2] x) => (float[2,2] y) <float[2] "m.weight" = {1, 1}, float[2] "m.bias" = {0, 0}> {
      a = BatchNormalization(x, "m.weight", "m.bias", "m.bias", "m.weight")
      y = BatchNormalization(a, "m.weight", "m.bias", "m.bias", "m.weight")
    })");
  setSignature(model, {"m.weight", "m.bias"},
               "b_m_running_mean: BUFFER target='m.running_mean' persistent=True\n"
               "b_m_running_var: BUFFER target='m.running_var' persistent=True\n"
               "b_n_running_mean: BUFFER target='n.running_mean' persistent=True\n"
               "b_n_running_var: BUFFER target='n.running_var' persistent=True\n");
  setOrigin(model, 0, "m", "%x, %p_m_weight, %p_m_bias, %b_m_running_mean, %b_m_running_var");
  setOrigin(model, 1, "n", "%a, None, None, %b_n_running_mean, %b_n_running_var");
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter), testing::UnorderedElementsAre("m.weight", "m.bias"))
      << result.messages;
  EXPECT_EQ(importModel(model).failure, FailureKind::None);
}

TEST(Merged, ANormWithoutWeightsRunsAgain) {
  // Its second run reads statistics that the first one made, which are no parts of the weights that began equal.
  auto make = [](const std::string &second) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x) => (float[2,2] y) <float[2] "m.weight" = {1, 1}, float[2] "m.bias" = {0, 0}> {
        a = BatchNormalization(x, "m.weight", "m.bias", "m.bias", "m.weight")
        b = BatchNormalization(a, "m.weight", "m.bias", "m.bias", "m.weight")
        y = )" + second + R"(
      })");
    setSignature(model, {"m.weight", "m.bias"},
                 "b_m_running_mean: BUFFER target='m.running_mean' persistent=True\n"
                 "b_m_running_var: BUFFER target='m.running_var' persistent=True\n"
                 "b_n_running_mean: BUFFER target='n.running_mean' persistent=True\n"
                 "b_n_running_var: BUFFER target='n.running_var' persistent=True\n");
    setOrigin(model, 0, "m", "%x, %p_m_weight, %p_m_bias, %b_m_running_mean, %b_m_running_var");
    setOrigin(model, 1, "n", "%a, None, None, %b_n_running_mean, %b_n_running_var");
    setOrigin(model, 2, "n", "%b, None, None, %getitem_3, %getitem_4");
    return model;
  };
  ModelProto again = make(R"(BatchNormalization(b, "m.weight", "m.bias", "m.bias", "m.weight"))");
  Classified result = classify(again);
  EXPECT_THAT(result.names(InitializerRole::Parameter), testing::UnorderedElementsAre("m.weight", "m.bias"))
      << result.messages;
  EXPECT_EQ(importModel(again).failure, FailureKind::None);
  // What another operation reads may be a part that began equal.
  EXPECT_THAT(classify(make(R"(Mul(b, "m.weight"))")).messages, HasSubstr("parts of parameters that began equal"));
}

TEST(Merged, AParameterThatCameBackIsReadAsItIs) {
  // `(s + (x - m) / exp(s)) * 2` of a Gaussian: s comes back from exp(s), and the sum reads it as the mean it equals.
  auto make = [](const std::string &mean, const std::string &summand) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,3] x) => (float[2,3] y) <float[3] m = )" +
                                  mean + R"(, float[3] exp = {1, 1, 1}> {
        sub = Sub(x, m)
        div = Div(sub, exp)
        y = Add(m, div)
      })");
    setSignature(model, {"m", "s"});
    setFoldedFrom(model, "exp", "['s']");
    setOperation(model, 0, "sub", 1, "sub.Tensor", "%x, %p_m");
    setOperation(model, 1, "div", 1, "div.Tensor", "%sub, %exp");
    setOperation(model, 2, "add", 1, "add.Tensor", "%" + summand + ", %div");
    return classify(model);
  };
  auto readsScale = [](const Classified &result) {
    return llvm::any_of(result.infos, [](const InitializerInfo &info) {
      return info.tensor == "m" && info.name.substr(0, 1) == "s" && info.viewOf;
    });
  };
  const Classified merged = make("{0, 0, 0}", "p_s");
  EXPECT_EQ(merged.failure, FailureKind::None) << merged.messages;
  EXPECT_TRUE(readsScale(merged)) << merged.messages;
  EXPECT_FALSE(readsScale(make("{0, 0, 0}", "p_m")));
  EXPECT_FALSE(readsScale(make("{0.5, 0.5, 0.5}", "p_s")));
}

TEST(Merged, ANormOfAParameterReadsNoOther) {
  // `layer_norm(w, (2,))`: what stands for the scale is not w.
  auto make = [](const std::string &operands) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x) => (float[2,2] y) <float[2,2] w = {1, 2, 3, 5}, float[2] val_2 = {1, 1}> {
        layer_norm = LayerNormalization(w, val_2)
        y = Gemm<transB = 1>(x, layer_norm)
      })");
    setSignature(model, {"w", "s"});
    setOperation(model, 0, "layer_norm", 1, "layer_norm.default", operands);
    setOperation(model, 1, "y", 1, "linear.default", "%x, %layer_norm");
    return classify(model);
  };
  Classified bare = make("%p_w, [2], None, None, 1e-05, False");
  EXPECT_EQ(bare.failure, FailureKind::None) << bare.messages;
  EXPECT_THAT(bare.names(InitializerRole::Parameter), ElementsAre("w"));
  EXPECT_THAT(bare.names(InitializerRole::Constant), ElementsAre("val_2"));
  EXPECT_THAT(make("%p_w, [2], %p_s, None, 1e-05, False").names(InitializerRole::Parameter),
              testing::UnorderedElementsAre("w", "s"));
}

TEST(Merged, ParametersOfACellThatAreReadElsewhereToo) {
  // Peepholes of zeros: `f` reads the last state, `o` the one that `f` reads in the next round.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2] c, float[2] d) => (float[2] y) <float[2] "cell.o" = {0, 0}> {
      mul = Mul("cell.o", c)
      mul_1 = Mul("cell.o", d)
      add = Add(mul, mul_1)
      y = Mul(add, mul_1)
    })");
  setSignature(model, {"cell.f", "cell.o"});
  setOrigin(model, 0, "cell", "%p_cell_f, %c");
  setOrigin(model, 1, "cell", "%p_cell_o, %d");
  setOrigin(model, 2, "cell", "%mul, %mul_1");
  setOrigin(model, 3, "cell", "%add, %mul_2");
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter), testing::UnorderedElementsAre("cell.f", "cell.o"));
  EXPECT_THAT(result.messages, HasSubstr("mul_2 like mul_1 of parameters that began equal, and the exporter merged the "
                                         "two: it is taken to be computed of cell.f"));
  EXPECT_EQ(importModel(model).failure, FailureKind::None);
}

TEST(Merged, WhatWasComputedOfADetachedValueToo) {
  // mse(q, z.detach()) + c * mse(q.detach(), z): one distance is left, and the second read of it is called otherwise.
  auto make = [](const std::string &second) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2] x) => (float y) <float[2] u = {1, 2}, float[2] v = {3, 4}, float c = {0.25}> {
        q = Mul(x, u)
        z = Mul(x, v)
        val_5 = Sub(q, z)
        val_7 = Mul(val_5, val_5)
        mse_loss = ReduceMean<keepdims = 0>(val_7)
        mul_1 = Mul(mse_loss, c)
        y = Add(mse_loss, mul_1)
      })");
    setSignature(model, {"u", "v"});
    for (int i : {2, 3, 4}) {
      setOrigin(model, i, "", "%q, %detach");
      setNote(model, i, "pkg.torch.onnx.class_hierarchy", "['aten.mse_loss.default']");
    }
    setOrigin(model, 5, "", "%" + second + ", 0.25");
    setOrigin(model, 6, "", "%mse_loss, %mul_1");
    return model;
  };
  Outcome two = importModel(make("mse_loss_1"));
  EXPECT_EQ(two.failure, FailureKind::None) << two.messages;
  EXPECT_THAT(two.messages, HasSubstr("the program computes mse_loss_1 like values after a detach"));
  // By the same name, it is the same value.
  EXPECT_EQ(importModel(make("mse_loss")).messages, "");
}

TEST(Merged, SizesOfADetachedValueAreNotWhatIsDetached) {
  // new_zeros(z.detach(), …) reads a shape that another operation computed first.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,3] x) => (float[2,3] y) <float[3] u = {1, 2, 3}, int64[2] val_1> {
      z = Mul(x, u)
      val_1 = Shape(x)
      new_zeros = ConstantOfShape(val_1)
      add = Add(z, new_zeros)
      new_zeros_1 = ConstantOfShape(val_1)
      scale = Add(new_zeros_1, z)
      y = Mul(add, scale)
    })");
  setSignature(model, {"u"});
  setOrigin(model, 0, "", "%x, %p_u");
  for (int i : {1, 2})
    setOrigin(model, i, "", "%x, [2, 3]");
  setOrigin(model, 3, "", "%z, %new_zeros");
  setOrigin(model, 4, "", "%detach, [2, 3]");
  setOrigin(model, 5, "", "%new_zeros_1, %detach");
  setNote(model, 5, "pkg.torch.onnx.class_hierarchy", "['aten.add.Tensor']");
  setOrigin(model, 6, "", "%add, %scale");
  const std::string bytes = model.SerializeAsString();
  RecordingContext recording;
  OnnxFile file(recording.context, "model.onnx", {});
  ASSERT_TRUE(mlir::succeeded(file.loadBytes({bytes.data(), bytes.size()})));
  auto module = importOnnx(file, ImportOptions());
  ASSERT_TRUE(mlir::succeeded(module)) << recording.messages;
  std::string text;
  llvm::raw_string_ostream(text) << **module;
  EXPECT_THAT(text, HasSubstr("%0 = onnx.node \"Mul\""));
  EXPECT_THAT(text, HasSubstr("onnx.node \"Identity\"(%0) {attrs = {detached = 1 : i64}"));
}

namespace {
/// `gate * x + other * x` where one tensor of 0.5 is both, and was evaluated from `parameter`.
ModelProto makeMergedFunctions(const std::string &other, std::vector<std::string> parameters) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2] x) => (float[2] y) <float[2] sigmoid = {0.5, 0.5}> {
      a = Mul(sigmoid, x)
      b = Mul(sigmoid, x)
      y = Add(a, b)
    })");
  setSignature(model, std::move(parameters));
  setFoldedFrom(model, "sigmoid", "['g']");
  setOrigin(model, 0, "", "%sigmoid, %x");
  setOrigin(model, 1, "", "%" + other + ", %x");
  return model;
}
} // namespace

TEST(Merged, TheRestOfAGateIsNotTheGate) {
  Classified result = classify(makeMergedFunctions("sub", {"g"}));
  EXPECT_THAT(result.values["g"], ElementsAre(0, 0));
  EXPECT_THAT(result.messages, HasSubstr("that is taken to be 1 - sigmoid"));
}

TEST(Merged, EqualFunctionsOfTwoParametersAreTakenApart) {
  Classified result = classify(makeMergedFunctions("sigmoid_1", {"g", "k"}));
  EXPECT_THAT(result.values["g"], ElementsAre(0, 0));
  EXPECT_THAT(result.values["k"], ElementsAre(0, 0));
  // Of one parameter, they are one.
  result = classify(makeMergedFunctions("sigmoid_1", {"g"}));
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("g"));
  EXPECT_EQ(result.messages, "");
}

TEST(Merged, AParameterThatEqualsAFunctionIsItself) {
  Classified result = classify(makeMergedFunctions("p_scale", {"g", "scale"}));
  EXPECT_THAT(result.values["g"], ElementsAre(0, 0));
  EXPECT_THAT(result.values["scale"], ElementsAre(0.5f, 0.5f));
}

TEST(Merged, EqualFunctionsThatNothingTellsApartAreRefused) {
  Classified result = classify(makeMergedFunctions("tanh", {"g"}));
  EXPECT_EQ(result.failure, FailureKind::Unsupported);
  EXPECT_THAT(result.messages, HasSubstr("'sigmoid' is also what the program calls tanh"));
  EXPECT_THAT(result.messages, HasSubstr("optimize=False"));
  // What is multiplied by one is dropped: no contradiction, but a doubt.
  result = classify(makeMergedFunctions("mul_3", {"g"}));
  EXPECT_EQ(result.failure, FailureKind::None);
  EXPECT_THAT(result.messages, HasSubstr("perhaps another function"));
}

TEST(Merged, ACopyWithoutANameIsAFunction) {
  ModelProto model = parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
    g (float[2] x) => (float[2] y) <float[2] mix = {0.5, 0.5}> {
      rest = Identity(mix)
      a = Mul(x, mix)
      b = Mul(x, rest)
      y = Add(a, b)
    })");
  renameValue(model, "rest", "onnx::Mul_5");
  model.mutable_graph()->mutable_node(1)->set_name("/Mul");
  model.mutable_graph()->mutable_node(2)->set_name("/Mul_1");
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("mix"));
  EXPECT_THAT(result.messages, HasSubstr("it is taken to be 1 - mix"));
  auto &values = *model.mutable_graph()->mutable_initializer(0)->mutable_float_data();
  std::fill(values.begin(), values.end(), 0.0f);
  EXPECT_THAT(classify(model).messages, HasSubstr("it is taken to be the same parameter"));
  model.mutable_graph()->mutable_node(2)->set_op_type("Exp");
  model.mutable_graph()->mutable_node(2)->mutable_input()->DeleteSubrange(0, 1);
  EXPECT_THAT(classify(model).messages, HasSubstr("it is taken to be -mix"));
}

TEST(Merged, PartsOfAJointBiasAreTheirOwn) {
  // Attention's output bias and a third of its input bias, both zeros; what is read by a product as a copy is neither.
  ModelProto model = parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
    g (float[2,2] x) => (float[2,2] y)
    <float[2] "at.out.bias" = {0, 0}, float[2,2] v = {1, 2, 3, 4}, float[2,2] "at.out.weight" = {5, 6, 7, 8}> {
      part = Identity("at.out.bias")
      a = MatMul(x, v)
      b = Add(part, a)
      c = MatMul(b, "at.out.weight")
      y = Add("at.out.bias", c)
    })");
  for (auto [node, name] : {std::pair{1, "/at/MatMul"}, {2, "/at/Add"}, {3, "/at/MatMul_1"}, {4, "/at/Add_1"}})
    model.mutable_graph()->mutable_node(node)->set_name(name);
  model.mutable_graph()->mutable_node(0)->set_output(0, "onnx::Add_7");
  model.mutable_graph()->mutable_node(2)->set_input(0, "onnx::Add_7");
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter),
              testing::UnorderedElementsAre("at.bias", "at.out.bias", "v", "at.out.weight"));
  EXPECT_THAT(result.messages, HasSubstr("they are trained apart"));
}

TEST(Merged, OnesAreNotTheRestOfZeros) {
  // x * (1 + g) + s: with g gone, 1 - s would be the same ones.
  auto make = [](const std::string &name) {
    ModelProto model = parseModel(R"(
      <ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
      g (float[2,3] x) => (float[2,3] y)
        <float[3,3] "m.fc.weight" = {1,2,3,4,5,6,7,8,9}, float[3] "m.s" = {0,0,0}, float[3] ones = {1,1,1}> {
        a = MatMul(x, "m.fc.weight")
        b = Mul(a, ones)
        y = Add(b, "m.s")
      })");
    renameValue(model, "ones", name);
    model.mutable_graph()->mutable_node(1)->set_name("/m/Mul");
    return classify(model);
  };
  EXPECT_FALSE(make("onnx::Mul_9").replaced.contains("onnx::Mul_9"));
  EXPECT_THAT(make("onnx::Mul_9").messages, HasSubstr("onnx::Mul_9"));
  EXPECT_TRUE(make("/m/Sub_output_0").replaced.contains("/m/Sub_output_0"));
}

TEST(Merged, ATieOutlivesAnotherNameForItsParameter) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,2] x) => (float[2,3] y) <float[3,2] w = {1, 2, 3, 4, 5, 1}, float[2,3] permute = {1, 3, 5, 2, 4, 1}> {
      a = MatMul(x, permute)
      y = Gemm<transB = 1>(x, w, a)
    })");
  setSignature(model, {"w"});
  setFoldedFrom(model, "permute", "['w']");
  ImportOptions options;
  options.renames = {{"w", "enc.w"}};
  EXPECT_THAT(classify(model, options).names(InitializerRole::Parameter), testing::Contains("enc.w"));
  EXPECT_EQ(classify(model, options).infos[1].viewOf, std::optional<size_t>(0));
  // The tensor under another name is what the user says that it is.
  options.renames = {{"permute", "other"}};
  EXPECT_FALSE(classify(model, options).infos[1].viewOf);
}

TEST(Merged, WhatWasEvaluatedIsNoWeightOfTheNormThatReadsIt) {
  // A cell's first state is a parameter of zeros, and so is what a layer makes of it; both norms began equal.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,2] x) => (float[2,2] y)
    <float[2,2] linear_1 = {0, 0, 0, 0}, float[2] "i.weight" = {1, 1}, float[2] "i.bias" = {0, 0}> {
      layer_norm = LayerNormalization(x, "i.weight", "i.bias")
      layer_norm_1 = LayerNormalization(linear_1, "i.weight", "i.bias")
      y = Add(layer_norm, layer_norm_1)
    })");
  setSignature(model, {"h0", "fc.weight", "i.weight", "i.bias", "h.weight", "h.bias"});
  setFoldedFrom(model, "linear_1", "['expand', 'fc.weight', 'h0', 'val_1']");
  setOrigin(model, 0, "i", "%x, [2], %p_i_weight, %p_i_bias");
  setOrigin(model, 1, "h", "%linear_1, [2], %p_h_weight, %p_h_bias");
  setOrigin(model, 2, "", "%layer_norm, %layer_norm_1");
  Classified result = classify(model);
  EXPECT_THAT(result.messages, HasSubstr("'linear_1' was folded from several parameters (fc.weight, h0)"));
  EXPECT_TRUE(result.find("h.weight") && result.find("h.bias")) << result.messages;
}
