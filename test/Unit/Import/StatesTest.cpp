//===- StatesTest.cpp - learned first states of recurrent layers ----------------------------===//
//
// As PyTorch's current exporter writes layers of one `nn.LSTM`, `nn.GRU` or `nn.RNN`; `tools/dev zoo
// --only='programs/states-*'` has the real files.
//
//===----------------------------------------------------------------------===//

#include "TestModel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Not;

/// Two layers of a network, whose first states are `first` and `second`, made of parameter h by `sources`.
static Classified makeLayers(const std::string &first, const std::string &second, const std::string &sources) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,2,1] x) => (float[2,1,2,1] y)
    <float[1,3,1] w = {1, 2, 3}, float[1,3,1] r = {4, 5, 6}, int64[1] one = {1},
     float[1,2,1] val_14 = {)" + first +
                                R"(}, float[1,2,1] val_9 = {)" + second + R"(}> {
      a = GRU<hidden_size = 1>(x, w, r, , , val_9)
      b = Squeeze(a, one)
      y = GRU<hidden_size = 1>(b, w, r, , , val_14)
    })");
  setSignature(model, {"h", "w", "r"});
  setFoldedFrom(model, "val_9", "['h', " + sources + ", 'val_1']");
  setFoldedFrom(model, "val_14", "['h', " + sources + ", 'val_1', 'val_11']");
  return classify(model);
}

TEST(States, PartsThatLayersReadAreOneParameter) {
  for (const char *sources : {"'expand'", "'repeat', 'unsqueeze'"}) {
    Classified result = makeLayers("0.5, 0.5", "-2, -2", sources);
    EXPECT_EQ(result.messages, "");
    EXPECT_THAT(result.names(InitializerRole::Parameter), Contains("h"));
    // The first layer's is read first.
    EXPECT_THAT(result.values["h"], ElementsAre(-2, 0.5));
    EXPECT_EQ(result.find("h")->dims.size(), std::string(sources) == "'expand'" ? 3u : 2u);
    EXPECT_THAT(result.replaced, Contains(Key("val_9")));
    EXPECT_THAT(result.replaced, Contains(Key("val_14")));
  }
}

TEST(States, StatesOfEachSampleAreKeptApart) {
  Classified result = makeLayers("0.5, 0.25", "-2, 3", "'contiguous'");
  EXPECT_EQ(result.messages, "");
  EXPECT_THAT(result.values["h"], ElementsAre(-2, 3, 0.5, 0.25));
}

TEST(States, OtherValuesAreNoRepeatedStates) {
  EXPECT_THAT(makeLayers("0.5, 0.25", "-2, -2", "'expand'").messages, HasSubstr("is in the file twice"));
  EXPECT_THAT(makeLayers("0.5, 0.5", "-2, -2", "'expand', 'tanh'").messages, HasSubstr("is in the file twice"));
}

/// Two layers of an LSTM whose states are all one tensor; `operands`: what the program's operation reads; `gone`: a
/// parameter that no note names, or none.
static Classified makeEqual(const std::string &operands, std::vector<std::string> parameters) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,2,1] x) => (float[2,1,2,1] y)
    <float[1,4,1] w = {1, 2, 3, 4}, float[1,4,1] r = {4, 5, 6, 7}, int64[1] one = {1}, float[1,2,1] val_9 = {0, 0}> {
      a = LSTM<hidden_size = 1>(x, w, r, , , val_9, val_9)
      b = Squeeze(a, one)
      y = LSTM<hidden_size = 1>(b, w, r, , , val_9, val_9)
    })");
  parameters.insert(parameters.end(), {"w", "r"});
  setSignature(model, std::move(parameters), "x: USER_INPUT\n");
  for (int node : {0, 1, 2})
    setOperation(model, node, "lstm", 1, "lstm.input", operands);
  setFoldedFrom(model, "val_9", "['h', 'expand', 'val_1']");
  return classify(model);
}

TEST(States, StatesThatBeganEqualAreToldByTheOperation) {
  Classified result = makeEqual("%x, [%expand, %expand_1], [%p_w, %p_r], False, 2", {"h", "c"});
  EXPECT_THAT(result.messages, Not(HasSubstr("error")));
  EXPECT_THAT(result.messages, HasSubstr("does not tell everything about them: c"));
  EXPECT_THAT(result.names(InitializerRole::Parameter), testing::IsSupersetOf({"h", "c"}));
  EXPECT_THAT(result.values["h"], ElementsAre(0, 0));
  EXPECT_THAT(result.values["c"], ElementsAre(0, 0));

  // One for both.
  result = makeEqual("%x, [%expand, %expand], [%p_w, %p_r], False, 2", {"h"});
  EXPECT_EQ(result.messages, "");
  EXPECT_THAT(result.values["h"], ElementsAre(0, 0));
  EXPECT_EQ(result.find("c"), nullptr);

  // Zeros of the program, which are no parameter's.
  result = makeEqual("%x, [%expand, %zeros], [%p_w, %p_r], False, 2", {"h"});
  EXPECT_EQ(result.messages, "");
  EXPECT_THAT(result.values["h"], ElementsAre(0, 0));
  EXPECT_THAT(result.names(InitializerRole::Parameter), testing::SizeIs(3));
}

