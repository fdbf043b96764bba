//===- StackedTest.cpp - values of which the file holds one part for each reader ------------===//
//
// `tools/dev zoo --only='programs/part-*'` are the real files.
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

namespace {
/// `b = table[:, |i - j|]` of three places, for two heads: `b[1]` is read first, then `b[0]`. `second` is the last
/// element of head 0.
ModelProto makeHeads(const std::string &second, const std::string &constants = "") {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[3,3] x) => (float[3,3] y)
    <float[3,3] select = {4, 5, 6, 5, 4, 5, 6, 5, 4},
     float[3,3] select_1 = {1, 2, 3, 2, 1, 2, 3, 2, )" +
                                second + "}" + constants + R"(> {
      a = Add(x, select)
      y = Add(a, select_1)
    })");
  setSignature(model, {"table"});
  setFoldedFrom(model, "select", "['index', 'table', 'val_0', 'val_8']");
  setFoldedFrom(model, "select_1", "['index', 'table', 'val_0', 'val_9']");
  setOrigin(model, 0, "");
  setOrigin(model, 1, "");
  return model;
}
} // namespace

TEST(Stacked, HeadsReadColumnsOfOneTable) {
  // In the order in which they are read.
  Classified result = classify(makeHeads("1"));
  EXPECT_EQ(result.failure, FailureKind::None) << result.messages;
  EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("table"));
  ASSERT_TRUE(result.find("table"));
  EXPECT_THAT(result.find("table")->dims, ElementsAre(2, 3));
  EXPECT_THAT(result.values["table"], ElementsAre(4, 5, 6, 1, 2, 3));
  EXPECT_THAT(result.messages, HasSubstr("the file does not tell everything about them: table"));
}

TEST(Stacked, AnIndexThatTheFileHoldsTellsThePlace) {
  Classified result = classify(makeHeads("1", ", int64 val_8 = {1}, int64 val_9 = {0}"));
  EXPECT_EQ(result.failure, FailureKind::None) << result.messages;
  EXPECT_THAT(result.values["table"], ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Stacked, HeadsThatReadOtherPositionsAreNotPutTogether) {
  EXPECT_THAT(classify(makeHeads("7")).messages,
              HasSubstr("parameter 'table' is in the file twice, as 'select' and as 'select_1'"));
}

TEST(Stacked, PartsOfAFunctionGiveTheParameterBack) {
  auto make = [](const std::string &sources) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[3] x) => (float[3] y) <float[3] select = {1, 2, 4}, float[3] select_2 = {8, 16, 33}> {
        a = Mul(x, select)
        y = Add(a, select_2)
      })");
    setSignature(model, {"gate"});
    setFoldedFrom(model, "select", "['exp', 'gate', 'val_0']");
    setFoldedFrom(model, "select_2", sources);
    setOrigin(model, 0, "");
    setOrigin(model, 1, "");
    return classify(model);
  };
  auto is = [](float number) { return FloatNear(std::log(number), 1e-6f); };
  Classified result = make("['exp', 'gate', 'val_1']");
  EXPECT_EQ(result.failure, FailureKind::None) << result.messages;
  ASSERT_TRUE(result.find("gate")) << result.messages;
  EXPECT_THAT(result.find("gate")->dims, ElementsAre(2, 3));
  EXPECT_THAT(result.values["gate"], ElementsAre(is(1), is(2), is(4), is(8), is(16), is(33)));
  EXPECT_THAT(result.messages, HasSubstr("the file does not tell everything about them: gate"));
  // Of another function, or by another operation as well: not of the same value.
  for (const char *sources : {"['exp_1', 'gate', 'val_1']", "['exp', 'gate', 'mul', 'val_1']"})
    EXPECT_THAT(make(sources).messages, HasSubstr("is in the file twice")) << sources;
}

TEST(Stacked, PartsThatAreRepeatedForEverySampleAreOneParameter) {
  // `k, v = self.mem_kv`, each joined to the keys and values of every sample.
  auto make = [](const std::string &values, const std::string &second) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,1,2] x) => (float[2,3,2] y)
      <float[2,1,2] expand_1 = {)" +
                                  values +
                                  R"(}, float[2,1,2] expand = {1, 2, 1, 2}> {
        y = Concat<axis = 1>(expand, x, expand_1)
      })");
    setSignature(model, {"attn.mem_kv"});
    setFoldedFrom(model, "expand", "['attn.mem_kv', 'getitem_3', 'unsqueeze', 'val_7']");
    setFoldedFrom(model, "expand_1", second);
    setOrigin(model, 0, "attn");
    return classify(model);
  };
  const std::string second = "['attn.mem_kv', 'getitem_4', 'unsqueeze_1', 'val_9']";
  Classified result = make("3, 4, 3, 4", second);
  EXPECT_EQ(result.failure, FailureKind::None) << result.messages;
  ASSERT_TRUE(result.find("attn.mem_kv")) << result.messages;
  EXPECT_THAT(result.find("attn.mem_kv")->dims, ElementsAre(2, 1, 2));
  EXPECT_THAT(result.values["attn.mem_kv"], ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(result.messages, HasSubstr("the file does not tell everything about them: attn.mem_kv"));
  // One differs from sample to sample; a part between the two is not in the file; another operation is.
  for (const Classified &other :
       {make("3, 4, 3, 5", second), make("3, 4, 3, 4", "['attn.mem_kv', 'getitem_5', 'unsqueeze_1']"),
        make("3, 4, 3, 4", "['attn.mem_kv', 'getitem_4', 'mul']")})
    EXPECT_THAT(other.messages, HasSubstr("is in the file twice"));
}
