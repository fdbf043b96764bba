//===- ClassificationTest.cpp - who is a parameter ----------------------------------===//
//
// Real files: every parameter of the framework is found exactly once, whatever the
// exporter did. Small made-up files: each kind of evidence alone.
//
//===----------------------------------------------------------------------===//

#include "TestModel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

using namespace lowtide;
using namespace lowtide::test;
namespace fs = std::filesystem;
using ::onnx::ModelProto;
using ::onnx::NodeProto;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {
/// `a/b.npz` holds entries `final/<parameter>.npy`.
std::set<std::string> readParameterNames(const fs::path &npz) {
  std::ifstream file(npz, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  std::set<std::string> names;
  std::regex entry("final/([A-Za-z0-9_./:]+)\\.npy");
  for (std::sregex_iterator at(bytes.begin(), bytes.end(), entry), end; at != end; ++at)
    names.insert((*at)[1]);
  return names;
}

class RealFiles : public testing::TestWithParam<fs::path> {};

std::vector<fs::path> findModels() {
  std::vector<fs::path> files;
  for (const auto &entry : fs::recursive_directory_iterator(LOWTIDE_TEST_MODELS))
    // Folded batch norms are gone for good; ClassificationTest.FoldedBatchNorms. Records of low-rank pairs name these,
    // and none of the file's parameters.
    if (entry.path().extension() == ".onnx" && entry.path().stem() != "dynamo-folded" &&
        fs::exists(entry.path().parent_path() / "expected.npz") && !fs::exists(entry.path().parent_path() / "adapter"))
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

Classified classifyFile(const fs::path &path) {
  RecordingContext recording;
  OnnxFile file(recording.context, path.string());
  EXPECT_TRUE(mlir::succeeded(file.load())) << recording.messages;
  return classify(file, recording, {});
}

/// Two layer norms that read one pair of tensors, as merged by the exporter.
ModelProto makeMerged(const std::string &scale = "1, 1", bool withOperations = true) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,2] x) => (float[2,2] y) <float[2] "a.weight" = {)" +
                                scale + R"(}, float[2] "a.bias" = {0, 0}> {
      h = LayerNormalization(x, "a.weight", "a.bias")
      y = LayerNormalization(h, "a.weight", "a.bias")
    })");
  setSignature(model, {"a.weight", "a.bias", "b.weight", "b.bias"});
  setOrigin(model, 0, "a", withOperations ? "%x, %p_a_weight, %p_a_bias" : "");
  setOrigin(model, 1, "b", withOperations ? "%h, %p_b_weight, %p_b_bias" : "");
  return model;
}
} // namespace

TEST_P(RealFiles, FindsEachParameterOnce) {
  std::set<std::string> wanted = readParameterNames(GetParam().parent_path() / "expected.npz");
  ASSERT_FALSE(wanted.empty());
  Classified result = classifyFile(GetParam());
  ASSERT_EQ(result.failure, FailureKind::None) << result.messages;
  std::set<std::string> found;
  for (const InitializerInfo &info : result.infos) {
    if (info.role != InitializerRole::Parameter || info.viewOf)
      continue;
    std::vector<std::string> names = info.tied.empty() ? std::vector{info.name} : info.tied;
    std::vector<std::string> hits;
    for (const std::string &name : names)
      for (const std::string &want : wanted)
        // The recording module may wrap the one that was exported; a name that it has itself is that one.
        if (want == name || (!wanted.count(name) && llvm::StringRef(want).ends_with("." + name)))
          hits.push_back(want);
    ASSERT_EQ(hits.size(), 1u) << info.name;
    EXPECT_TRUE(found.insert(hits[0]).second) << hits[0];
  }
  EXPECT_EQ(found, wanted);
}

INSTANTIATE_TEST_SUITE_P(Classification, RealFiles, testing::ValuesIn(findModels()), [](const auto &info) {
  std::string name = info.param.parent_path().filename().string() + "_" + info.param.stem().string();
  std::replace_if(name.begin(), name.end(), [](char c) { return !isalnum(c); }, '_');
  return name;
});

TEST(Classification, FoldedBatchNormsAreReported) {
  Classified result = classifyFile(fs::path(LOWTIDE_TEST_MODELS) / "cnn-digits/dynamo-folded.onnx");
  EXPECT_THAT(result.messages,
              HasSubstr("2 batch normalizations were folded into the layers before and cannot be trained: b1, b2"));
  EXPECT_THAT(result.messages, HasSubstr("optimize=False"));
}