TEST(States, WhatMayBeOneOfSeveralIsLeft) {
  for (const Classified &result : {makeEqual("%x, [%expand, %expand_1], [%p_w, %p_r], False, 2", {"h", "c", "d"}),
                                   makeEqual("%x, [%expand, %tanh], [%p_w, %p_r], False, 2", {"h"})})
    EXPECT_THAT(result.messages, HasSubstr("has one value everywhere"));
}

/// Two layers of an `nn.RNN`: what the weights made of the parts of h, w · h + b; `parts`: what the notes call them.
static Classified makeSteps(const std::string &first, const std::string &second, const std::string &parts) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,2] x) => (float[2,2] y)
    <float[2,2] val_7 = {2, 0, 0, 4}, float[2] b = {1, -1}, float[2,2] linear_1 = {)" +
                                first + R"(}, float[2,2] linear_2 = {)" + second + R"(}> {
      a = MatMul(x, val_7)
      c = Add(a, b)
      d = Add(c, linear_1)
      y = Add(d, linear_2)
    })");
  setSignature(model, {"h", "w", "b"}, "x: USER_INPUT\n");
  setOperation(model, 0, "linear", 1, "linear.default", "%x, %p_w, %p_b");
  setFoldedFrom(model, "val_7", "['w']");
  setFoldedFrom(model, "linear_1", "['h', 'b', 'w', 'expand', 'getitem', 'val_1']");
  setFoldedFrom(model, "linear_2", "['h', 'b', 'w', 'expand', '" + parts + "', 'val_1']");
  return classify(model);
}

TEST(States, PartsThatLayersMultiplyAreSolvedFor) {
  Classified result = makeSteps("2, 7, 2, 7", "0, 1, 0, 1", "getitem_1");
  EXPECT_THAT(result.messages, Not(HasSubstr("error")));
  EXPECT_THAT(result.messages, HasSubstr("does not tell everything about them: h"));
  EXPECT_THAT(result.values["h"], ElementsAre(0.5, 2, -0.5, 0.5));
  // The same part for both, and rows that are not repeated.
  EXPECT_THAT(makeSteps("2, 7, 2, 7", "0, 1, 0, 1", "getitem").messages, HasSubstr("is in the file twice"));
  EXPECT_THAT(makeSteps("2, 7, 2, 7", "0, 1, 0, 2", "getitem_1").messages, HasSubstr("is in the file twice"));
}

/// A layer of a file without notes, whose first states are `state`.
static Classified makeNameless(const std::string &state) {
  return classify(parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3,1] x) => (float[2,1,3,2] y)
    <float[1,6,1] w = {1, 2, 3, 4, 5, 6}, float[1,6,2] r = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
     float[1,3,2] "onnx::GRU_41" = {)" +
                             state + R"(}> {
      y = GRU<hidden_size = 2>(x, w, r, , , "onnx::GRU_41")
    })"));
}

TEST(States, StatesWithoutNotesAreOneForAllSamples) {
  Classified result = makeNameless("0.5, -1, 0.5, -1, 0.5, -1");
  EXPECT_THAT(result.names(InitializerRole::Parameter), Contains("initial_h"));
  EXPECT_THAT(result.values["initial_h"], ElementsAre(0.5, -1));
  EXPECT_THAT(result.messages, HasSubstr("does not tell everything about them: initial_h"));
  // Zeros, with which layers begin by default, and states of one sample each.
  for (const char *state : {"0, 0, 0, 0, 0, 0", "0.5, -1, 0.5, -1, 0.5, 1"})
    EXPECT_THAT(makeNameless(state).names(InitializerRole::Parameter), Not(Contains("initial_h")));
}

/// Two layers x · k + b of a module that keeps k and b stacked, b of zeros; `second`: what the program calls the part
/// of b that the second layer reads; `later`: the second part of k.
static Classified makeStacked(const std::string &second, const std::string &later) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,3] x) => (float[2,3] y)
    <float[3] select = {1, 2, 3}, float[3] view_2 = {4, 5, 6}, float[3] select_1 = {0, 0, 0}> {
      a = Mul(x, select)
      b = Add(a, select_1)
      c = Mul(b, view_2)
      y = Add(c, select_1)
    })");
  setSignature(model, {"m.k", "m.b"}, "x: USER_INPUT\n");
  setOperation(model, 1, "b", 1, "add.Tensor", "%a, %select_1");
  setOperation(model, 3, "y", 1, "add.Tensor", "%c, %" + second);
  setFoldedFrom(model, "select", "['m.k', 'val_0']");
  setFoldedFrom(model, "view_2", "['m.k', '" + later + "', 'val_2']");
  setFoldedFrom(model, "select_1", "['m.b', 'val_1']");
  return classify(model);
}

TEST(Parts, EqualPartsAreAsManyAsThoseThatAreReadWithThem) {
  Classified result = makeStacked("select_3", "select_2");
  EXPECT_THAT(result.messages, Not(HasSubstr("error")));
  EXPECT_THAT(result.messages, HasSubstr("does not tell everything about them: m.b"));
  EXPECT_THAT(result.names(InitializerRole::Parameter), Contains("m.b"));
  EXPECT_THAT(result.values["m.b"], ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(Parts, EqualPartsThatAreReadOtherwiseAreRefused) {
  // After both parts of k, perhaps one part twice.
  EXPECT_THAT(makeStacked("select_4", "select_5").messages, HasSubstr("stands for select_1, select_4 of the program"));
}
