//===- TensorFlowTest.cpp - who is a parameter in files of tf2onnx ------------------===//

#include "TestModel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

namespace {
ModelProto parseTensorFlow(const std::string &text) {
  ModelProto model = parseModel("<ir_version: 8, opset_import: [\"\" : 17]>" + text);
  model.set_producer_name("tf2onnx");
  model.mutable_graph()->set_name("tf2onnx");
  return model;
}

/// x · w, scaled and shifted by `v`, twice, in two scopes.
ModelProto makeTwoNorms(const std::string &values) {
  ModelProto model = parseTensorFlow(R"(
    g (float[2,3] x) => (float[2,2] y)
      <float[3,2] "net/dense/Cast/ReadVariableOp:0" = {1,5,3,2,6,4}, float[1,2] "net/norm_2/Reshape:0" = )" +
                                     values + R"(> {
      h = MatMul(x, "net/dense/Cast/ReadVariableOp:0")
      i = Mul(h, "net/norm_2/Reshape:0")
      y = Mul(i, "net/norm_2/Reshape:0")
    })");
  model.mutable_graph()->mutable_node(1)->set_name("net/norm_1/mul");
  model.mutable_graph()->mutable_node(2)->set_name("net/norm_2/mul");
  return model;
}
} // namespace

TEST(TensorFlow, VariablesAreParametersAndNumbersOfTheProgramAreNot) {
  Classified result = classify(parseTensorFlow(R"(
    g (float[2,3] x) => (float[2,2] y)
      <float[3] "net/normalization/Sub/y:0" = {0.3, 0.9, 0.2}, float[3,2] "net/dense/Cast/ReadVariableOp:0" = {1,5,3,2,6,4},
       float[2] "net/attention_output_1/BiasAdd/ReadVariableOp:0" = {0, 1}, float[1,2] const_fold_opt__7 = {3, 1}, float eps = {0.1}> {
      d = Sub(x, "net/normalization/Sub/y:0")
      h = MatMul(d, "net/dense/Cast/ReadVariableOp:0")
      i = Add(h, "net/attention_output_1/BiasAdd/ReadVariableOp:0")
      j = Add(i, eps)
      y = Add(j, const_fold_opt__7)
    })"));
  // What describes the data stands in front of all layers.
  EXPECT_THAT(result.names(InitializerRole::Parameter),
              UnorderedElementsAre("net/dense/Cast/ReadVariableOp:0", "net/attention_output_1/BiasAdd/ReadVariableOp:0",
                                   "const_fold_opt__7"));
  EXPECT_THAT(result.messages, HasSubstr("seem to come from parameters; they are trained: const_fold_opt__7\n"));
  EXPECT_THAT(result.messages, Not(HasSubstr("do_constant_folding")));
}

TEST(TensorFlow, ScalesThatBeganEqualAreTakenApart) {
  Classified result = classify(makeTwoNorms("{1, 1}"));
  EXPECT_THAT(result.names(InitializerRole::Parameter),
              UnorderedElementsAre("net/dense/Cast/ReadVariableOp:0", "net/norm_2/Reshape:0", "net/norm_1/Reshape:0"));
  EXPECT_THAT(result.messages, HasSubstr("trained apart: net/norm_1/Reshape:0"));
}

TEST(TensorFlow, NumbersByChanceAreOneVariable) {
  Classified result = classify(makeTwoNorms("{1.5, 0.7}"));
  EXPECT_THAT(result.names(InitializerRole::Parameter),
              UnorderedElementsAre("net/dense/Cast/ReadVariableOp:0", "net/norm_2/Reshape:0"));
}

TEST(TensorFlow, FoldedBatchNormsAreWarnedAbout) {
  ModelProto model = parseTensorFlow(R"(
    g (float[1,1,2,2] x) => (float[1,1,2,2] y)
      <float[1,1,1,1] "net/conv/convolution/merged_input:0" = {2}, float[1] "net/bn/batchnorm/sub:0" = {1}> {
      y = Conv(x, "net/conv/convolution/merged_input:0", "net/bn/batchnorm/sub:0")
    })");
  EXPECT_THAT(classify(model).messages, HasSubstr("was folded into convolutions and cannot be trained: "
                                                  "net/conv/convolution/merged_input:0, net/bn/batchnorm/sub:0"));
}

TEST(TensorFlow, TheBiasOfZerosThatOnnxAddsIsNotTrained) {
  const std::string text = R"(
    g (float[1,1,1] x) => (float[1,1,1,1] y)
      <float[1,4,1] W0 = {1,2,3,4}, float[1,4,1] R0 = {1,2,3,4}, float[1,8] B0 = {5,6,7,8,0,0,0,LAST}> {
      y = LSTM<hidden_size = 1>(x, W0, R0, B0)
    })";
  auto withLast = [&](const std::string &last) { return std::string(text).replace(text.find("LAST"), 4, last); };
  Classified result = classify(parseTensorFlow(withLast("0")));
  EXPECT_THAT(result.names(InitializerRole::Parameter), UnorderedElementsAre("W0", "R0", "B0/bias"));
  EXPECT_THAT(result.values["B0/bias"], ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(result.find("B0/bias")->dims, ElementsAre(1, 4));
  // A GRU that resets after its product has a second bias, which may well be zeros.
  const std::string gru = R"(
    g (float[1,1,1] x) => (float[1,1,1,1] y)
      <float[1,3,1] W0 = {1,2,3}, float[1,3,1] R0 = {1,2,3}, float[1,6] B0 = {5,6,7,0,0,0}> {
      y = GRU<hidden_size = 1, linear_before_reset = RESET>(x, W0, R0, B0)
    })";
  auto withReset = [&](const std::string &reset) { return std::string(gru).replace(gru.find("RESET"), 5, reset); };
  EXPECT_TRUE(classify(parseTensorFlow(withReset("0"))).find("B0/bias"));
  EXPECT_TRUE(classify(parseTensorFlow(withReset("1"))).find("B0"));
  // Two biases stay one tensor, as do those of other producers.
  EXPECT_TRUE(classify(parseTensorFlow(withLast("1"))).find("B0"));
  EXPECT_TRUE(classify(parseModel("<ir_version: 8, opset_import: [\"\" : 17]>" + withLast("0"))).find("B0"));
}