TEST(Classification, FoldedBatchNormsWithoutBiasAreReported) {
  // A fresh norm's bias is zeros: what folding made of it was dropped at once.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,1,3,3] x) => (float[2,1,3,2] y) <float[1,1,1,2] "c.weight" = {2, 3}> { y = Conv(x, "c.weight") })");
  setSignature(model, {"c.weight", "n.weight", "n.bias"}, "b_n_running_mean: BUFFER target='n.running_mean'\n");
  setOrigin(model, 0, "n", "%conv2d, %p_n_weight, %p_n_bias, %b_n_running_mean");
  setNote(model, 0, "pkg.onnxscript.rewriter.rule_name",
          "RemoveOptionalBiasFromConv, FuseBatchNormIntoConv, RemoveOptionalBiasFromConv");
  Classified result = classify(model);
  EXPECT_THAT(result.messages, HasSubstr("1 batch normalization was folded into the layers before"));
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("c.weight"));
}

TEST(Classification, MergedParametersAreTakenApart) {
  for (bool withOperations : {true, false}) {
    Classified result = classify(makeMerged("1, 1", withOperations));
    EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("a.weight", "b.weight", "a.bias", "b.bias"));
    ASSERT_TRUE(result.find("b.weight"));
    EXPECT_EQ(result.find("b.weight")->tensor, "a.weight");
    EXPECT_EQ(result.find("b.weight")->certainty, Certainty::Inferred);
  }
}

TEST(Classification, TiesStayTogether) {
  // Values that differ are not equal by accident.
  Classified result = classify(makeMerged("1, 2", false));
  ASSERT_TRUE(result.find("a.weight"));
  EXPECT_THAT(result.find("a.weight")->tied, ElementsAre("a.weight", "b.weight"));
  EXPECT_FALSE(result.find("b.weight"));
}

TEST(Classification, AmbiguousMergesAreRefused) {
  ModelProto model = makeMerged("1, 1", true);
  // The second norm's module has two parameters that could be it.
  NodeProto *node = model.mutable_graph()->mutable_node(1);
  node->set_op_type("Mul");
  node->mutable_input()->RemoveLast();
  node->clear_metadata_props();
  setOrigin(model, 1, "b", "%h, %p_b_gain, %p_b_scale");
  model.mutable_graph()->clear_metadata_props();
  setSignature(model, {"a.weight", "a.bias", "b.gain", "b.scale"});
  Classified result = classify(model);
  EXPECT_EQ(result.failure, FailureKind::Unsupported);
  EXPECT_THAT(result.messages, HasSubstr("could be any of b.gain, b.scale"));
  EXPECT_THAT(result.messages, HasSubstr("--rename a.weight@b=b.gain"));
  ImportOptions options;
  options.renames.emplace_back("a.weight@b", "b.scale");
  EXPECT_TRUE(classify(model, options).find("b.scale"));
}

TEST(Classification, BuffersMergedWithParametersKeepTheirRole) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,2] x) => (float[2,2] y) <float[2] "a.weight" = {1, 1}, float[2] "a.bias" = {0, 0}> {
      y = BatchNormalization(x, "a.weight", "a.bias", "a.bias", "a.weight")
    })");
  setSignature(model, {"a.weight", "a.bias"},
               "b_a_running_mean: BUFFER target='a.running_mean' persistent=True\n"
               "b_a_running_var: BUFFER target='a.running_var' persistent=True\n# outputs\n"
               "getitem_3: BUFFER_MUTATION target='a.running_mean'\n"
               "getitem_4: BUFFER_MUTATION target='a.running_var'\n");
  setOrigin(model, 0, "a", "%x, %p_a_weight, %p_a_bias, %b_a_running_mean, %b_a_running_var, True");
  // The operation reads the tensor's own entry as well: the operand decides.
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("a.weight", "a.bias"));
  EXPECT_THAT(result.names(InitializerRole::State), testing::UnorderedElementsAre("a.running_mean", "a.running_var"));
}

