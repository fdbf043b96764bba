//===- RepeatedTest.cpp - what models of libraries repeat and join ----------------===//
//
// Tokens for each sample, tables of positions in several layers, biases around zeros, names of one parameter: kinds
// that sweeps found.
//
//===----------------------------------------------------------------------===//

#include "TestModel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <cstring>

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Repeated, RelativePositionsAreOrderedForEachSample) {
  // Swin's window of 2 × 2 cells, the same pairs for two samples.
  const int rows[] = {4, 3, 1, 0, 5, 4, 2, 1, 7, 6, 4, 3, 8, 7, 5, 4};
  std::vector<float> values;
  for (int sample = 0; sample != 2; ++sample)
    for (int row : rows)
      values.push_back(float(row) / 4);
  Classified result = classify(makeEvaluated("expand", "2,1,4,4", values, "relative_position_bias_table",
                                             "['index', 'relative_position_bias_table', 'permute']"));
  EXPECT_THAT(result.values["relative_position_bias_table"], ElementsAre(0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2));

  // All pairs in one dimension, as the lookup itself gives them.
  result = classify(makeEvaluated("index", "16,1", std::vector<float>(values.begin(), values.begin() + 16),
                                  "relative_position_bias_table", "['relative_position_bias_table', 'view']"));
  EXPECT_THAT(result.values["relative_position_bias_table"], ElementsAre(0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2));
}

TEST(Repeated, NumbersOfALargeTableMayAgreeByChance) {
  // A window of 4 × 4 cells for 4 heads: 49 rows, of whose 196 numbers some agree, as of thousands of random ones some
  // do.
  auto make = [](int numEqual) {
    std::vector<float> table, values;
    for (int i = 0; i != 49 * 4; ++i)
      table.push_back(float((i * 37) % 401));
    for (int i = 0; i != numEqual; ++i)
      table[size_t(8 * i)] = table[size_t(8 * i + 101)];
    for (int head = 0; head != 4; ++head)
      for (int query = 0; query != 16; ++query)
        for (int key = 0; key != 16; ++key) {
          const int row = (query / 4 - key / 4 + 3) * 7 + query % 4 - key % 4 + 3;
          values.push_back(table[size_t(row * 4 + head)]);
        }
    return std::pair(table, values);
  };
  const std::string name = "relative_position_bias_table";
  auto read = [&](const std::vector<float> &values) {
    return classify(makeEvaluated("index", "1,4,16,16", values, name, "['" + name + "', 'permute', 'view']"));
  };
  for (int numEqual : {0, 1}) {
    auto [table, values] = make(numEqual);
    Classified result = read(values);
    ASSERT_TRUE(result.find(name)) << result.messages;
    EXPECT_THAT(result.find(name)->dims, ElementsAre(49, 4)) << numEqual;
    EXPECT_THAT(result.values[name], testing::ElementsAreArray(table)) << numEqual;
    EXPECT_EQ(result.messages, "");
  }
  // So many are none: what they are of is another parameter, about which something is said.
  EXPECT_THAT(read(make(9).second).messages, HasSubstr("the file does not tell everything about them: " + name));
}

TEST(Repeated, RowsOfTheSameBytesInAnotherOrderAreNoSingleNumber) {
  // 5 and 2 are the bytes 00 00 a0 40 and 00 00 00 40.
  Classified result = classify(makeEvaluated("index", "3,2", {5, 2, 5, 2, 4, 1}, "table", "['table', 'val_2']"));
  ASSERT_TRUE(result.find("table")) << result.messages;
  EXPECT_THAT(result.find("table")->dims, ElementsAre(2, 2));
  EXPECT_THAT(result.values["table"], ElementsAre(5, 2, 4, 1));
}

