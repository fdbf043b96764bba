//===- HeldTensorsTest.cpp - tensors that no module of the program holds ------------===//
//
// A program that reads its parameters in a list gets copies of them, from which no gradient comes back.
//
//===----------------------------------------------------------------------===//

#include "TestModel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using testing::HasSubstr;
using testing::Not;

namespace {
/// `mean(x·W) + Σ l²`, where l is a lifted tensor of these numbers; `square` is what is made of it.
ModelProto makePenalty(const std::string &numbers, const std::string &square = "Mul(l, l)") {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,3] x) => (float y)
    <float[3,3] "fc.weight" = {1, 2, 3, 5, 4, 6, 7, 9, 8}, float[3,3] l = {)" +
                                numbers + R"(}> {
      h = MatMul(x, "fc.weight")
      mean = ReduceMean<keepdims = 0>(h)
      square = )" + square + R"(
      sum = ReduceSum<keepdims = 0>(square)
      y = Add(mean, sum)
    })");
  renameValue(model, "l", "lifted_tensor_0");
  setSignature(model, {"fc.weight"}, "c_lifted_tensor_0: CONSTANT_TENSOR target='lifted_tensor_0'\n");
  setOrigin(model, 0, "fc", "%x, %p_fc_weight");
  return model;
}

/// What the node that gives `square` reads first.
std::string findRead(const ModelProto &model) {
  const ::onnx::GraphProto graph = importGraph(model);
  for (const auto &node : graph.node())
    if (node.output(0) == "square")
      return node.input(0);
  return "";
}
const std::string same = "1, 2, 3, 5, 4, 6, 7, 9, 8", other = "1, 2, 3, 5, 4, 6, 7, 9, 11";
} // namespace

TEST(HeldTensors, APenaltyReadsItsParameterAgain) {
  const ModelProto model = makePenalty(same);
  EXPECT_EQ(findRead(model), "fc.weight");
  EXPECT_THAT(classify(model).messages, HasSubstr("they read the parameters again: fc.weight"));
  // Of other numbers it is not known whose copy it is; a term of constants is of no use all the same.
  EXPECT_EQ(findRead(makePenalty(other)), "lifted_tensor_0");
  EXPECT_THAT(
      classify(makePenalty(other)).messages,
      HasSubstr("a term of the loss is made of constants alone, of tensors that no module of the program holds"));
}

TEST(HeldTensors, WhatStaysNearItsFirstValuesIsNoPenalty) {
  // `Σ w - w0`: the copy that a program keeps is read next to the parameter.
  const ModelProto model = makePenalty(same, "Sub(\"fc.weight\", l)");
  const ::onnx::GraphProto graph = importGraph(model);
  for (const auto &node : graph.node())
    if (node.output(0) == "square")
      EXPECT_EQ(node.input(1), "lifted_tensor_0");
  EXPECT_THAT(classify(model).messages, Not(HasSubstr("no module")));
}

TEST(HeldTensors, ACopyThatALayerReadsIsDoubted) {
  // A teacher in a list, or the weight of another layer: nothing tells which.
  const ModelProto model = makePenalty(same, "MatMul(x, l)");
  EXPECT_EQ(findRead(model), "x");
  EXPECT_THAT(classify(model).messages, HasSubstr("taken for copies, from which no gradient comes: fc.weight"));
  EXPECT_EQ(classify(makePenalty(other, "MatMul(x, l)")).messages, "");
}

TEST(HeldTensors, ParametersThatNothingReadsMayBeThose) {
  // A cell that reads `self._params["sigma"]`: the file holds copies, and not the parameters.
  ModelProto model = makePenalty(other, "MatMul(x, l)");
  model.mutable_graph()->clear_metadata_props();
  setSignature(model, {"fc.weight", "cell.sigma"}, "c_lifted_tensor_0: CONSTANT_TENSOR target='lifted_tensor_0'\n");
  EXPECT_THAT(classify(model).messages, HasSubstr("no operation reads the parameters cell.sigma"));
  // Numbers that someone wrote are no parameter's.
  ModelProto plain = makePenalty("0, 0, 0, 1, 1, 1, 2, 2, 2", "MatMul(x, l)");
  plain.mutable_graph()->clear_metadata_props();
  setSignature(plain, {"fc.weight", "cell.sigma"}, "c_lifted_tensor_0: CONSTANT_TENSOR target='lifted_tensor_0'\n");
  EXPECT_THAT(classify(plain).messages, Not(HasSubstr("no operation reads")));
}

TEST(HeldTensors, AnEvaluatedPenaltyIsSaid) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,3] x) => (float y) <float[3,3] "fc.weight" = {1, 2, 3, 5, 4, 6, 7, 9, 8}, float sum_9 = {3}> {
      h = MatMul(x, "fc.weight")
      mean = ReduceMean<keepdims = 0>(h)
      y = Add(mean, sum_9)
    })");
  setSignature(model, {"fc.weight"}, "c_lifted_tensor_0: CONSTANT_TENSOR target='lifted_tensor_0'\n");
  setOrigin(model, 0, "fc", "%x, %p_fc_weight");
  setFoldedFrom(model, "sum_9", "['lifted_tensor_0', 'pow_1', 'val_3']");
  EXPECT_THAT(classify(model).messages, HasSubstr("get no gradient from it: lifted_tensor_0"));
}