TEST(Classification, MissingBiasIsNoParameter) {
  // A convolution without bias: the exporter writes zeros, and merges them with the norm's bias.
  for (bool withOperations : {true, false}) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[1,2,1] x) => (float[1,2,1] y)
      <float[2,2,1] "c.weight" = {1, 2, 3, 4}, float[2] "n.weight" = {1, 2}, float[2] "n.bias" = {0, 0}> {
        h = Conv(x, "c.weight", "n.bias")
        y = InstanceNormalization(h, "n.weight", "n.bias")
      })");
    setSignature(model, {"c.weight", "n.weight", "n.bias"});
    setOrigin(model, 0, "c", withOperations ? "%x, %p_c_weight, None" : "");
    setOrigin(model, 1, "n", withOperations ? "%h, %p_n_weight, %p_n_bias" : "");
    Classified result = classify(model);
    EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("c.weight", "n.weight", "n.bias"));
    EXPECT_THAT(result.names(InitializerRole::Constant), ElementsAre("n.bias@constant"));
    EXPECT_EQ(importModel(model).failure, FailureKind::None);
  }
}

TEST(Classification, UsesWithoutOriginAreRefused) {
  ModelProto model = makeMerged();
  model.mutable_graph()->mutable_node(1)->clear_metadata_props();
  EXPECT_THAT(classify(model).messages, HasSubstr("parameter 'b.weight' is nowhere else in the file"));
}

TEST(Classification, FoldedWeightIsFoundWithoutItsNote) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,3] x) => (float[2,2] y) <float[3,2] val_1 = {1, 2, 3, 4, 5, 6}> { y = MatMul(x, val_1) })");
  setSignature(model, {"fc.weight"});
  setOrigin(model, 0, "fc", "%x, %p_fc_weight");
  setNote(model, 0, "namespace", ": M/fc: torch.nn.Linear/linear: aten.linear.default");
  Classified result = classify(model);
  ASSERT_TRUE(result.find("fc.weight")) << result.messages;
  EXPECT_THAT(result.find("fc.weight")->transposed, ElementsAre(1, 0));
}

TEST(Classification, WeightsWithoutNotesAreNamedByTheirBias) {
  // PyTorch's current exporter, then a cleaner that drops its notes and lists integers first.
  ModelProto model = parseModel(R"(
    <ir_version: 10, producer_name: "pytorch", opset_import: ["" : 20]>
    g (float[1,2] x) => (float[1,2] y)
    <int64[1] val_3 = {0}, float[2,2] val_72 = {1, 2, 3, 4}, float[2] "h.0.fc.bias" = {1, 2}, float[2] embedding_1 = {5, 7},
     float scalar_tensor_default_1 = {2}, float mul_3 = {3}, float temperature = {4}, float[2,2] val_80 = {1, 2, 3, 5}, float[2] "h.1.fc.bias" = {2, 1}> {
      m = MatMul(x, val_72)
      l = Add(m, "h.0.fc.bias")
      g = Gemm(l, val_80, "h.1.fc.bias")
      s = Add(g, embedding_1)
      n = Mul(s, scalar_tensor_default_1)
      o = Mul(n, mul_3)
      p = Mul(o, temperature)
      y = Squeeze(p, val_3)
    })");
  for (NodeProto &node : *model.mutable_graph()->mutable_node())
    node.set_name("node_" + node.op_type());
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("h.0.fc.weight", "h.0.fc.bias", "embedding_1",
                                                                    "temperature", "h.1.fc.weight", "h.1.fc.bias"));
  EXPECT_THAT(result.find("h.0.fc.weight")->transposed, ElementsAre(1, 0));
  EXPECT_THAT(result.find("h.1.fc.weight")->transposed, ElementsAre(1, 0));
}

TEST(Classification, TablesThatACleanerEvaluatedTwiceSayNothing) {
  ModelProto model = parseModel(R"(
    <ir_version: 8, producer_name: "pytorch", opset_import: ["" : 17]>
    g (float[1,2] x) => (float[1,2] y) <float[2] "h.0.ln.weight" = {1, 1}, float[2] one = {3, 4}, float[2] two = {3, 4}> {
      a = LayerNormalization(x, "h.0.ln.weight")
      b = Add(a, one)
      c = LayerNormalization(b, "h.0.ln.weight")
      y = Add(c, two)
    })");
  auto *graph = model.mutable_graph();
  for (int i : {0, 1}) {
    graph->mutable_initializer(1 + i)->set_name("/h." + std::to_string(i) + "/Where_output_0");
    graph->mutable_node(2 * i)->set_name("/h." + std::to_string(i) + "/ln/LayerNormalization");
    graph->mutable_node(2 * i + 1)->set_name("/h." + std::to_string(i) + "/Add");
    graph->mutable_node(2 * i + 1)->set_input(1, graph->initializer(1 + i).name());
  }
  EXPECT_TRUE(classify(model).find("h.1.ln.weight"));
}