TEST(Repeated, ColumnsAreTakenWhereNothingTurnedThem) {
  // `table[:, positions]`, in one tensor.
  const std::vector<float> values = {1, 2, 3, 2, 1, 2, 3, 2, 1, 4, 5, 6, 5, 4, 5, 6, 5, 4};
  Classified columns = classify(makeEvaluated("index", "2,3,3", values, "table", "['table', 'val_2']"));
  ASSERT_TRUE(columns.find("table")) << columns.messages;
  EXPECT_THAT(columns.find("table")->dims, ElementsAre(2, 3));
  EXPECT_THAT(columns.values["table"], ElementsAre(1, 2, 3, 4, 5, 6));
  // `table[positions].permute(2, 0, 1)`
  Classified rows = classify(makeEvaluated("permute", "2,3,3", values, "table", "['index', 'table', 'val_2']"));
  EXPECT_THAT(rows.find("table")->dims, ElementsAre(3, 2));
  EXPECT_THAT(rows.values["table"], ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(Repeated, DistancesAreCountedTheWayThatTheNameTells) {
  // Three queries and keys: q - k + 2 in MViT and SAM, k - q + 2 in others.
  std::vector<float> values;
  for (int query = 0; query != 3; ++query)
    for (int key = 0; key != 3; ++key)
      values.push_back(float(query - key + 2) + 0.5f);
  Classified result =
      classify(makeEvaluated("index", "3,3,1", values, "attn.rel_pos_h", "['attn.rel_pos_h', 'val_2']"));
  EXPECT_THAT(result.values["attn.rel_pos_h"], ElementsAre(0.5, 1.5, 2.5, 3.5, 4.5));
  EXPECT_EQ(result.messages, "");
  result = classify(makeEvaluated("index", "3,3,1", values, "attn.table", "['attn.table', 'val_2']"));
  EXPECT_THAT(result.values["attn.table"], ElementsAre(4.5, 3.5, 2.5, 1.5, 0.5));
  EXPECT_THAT(result.messages, HasSubstr("the file does not tell everything about them: attn.table"));
}

TEST(Repeated, ATokenOfOneNumberIsRepeatedForEachSample) {
  Classified result =
      classify(makeEvaluated("expand", "3,1,2", {0, 0, 0, 0, 0, 0}, "cls_token", "['cls_token', 'val_2']"));
  ASSERT_TRUE(result.find("cls_token")) << result.messages;
  EXPECT_THAT(result.values["cls_token"], ElementsAre(0, 0));
  EXPECT_THAT(result.messages, HasSubstr("the file does not tell everything about them: cls_token"));
  // One vector for each place of each sample; several tokens are of one sample.
  result = classify(
      makeEvaluated("expand", "3,2,2", std::vector<float>(12, 0), "enc.mask_token", "['enc.mask_token', 'val_2']"));
  EXPECT_THAT(result.values["enc.mask_token"], ElementsAre(0, 0));
  result = classify(makeEvaluated("expand", "3,2,2", std::vector<float>(12, 0), "tokens", "['tokens', 'val_2']"));
  EXPECT_THAT(result.values["tokens"], ElementsAre(0, 0, 0, 0));
  // Along another dimension nothing tells how often.
  result = classify(makeEvaluated("expand", "1,3,2", {0, 0, 0, 0, 0, 0}, "cls_token", "['cls_token', 'val_2']"));
  EXPECT_THAT(result.unfolded, IsEmpty());
  EXPECT_THAT(result.messages, HasSubstr("it cannot be seen which of its elements are one"));
}

/// Which rows the graph's one `Gather` takes.
static std::vector<int64_t> readPositions(const ::onnx::GraphProto &graph) {
  std::vector<int64_t> rows;
  for (const auto &gather : graph.node())
    for (const auto &node : graph.node())
      if (gather.op_type() == "Gather" && node.op_type() == "Constant" && node.output(0) == gather.input(1)) {
        const std::string &bytes = node.attribute(0).t().raw_data();
        rows.resize(bytes.size() / sizeof(int64_t));
        std::memcpy(rows.data(), bytes.data(), bytes.size());
      }
  return rows;
}

TEST(Repeated, ATableOfOneNumberIsReadByTheRuleOfItsName) {
  const std::string from = "['index', 'clone', 'permute', 'table', 'val_3']";
  for (const std::string name : {"relative_position_bias_table", "other"}) {
    std::string sources = from;
    sources.replace(sources.find("table"), 5, name);
    const std::string bytes =
        makeEvaluated("unsqueeze", "1,2,4,4", std::vector<float>(32, 0), name, sources).SerializeAsString();
    RecordingContext recording;
    OnnxFile file(recording.context, "model.onnx");
    ASSERT_TRUE(mlir::succeeded(file.loadBytes(llvm::ArrayRef(bytes.data(), bytes.size()))));
    Classified result = classify(file, recording);
    if (name == "other") {
      EXPECT_THAT(result.unfolded, IsEmpty());
      EXPECT_THAT(result.messages, HasSubstr("it cannot be seen which of its rows are one"));
      continue;
    }
    ASSERT_TRUE(result.find(name)) << result.messages;
    EXPECT_THAT(result.find(name)->dims, ElementsAre(9, 2));
    // Both heads read the same row for a pair: 4, 3, 1, 0 for the first cell's.
    std::vector<int64_t> rows = readPositions(file.getModel().graph());
    rows.resize(4);
    EXPECT_THAT(rows, ElementsAre(4, 3, 1, 0));
    EXPECT_THAT(result.messages, HasSubstr("the file does not tell everything about them"));
  }
}

TEST(Repeated, ATableReadInSeveralLayersIsOne) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[3,2] x) => (float[3,2] y)
      <float[3,2] index_1 = {1, 2, 1, 2, 3, 4}, float[3,2] index_2 = {1, 2, 1, 2, 3, 4}> {
      h = Add(x, index_1)
      y = Add(h, index_2)
    })");
  setSignature(model, {"table"});
  for (const char *name : {"index_1", "index_2"})
    setFoldedFrom(model, name, "['table', 'val_2']");
  setOrigin(model, 0, "");
  setOrigin(model, 1, "");
  Classified result = classify(model);
  EXPECT_EQ(result.failure, FailureKind::None) << result.messages;
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("table"));
  EXPECT_THAT(result.values["table"], ElementsAre(1, 2, 3, 4));
}