TEST(Classification, WeightsEvaluatedForEachCallAreOne) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[1,2] x) => (float[1,2] y) <float[2,2] val_1 = {1, 2, 3, 4}, float[2,2] val_5 = {1, 2, 3, 4}> {
      h = MatMul(x, val_1)
      y = MatMul(h, val_5)
    })");
  setSignature(model, {"fc.weight"});
  for (int i : {0, 1}) {
    setOrigin(model, i, "fc", i ? "%h, %p_fc_weight" : "%x, %p_fc_weight");
    setNote(model, i, "namespace", ": M/fc: torch.nn.Linear/linear: aten.linear.default");
  }
  Classified result = classify(model);
  ASSERT_EQ(result.infos.size(), 2u) << result.messages;
  EXPECT_EQ(result.infos[0].name, "fc.weight");
  EXPECT_EQ(result.infos[1].viewOf, std::optional<size_t>(0));
  EXPECT_THAT(result.infos[1].transposed, ElementsAre(0, 1));
  EXPECT_EQ(importModel(model).failure, FailureKind::None);
  // Where they differ, the two would part.
  model.mutable_graph()->mutable_initializer(1)->set_float_data(0, 7);
  EXPECT_THAT(classify(model).messages, HasSubstr("is in the file twice"));
}

TEST(Classification, PartsOfValuesAreNoPartsOfParameters) {
  // The last layer reads %slice_22, which took everything and left no node; its bias began as the other layer's.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[1,2] x) => (float[1,2] y) <float[2] "a.bias" = {0, 0}> {
      h = Add(x, "a.bias")
      y = Add(h, "a.bias")
    })");
  setSignature(model, {"a.bias", "b.bias"});
  setOrigin(model, 0, "a", "%x, %p_a_bias");
  setOrigin(model, 1, "b", "%slice_22, %p_b_bias");
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("a.bias", "b.bias")) << result.messages;
}

TEST(Classification, TransposedTieWithoutNotesIsAView) {
  ModelProto model = parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (int64[2] i) => (float[2,3] y) <float[3,2] "wte.weight" = {1, 2, 3, 4, 5, 6}, float[2,3] W = {1, 3, 5, 2, 4, 6}> {
      h = Gather("wte.weight", i)
      y = MatMul(h, W)
    })");
  model.mutable_graph()->mutable_initializer(1)->set_name("onnx::MatMul_9");
  model.mutable_graph()->mutable_node(1)->set_input(1, "onnx::MatMul_9");
  Classified result = classify(model);
  ASSERT_EQ(result.infos.size(), 2u);
  EXPECT_EQ(result.infos[1].viewOf, std::optional<size_t>(0));
  EXPECT_EQ(importModel(model).failure, FailureKind::None);
}

TEST(Classification, FoldedWeightGetsItsNameBack) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,3] x) => (float[2,2] y) <float[3,2] val_1 = {1, 2, 3, 4, 5, 6}, float[2] table = {7, 8}> {
      h = MatMul(x, val_1)
      y = Mul(h, table)
    })");
  setSignature(model, {"fc.weight"}, "b_freq: BUFFER target='freq' persistent=False\n");
  setFoldedFrom(model, "val_1", "['fc.weight']");
  setFoldedFrom(model, "table", "['freq', 'cos']");
  Classified result = classify(model);
  const InitializerInfo *info = result.find("fc.weight");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->role, InitializerRole::Parameter);
  EXPECT_EQ(info->tensor, "val_1");
  EXPECT_THAT(info->transposed, ElementsAre(1, 0));
  EXPECT_THAT(*info->sourceShape, ElementsAre(2, 3));
  EXPECT_THAT(result.names(InitializerRole::Constant), ElementsAre("table"));
}