TEST(Repeated, TokensRepeatedForEachSampleMayHaveBegunEqual) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[3,1,2] x) => (float[3,3,2] y) <float[3,1,2] expand = {0, 0, 0, 0, 0, 0}> {
      y = Concat<axis = 1>(expand, expand, x)
    })");
  setSignature(model, {"cls_token", "distillation_token"});
  setFoldedFrom(model, "expand", "['cls_token']");
  setOrigin(model, 0, "", "[%expand, %expand_1, %x], 1");
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter),
              testing::UnorderedElementsAre("cls_token", "distillation_token"));
  EXPECT_THAT(result.values["distillation_token"], ElementsAre(0, 0));
}

TEST(Repeated, PositionsOfSpeechHaveALengthForEachTap) {
  const std::string name = "pos_conv_embed.conv.parametrizations.weight.original";
  ModelProto model = makeEvaluated("mul", "2,1,2", {3, 5, 4, 12}, name + "0",
                                   "['div', '" + name + "0', '" + name + "1', 'linalg_vector_norm']");
  model.mutable_graph()->clear_metadata_props();
  setSignature(model, {name + "0", name + "1"});
  Classified result = classify(model);
  EXPECT_THAT(result.values[name + "0"], ElementsAre(5, 13)) << result.messages;
  EXPECT_THAT(result.find(name + "0")->dims, ElementsAre(1, 1, 2));
}

TEST(Repeated, BiasesAroundZerosAreTakenApart) {
  // Two blocks, whose biases are fresh, read one tensor.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[6] x) => (float[6] y) <float[6] cat = {0, 0, 0, 0, 0, 0}> {
      h = Add(x, cat)
      y = Add(h, cat)
    })");
  setSignature(model, {"a.q_bias", "a.v_bias", "b.q_bias", "b.v_bias"});
  setFoldedFrom(model, "cat", "['a.k_bias', 'a.q_bias', 'a.v_bias']");
  setOrigin(model, 0, "a");
  setOrigin(model, 1, "b");
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter),
              testing::UnorderedElementsAre("a.q_bias", "a.v_bias", "b.q_bias", "b.v_bias"));
  ASSERT_TRUE(result.find("b.v_bias")) << result.messages;
  EXPECT_THAT(result.find("b.v_bias")->dims, ElementsAre(2));
  EXPECT_EQ(importModel(model).failure, FailureKind::None);

  // Of which a middle part is no zero, nothing is known.
  result = classify(makeEvaluated("cat", "3", {1, 2, 3}, "q_bias", "['a.k_bias', 'a.q_bias', 'a.v_bias']"));
  EXPECT_THAT(result.unfolded, IsEmpty());
}