TEST(Classification, ATableThatIsLookedUpIsNotTransposed) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (int64[5,1] i) => (float[5,2] y) <float[3,2] val_1 = {1, 2, 3, 4, 5, 6}> { y = GatherND(val_1, i) })");
  setSignature(model, {"table"});
  setFoldedFrom(model, "val_1", "['table']");
  Classified result = classify(model);
  ASSERT_TRUE(result.find("table")) << result.messages;
  EXPECT_THAT(result.find("table")->transposed, IsEmpty());
}

TEST(Classification, ArithmeticThatCameLastIsReported) {
  // `u + v`, or `u · c`: training the result is not training the parameters.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,3] x) => (float[2,3] y) <float[2,3] add = {1, 2, 3, 4, 5, 6}> { y = Mul(x, add) })");
  setSignature(model, {"u", "v"});
  setFoldedFrom(model, "add", "['u', 'v']");
  EXPECT_THAT(classify(model).messages, HasSubstr("was folded from several parameters (u, v)"));
  model.mutable_graph()->mutable_value_info()->DeleteSubrange(0, 1);
  model.mutable_graph()->mutable_initializer(0)->set_name("mul");
  model.mutable_graph()->mutable_node(0)->set_input(1, "mul");
  setFoldedFrom(model, "mul", "['u']");
  EXPECT_THAT(classify(model).messages, HasSubstr("changed by 'mul'"));
}

TEST(Classification, TransposedCopyOfALivingParameterIsAView) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (int64[2] i) => (float[2,3] y) <float[3,2] "wte.weight" = {1, 2, 3, 4, 5, 6}, float[2,3] val_1 = {1, 3, 5, 2, 4, 6}> {
      h = Gather("wte.weight", i)
      y = MatMul(h, val_1)
    })");
  setSignature(model, {"wte.weight"});
  setFoldedFrom(model, "val_1", "['wte.weight']");
  Classified result = classify(model);
  ASSERT_EQ(result.infos.size(), 2u) << result.messages;
  EXPECT_FALSE(result.infos[0].viewOf);
  EXPECT_EQ(result.infos[1].viewOf, std::optional<size_t>(0));
  EXPECT_EQ(importModel(model).failure, FailureKind::None);
}

TEST(Classification, ParameterInTwoPiecesIsRefused) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,3] x) => (float[2,2] y, float[2,2] z) <float[3,2] v1 = {1, 2, 3, 4, 5, 6}, float[3,2] v2 = {1, 3, 5, 2, 4, 6}> {
      y = MatMul(x, v1)
      z = MatMul(x, v2)
    })");
  setSignature(model, {"fc.weight"});
  setFoldedFrom(model, "v1", "['fc.weight']");
  setFoldedFrom(model, "v2", "['fc.weight']");
  EXPECT_THAT(classify(model).messages, HasSubstr("is in the file twice"));
}

/// `y = (x + select) * select_1`, both evaluated from `w`.
static ModelProto makeParts(const std::string &first, const std::string &second) {
  ModelProto model = parseModel("<ir_version: 10, opset_import: [\"\" : 20]> g (float[2,3] x) => (float[2,3] y) "
                                "<float[3] select = {" +
                                first + "}, float[3] select_1 = {" + second +
                                "}> "
                                "{ h = Add(x, select) y = Mul(h, select_1) }");
  setSignature(model, {"w"});
  setFoldedFrom(model, "select", "['w', 'val_0']");
  setFoldedFrom(model, "select_1", "['val_1', 'w']");
  return model;
}

TEST(Classification, PartsAreTrainedByThemselves) {
  ModelProto model = makeParts("1, 2, 3", "4, 5, 6");
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("w@select", "w@select_1")) << result.messages;
  EXPECT_EQ(importModel(model).failure, FailureKind::None);
}

TEST(Classification, PartsThatShareElementsAreRefused) {
  EXPECT_THAT(classify(makeParts("1, 2, 3", "3, 4, 5")).messages, HasSubstr("is in the file twice"));
}