TEST(Repeated, ScalesOfLayerNormsAreKeptWithoutOne) {
  // Nemotron's 1 + w, named after the operator that reads it.
  ModelProto model = parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[3,2] x) => (float[3,2] y) <float[2] s = {1.5, 0.75}, float[2] b = {1, 2}> {
      y = LayerNormalization(x, s, b)
    })");
  model.set_producer_name("pytorch");
  model.mutable_graph()->mutable_node(0)->set_name("/norm/LayerNormalization");
  renameValue(model, "s", "onnx::LayerNormalization_7");
  renameValue(model, "b", "norm.bias");
  Classified result = classify(model);
  EXPECT_THAT(result.names(InitializerRole::Parameter), testing::UnorderedElementsAre("norm.weight", "norm.bias"));
  EXPECT_THAT(result.values["norm.weight"], ElementsAre(0.5, -0.25)) << result.messages;
}

TEST(Repeated, RowsAtPositionsOfABufferAreTaken) {
  // Nystromformer's buffer begins at 2, BERT's at 0: evaluated, they look the same.
  const std::string file = "3,2";
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  for (std::string positions : {"wpe.position_ids", "arange"}) {
    Classified result = classify(
        makeEvaluated("embedding", file, values, "wpe.weight", "['" + positions + "', 'slice_1', 'wpe.weight']"));
    ASSERT_TRUE(result.find("wpe.weight")) << result.messages;
    const bool isTaken = positions != "arange";
    EXPECT_EQ(result.find("wpe.weight")->certainty == Certainty::Assumed, isTaken);
    EXPECT_EQ(result.messages.find("taken to be the first ones, and saved as those: wpe.weight") != std::string::npos,
              isTaken)
        << result.messages;
  }
}

TEST(Repeated, RowsAtComputedPositionsAreNotKnown) {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  Classified result =
      classify(makeEvaluated("embedding", "3,2", values, "wpe.weight", "['add_1', 'arange', 'wpe.weight']"));
  EXPECT_THAT(result.messages, HasSubstr("it cannot be seen which of its rows these are"));
}

TEST(Repeated, ABiasIsTiedWhereTheWeightIs) {
  // RoBERTa's head: `head.bias` is the bias of its decoder, whose weight is the embedding, and neither of `head.dense`.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (int64[2] t) => (float[2,2] y)
      <float[2,2] "head.decoder.weight" = {1, 2, 3, 4}, float[2,2] "head.dense.weight" = {5, 6, 7, 8},
       float[2] "head.dense.bias" = {1, 2}, float[2] "head.decoder.bias" = {3, 4}> {
      e = Gather("head.decoder.weight", t)
      h = Gemm <transB = 1> (e, "head.dense.weight", "head.dense.bias")
      y = Gemm <transB = 1> (h, "head.decoder.weight", "head.decoder.bias")
    })");
  setSignature(model, {"words.weight", "head.bias", "head.dense.weight", "head.dense.bias", "head.decoder.weight",
                       "head.decoder.bias"});
  setOrigin(model, 0, "words", "%p_head_decoder_weight, %t");
  setOrigin(model, 1, "head.dense", "%e, %p_head_dense_weight, %p_head_dense_bias");
  setOrigin(model, 2, "head.decoder", "%h, %p_head_decoder_weight, %p_head_decoder_bias");
  Classified result = classify(model);
  ASSERT_TRUE(result.find("head.bias")) << result.messages;
  EXPECT_THAT(result.find("head.bias")->tied, ElementsAre("head.bias", "head.decoder.bias"));
  EXPECT_EQ(result.messages, "");
}

TEST(Repeated, AnEvaluatedWeightOfTwoLayersMayBeACopy) {
  // A decomposed program transposes each layer's weight, and the exporter keeps one of equal results: experts that
  // began as copies look like layers that share. Of a weight that was not evaluated, operands tell which it is.
  for (bool isEvaluated : {true, false}) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x) => (float[2,2] y)
        <float[2,2] w = {1, 2, 3, 4}, float[2] "a.bias" = {1, 2}, float[2] "b.bias" = {3, 4}> {
        h = )" + std::string(isEvaluated ? "Gemm" : "Gemm <transB = 1>") +
                                  R"( (x, w, "a.bias")
        y = )" + std::string(isEvaluated ? "Gemm" : "Gemm <transB = 1>") +
                                  R"( (h, w, "b.bias")
      })");
    setSignature(model, {"a.weight", "a.bias", "b.weight", "b.bias"});
    renameValue(model, "w", isEvaluated ? "permute" : "a.weight");
    if (isEvaluated)
      setFoldedFrom(model, "permute", "['a.weight']");
    setOrigin(model, 0, "a", isEvaluated ? "%p_a_bias, %x, %permute" : "%x, %p_a_weight, %p_a_bias");
    setOrigin(model, 1, "b", isEvaluated ? "%p_b_bias, %h, %permute_1" : "%h, %p_a_weight, %p_b_bias");
    Classified result = classify(model);
    ASSERT_TRUE(result.find("a.weight")) << result.messages;
    EXPECT_THAT(result.find("a.weight")->tied, ElementsAre("a.weight", "b.weight"));
    EXPECT_EQ(result.messages.find("perhaps the exporter merged weights that began equal: a.weight = b.weight") !=
                  std::string::npos,
              isEvaluated)
        << result.messages;
  }
}

TEST(Repeated, ATableThatNothingCallsIsTied) {
  // T5's `shared`, which its encoder and its decoder have under names of their own.
  for (std::string name : {"shared.weight", "pooler.weight"}) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (int64[2] t) => (float[2,2] y) <float[2,2] "decoder.embed.weight" = {1, 2, 3, 4}> {
        a = Gather("decoder.embed.weight", t)
        b = Gather("decoder.embed.weight", t)
        y = Add(a, b)
      })");
    setSignature(model, {name, "encoder.embed.weight", "decoder.embed.weight"});
    setOrigin(model, 0, "encoder.embed", "%p_decoder_embed_weight, %t");
    setOrigin(model, 1, "decoder.embed", "%p_decoder_embed_weight, %t");
    Classified result = classify(model);
    EXPECT_EQ(result.find(name) != nullptr, name == "shared.weight") << result.messages;
  }
}

TEST(Repeated, ATableOfAnEncoderAloneIsTied) {
  // T5's encoder without its decoder; another table with a name of its own may be the one, too.
  for (std::string second : {"out.weight", "side.embed_tokens.weight"}) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (int64[2] t) => (float[2,2] y)
        <float[2,2] "encoder.embed_tokens.weight" = {1, 2, 3, 4}, float[2,2] second = {5, 6, 7, 8}> {
        a = Gather("encoder.embed_tokens.weight", t)
        b = Gather(second, t)
        y = Add(a, b)
      })");
    renameValue(model, "second", second);
    setSignature(model, {"shared.weight", "encoder.embed_tokens.weight", second});
    setOrigin(model, 0, "encoder.embed_tokens", "%p_encoder_embed_tokens_weight, %t");
    setOrigin(model, 1, second.substr(0, second.rfind('.')), "%p_" + second + ", %t");
    Classified result = classify(model);
    EXPECT_EQ(result.find("shared.weight") != nullptr, second == "out.weight") << result.messages;
  }
}

TEST(Repeated, TwoLookupsOfOneTableAreOneOperation) {
  // An encoder and a decoder look the same tokens up, and the exporter merged the two: no second table began equal. Of
  // one number everywhere, one may have.
  for (const char *numbers : {"1, 2, 3, 4", "0, 0, 0, 0"}) {
    ModelProto model = parseModel(std::string(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (int64[2] t) => (float[2,2] y) <float[2,2] "head.weight" = {)") +
                                  numbers + R"(}> {
        embedding = Gather("head.weight", t)
        relu = Relu(embedding)
        tanh = Tanh(embedding)
        add = Add(relu, tanh)
        y = Gemm <transB = 1> (add, "head.weight")
      })");
    setSignature(model, {"shared.weight", "enc.embed.weight", "dec.embed.weight", "head.weight"});
    setOrigin(model, 0, "enc.embed", "%p_head_weight, %t");
    setOrigin(model, 1, "enc", "%embedding");
    setOrigin(model, 2, "dec", "%embedding_1");
    setOrigin(model, 3, "", "%relu, %tanh");
    setOrigin(model, 4, "head", "%add, %p_head_weight");
    Classified result = classify(model);
    if (*numbers == '0') {
      EXPECT_EQ(result.names(InitializerRole::Parameter).size(), 2U) << result.messages;
      continue;
    }
    ASSERT_THAT(result.names(InitializerRole::Parameter), ElementsAre("shared.weight")) << result.messages;
    EXPECT_THAT(result.find("shared.weight")->tied, ElementsAre("shared.weight", "enc.embed.weight", "head.weight"));
  }
}