TEST(Classification, MergedPartsAreRefused) {
  // Both rows of `w` are zeros: the second reader names another value of the program.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,3] x) => (float[2,3] y) <float[3] select = {0, 0, 0}> {
      h = Add(x, select)
      y = Add(h, select)
    })");
  setSignature(model, {"w"});
  setFoldedFrom(model, "select", "['w', 'val_0']");
  setOrigin(model, 0, "", "%x, %select");
  setOrigin(model, 1, "", "%h, %select");
  EXPECT_THAT(classify(model).names(InitializerRole::Parameter), ElementsAre("w"));
  model.mutable_graph()->mutable_node(1)->clear_metadata_props();
  setOrigin(model, 1, "", "%h, %select_1");
  EXPECT_THAT(classify(model).messages, HasSubstr("stands for select, select_1 of the program"));
}

TEST(Classification, NamesDecideWithoutNotes) {
  Classified result = classify(parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3] x) => (float[2,3] y)
    <float[3,3] "fc.weight" = {1,2,3,4,5,6,7,8,9}, float[3] "rope.inv_freq" = {1,2,3}, float[3] "bn.weight" = {1,1,1},
     float[3] "bn.bias" = {1,1,1}, float[3] "bn.running_mean" = {0,0,0}, float[3] "bn.running_var" = {1,1,1},
     float eps = {1}, int64[2] shape = {2,3}, float low = {0}> {
      a = MatMul(x, "fc.weight")
      b = Mul(a, "rope.inv_freq")
      c = BatchNormalization(b, "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var")
      d = Add(c, eps)
      e = Clip(d, low)
      y = Reshape(e, shape)
    })"));
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("fc.weight", "bn.weight", "bn.bias"));
  EXPECT_THAT(result.names(InitializerRole::State), ElementsAre("bn.running_mean", "bn.running_var"));
  EXPECT_THAT(result.names(InitializerRole::Constant), ElementsAre("rope.inv_freq", "eps", "shape", "low"));
}

TEST(Classification, CopiesThatKeepANameAreTakenApart) {
  for (auto [uniform, producer] : {std::pair(true, ""), std::pair(false, ""), std::pair(false, "pytorch")}) {
    ModelProto model = parseModel(std::string(R"(
      <ir_version: 8, opset_import: ["" : 17]>
      g (float[2,2] x) => (float[2,2] y) <float[2] "a.bias" = {0, )") +
                                  (uniform ? "0" : "1") + R"(}> {
        "b.bias" = Identity("a.bias")
        h = Add(x, "a.bias")
        y = Add(h, "b.bias")
      })");
    model.set_producer_name(producer);
    Classified result = classify(model);
    // PyTorch has one name for what is tied.
    if (uniform || *producer)
      EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("a.bias", "b.bias"));
    else
      EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("a.bias"));
  }
}

TEST(Classification, CopiesHaveARoleOfTheirOwn) {
  ModelProto model = parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2,2] x) => (float[2,2] y)
    <float[2] "bn.weight" = {1, 1}, float[2] "bn.bias" = {0, 0}> {
      "bn.running_mean" = Identity("bn.bias")
      "bn.running_var" = Identity("bn.weight")
      y = BatchNormalization(x, "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var")
    })");
  model.set_producer_name("pytorch");
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("bn.weight", "bn.bias"));
  EXPECT_THAT(result.names(InitializerRole::State), ElementsAre("bn.running_var", "bn.running_mean"));
}

/// Two layers that read a folded weight through a copy; the second has a bias of its own numbers, or a copy.
static ModelProto makeClones(bool ownBias) {
  ModelProto model =
      parseModel(std::string(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2,2] x) => (float[2,2] y)
    <float[2,2] w = {1,2,3,4}, float[2] "l.0.bias" = {5, 6})") +
                 (ownBias ? R"(, float[2] "l.1.bias" = {7, 8}> {)" : R"(> { "l.1.bias" = Identity("l.0.bias"))") +
                 R"(
      v = Identity(w)
      a = MatMul(x, w)
      b = Add(a, "l.0.bias")
      c = MatMul(b, v)
      y = Add(c, "l.1.bias")
    })");
  model.set_producer_name("pytorch");
  auto &graph = *model.mutable_graph();
  for (auto &tensor : *graph.mutable_initializer())
    if (tensor.name() == "w")
      tensor.set_name("onnx::MatMul_7");
  for (auto &node : *graph.mutable_node()) {
    for (auto *list : {node.mutable_input(), node.mutable_output()})
      for (std::string &name : *list)
        name = name == "w" ? "onnx::MatMul_7" : name == "v" ? "onnx::MatMul_8" : name;
    if (node.op_type() != "Identity")
      node.set_name((node.output(0) < "c" ? "/l.0/" : "/l.1/") + node.op_type());
  }
  return model;
}