TEST(Repeated, NormsThatRunAgainInABlockGoOnFromTheirStatistics) {
  // n(x) - n(z) with the second in a block without gradients, whose notes name the block's module.
  auto make = [](const std::string &mean) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x, float[2,2] z) => (float[2,2] y)
      <float[2] "n.weight" = {1, 2}, float[2] "n.bias" = {3, 2}, float[2] "n.running_mean" = {0, 0},
       float[2] "n.running_var" = {1, 1}> {
        h = BatchNormalization(x, "n.weight", "n.bias", "n.running_mean", "n.running_var")
        q = BatchNormalization(z, "n.weight", "n.bias", "n.running_mean", "n.running_var")
        y = Sub(h, q)
      })");
    setSignature(model, {"n.weight", "n.bias"},
                 "b_n_running_mean: BUFFER target='n.running_mean' persistent=True\n"
                 "b_n_running_var: BUFFER target='n.running_var' persistent=True\n"
                 "b_k_running_mean: BUFFER target='k.running_mean' persistent=True\n# outputs\n"
                 "getitem_8: BUFFER_MUTATION target='n.running_mean'\n"
                 "getitem_9: BUFFER_MUTATION target='n.running_var'\n");
    setOrigin(model, 0, "n", "%x, %p_n_weight, %p_n_bias, %b_n_running_mean, %b_n_running_var, True");
    setOrigin(model, 1, "body", "%z, %p_n_weight, %p_n_bias, " + mean + ", %getitem_4, True");
    return classify(model);
  };
  EXPECT_THAT(make("%getitem_3").names(InitializerRole::State),
              testing::UnorderedElementsAre("n.running_mean", "n.running_var"));
  // Another norm's statistic is not this one's.
  EXPECT_THAT(make("%b_k_running_mean").names(InitializerRole::State), testing::Contains("n.running_mean"));
}

TEST(Repeated, NormsThatRunAgainAndBeganEqualAreToldByTheirResults) {
  // k(n(x)) - k(n(z)) without scales: all four read the statistics of n, and the last two name results of the first
  // two.
  auto make = [](const std::string &third, const std::string &fourth) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x, float[2,2] z) => (float[2,2] y)
      <float[2] "a.weight" = {1, 2}, float[2] one = {1, 1}, float[2] zero = {0, 0},
       float[2] "n.running_mean" = {0, 0}, float[2] "n.running_var" = {1, 1}> {
        h = Mul(x, "a.weight")
        getitem = BatchNormalization(h, one, zero, "n.running_mean", "n.running_var")
        getitem_5 = BatchNormalization(getitem, one, zero, "n.running_mean", "n.running_var")
        getitem_10 = BatchNormalization(z, one, zero, "n.running_mean", "n.running_var")
        getitem_15 = BatchNormalization(getitem_10, one, zero, "n.running_mean", "n.running_var")
        y = Sub(getitem_5, getitem_15)
      })");
    std::string inputs, outputs = "# outputs\n";
    for (std::string norm : {"n", "k"})
      for (std::string role : {"running_mean", "running_var"}) {
        inputs += "b_" + norm + "_" + role + ": BUFFER target='" + norm + "." + role + "' persistent=True\n";
        outputs += "new_" + norm + "_" + role + ": BUFFER_MUTATION target='" + norm + "." + role + "'\n";
      }
    setSignature(model, {"a.weight"}, inputs + outputs);
    setOrigin(model, 0, "a", "%x, %p_a_weight");
    setOrigin(model, 5, "", "%getitem_5, %getitem_15");
    setOrigin(model, 1, "n", "%h, None, None, %b_n_running_mean, %b_n_running_var, True");
    setOrigin(model, 2, "k", "%getitem, None, None, %b_k_running_mean, %b_k_running_var, True");
    setOrigin(model, 3, "body", "%z, None, None, " + third + ", True");
    setOrigin(model, 4, "body", "%getitem_10, None, None, " + fourth + ", True");
    return classify(model);
  };
  const auto all = testing::UnorderedElementsAre("n.running_mean", "n.running_var", "k.running_mean", "k.running_var");
  EXPECT_THAT(make("%getitem_3, %getitem_4", "%getitem_8, %getitem_9").names(InitializerRole::State), all);
  // The other way round.
  EXPECT_THAT(make("%getitem_8, %getitem_9", "%getitem_3, %getitem_4").names(InitializerRole::State), all);
}

TEST(Repeated, WhatIsEvaluatedOfADetachedParameterIsDetached) {
  // w + w.detach().t(), of which the file holds both.
  auto countDetached = [](const std::string &tensor, const std::string &from, const std::string &operand) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,3] x) => (float[3,3] y)
      <float[2,3] w = {1, 2, 3, 4, 5, 6}, float[3,2] )" +
                                  tensor + R"( = {1, 4, 2, 5, 3, 6}> {
        h = Mul(x, w)
        y = MatMul()" + tensor + R"(, h)
      })");
    setSignature(model, {"w"});
    setFoldedFrom(model, tensor, from);
    setOrigin(model, 0, "", "%x, %p_w");
    setOrigin(model, 1, "", operand + ", %h");
    RecordingContext recording;
    OnnxFile file(recording.context, "model.onnx");
    const std::string bytes = model.SerializeAsString();
    EXPECT_TRUE(succeeded(file.loadBytes({bytes.data(), bytes.size()})));
    classify(file, recording);
    const auto &nodes = file.getModel().graph().node();
    return std::pair(
        std::count_if(nodes.begin(), nodes.end(), [](const auto &node) { return node.name().ends_with("@detach"); }),
        recording.messages);
  };
  EXPECT_EQ(countDetached("t", "['detach', 'w']", "%t").first, 1);
  // Not detached, or another value that was merged with it.
  EXPECT_EQ(countDetached("t", "['w']", "%t").first, 0);
  EXPECT_EQ(countDetached("t", "['detach', 'w']", "%t_1").first, 0);
  // An operation of two values may read the parameter as well.
  EXPECT_EQ(countDetached("t", "['detach', 'div', 'w']", "%t").first, 0);
}

/// `x[i] = token` of two places, whose values are `val_5`, made of `sources`; then `last`.
static Classified assignToken(const std::string &sources, const std::string &last = "y = Neg(z)") {
  ::onnx::ModelProto model =
      parseModel("<ir_version: 10, opset_import: [\"\" : 20]> g (float[4,3] x, int64[2,1] i) => (float[4,3] y) "
                 "<float[2,3] val_5 = {1, 2, 4, 1, 2, 4}> "
                 "{ tanh = Tanh(x) z = ScatterND(tanh, i, val_5) " +
                 last + " }");
  setSignature(model, {"token"});
  setFoldedFrom(model, "val_5", sources);
  for (int node = 0; node != model.graph().node_size(); ++node)
    setOrigin(model, node, "");
  return classify(model);
}

TEST(Repeated, ATokenThatIsAssignedIsOneRow) {
  // Of what a node computes the exporter knows the shape alone.
  Classified result = assignToken("['token', 'tanh', 'val_4']");
  EXPECT_THAT(result.names(InitializerRole::Parameter), testing::ElementsAre("token"));
  EXPECT_THAT(result.values["token"], testing::ElementsAre(1, 2, 4));
  EXPECT_EQ(result.find("val_5"), nullptr);
}

TEST(Repeated, WhatIsComputedOfATokenIsNot) {
  // A function of the token, and values that something else reads as well.
  for (const Classified &result : {assignToken("['token', 'cumsum', 'val_4']"),
                                   assignToken("['token', 'tanh', 'val_4']", "w = ReduceSum(val_5) y = Mul(z, w)")})
    EXPECT_EQ(result.values.count("token"), 0u) << result.messages;
}