TEST(Classification, ClonesAreTakenApart) {
  Classified result = classify(makeClones(false));
  EXPECT_THAT(result.names(InitializerRole::Parameter),
              testing::UnorderedElementsAre("l.0.weight", "l.1.weight", "l.0.bias", "l.1.bias"));
  EXPECT_THAT(result.messages, HasSubstr("trained apart: l.1.weight"));
}

TEST(Classification, ALayerWithItsOwnBiasReadsATiedWeight) {
  Classified result = classify(makeClones(true));
  EXPECT_THAT(result.names(InitializerRole::Parameter),
              testing::UnorderedElementsAre("l.0.weight", "l.0.bias", "l.1.bias"));
}

TEST(Classification, TheUserTies) {
  ImportOptions options;
  options.renames = {{"l.1.weight", "l.0.weight"}};
  Classified result = classify(makeClones(false), options);
  EXPECT_THAT(result.names(InitializerRole::Parameter),
              testing::UnorderedElementsAre("l.0.weight", "l.0.bias", "l.1.bias"));
}

TEST(Classification, BuffersAreListedAfterParameters) {
  ModelProto model = parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2,2] x) => (float[2,2] y)
    <float[2,2] "m.a" = {1,2,3,5}, int64[1] "m.axes" = {1}, float[2,2] "m.b" = {1,2,3,4}> {
      h = MatMul(x, "m.a")
      s = Squeeze(h, "m.axes")
      y = MatMul(h, "m.b")
    })");
  model.set_producer_name("pytorch");
  EXPECT_THAT(classify(model).names(InitializerRole::Parameter), ElementsAre("m.a"));
}

TEST(Classification, LargeConstantNodesStayOutOfTheIR) {
  ModelProto model = parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2,20] x) => (float[2,20] y) {
      mask = Constant<value = float[20] {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20}> ()
      two = Constant<value = float {2.0}> ()
      h = Add(x, mask)
      y = Mul(h, two)
    })");
  model.mutable_graph()->mutable_node(0)->set_output(0, "/Constant_output_0");
  model.mutable_graph()->mutable_node(2)->set_input(1, "/Constant_output_0");
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Constant), ElementsAre("/Constant_output_0"));
  EXPECT_FALSE(result.infos[0].inIR);
}

TEST(Classification, NumberedWeightsAreNamedAfterTheirModule) {
  ModelProto model = parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3] x) => (float[2,2] y) <float[3,2] W = {1,2,3,4,5,6}> { y = MatMul(x, W) })");
  model.mutable_graph()->mutable_initializer(0)->set_name("onnx::MatMul_12");
  model.mutable_graph()->mutable_node(0)->set_input(1, "onnx::MatMul_12");
  model.mutable_graph()->mutable_node(0)->set_name("/net/layer1/layer1.0/fc/MatMul");
  Classified result = classify(model);
  ASSERT_TRUE(result.find("net.layer1.0.fc.weight"));
  EXPECT_THAT(result.find("net.layer1.0.fc.weight")->transposed, ElementsAre(1, 0));
  EXPECT_THAT(result.messages, HasSubstr("do_constant_folding=False"));
}

TEST(Classification, AParameterThatIsAlsoJoinedWithAnotherIsRefused) {
  // The logits' weight is the embedding's, with more columns after it.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (int64[2] i) => (float[2,4] y) <float[3,2] "e.weight" = {1, 2, 3, 4, 5, 6}, float[2,4] cat = {1, 3, 5, 9, 2, 4, 6, 8}> {
      h = Gather("e.weight", i)
      y = MatMul(h, cat)
    })");
  setSignature(model, {"e.weight", "more.weight", "decoder.weight"});
  // The second name is a tie's: only the values tell.
  for (std::string name : {"e.weight", "decoder.weight"}) {
    ModelProto tied = model;
    setFoldedFrom(tied, "cat", "['" + name + "', 'more.weight', 't']");
    Classified result = classify(tied);
    EXPECT_EQ(result.failure, FailureKind::Unsupported);
    EXPECT_THAT(result.messages, HasSubstr("parameter 'e.weight' is in the file twice, as 'e.weight' and in 'cat'"));
  }
}
