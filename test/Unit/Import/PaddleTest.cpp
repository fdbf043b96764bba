//===- PaddleTest.cpp - who is a parameter in files of paddle2onnx ------------------===//

#include "TestModel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

namespace {
/// As paddle2onnx 2.1 writes it: no producer, and a name of the graph.
ModelProto parsePaddle(const std::string &text) {
  ModelProto model = parseModel("<ir_version: 8, opset_import: [\"\" : 17]>" + text);
  model.mutable_graph()->set_name("PaddlePaddle Graph in PIR mode");
  return model;
}
} // namespace

TEST(Paddle, BiasesInAnotherShapeAreParametersAndScalesAreNot) {
  // A convolution's bias is added to it, zeros as it begins; dropout in inference form is a product with one number.
  Classified result = classify(parsePaddle(R"(
    g (float[1,1,2,2] x) => (float[1,2,2,2] y)
      <float[2,1,1,1] "conv2d_0.w_0" = {2, 3}, float[1,2,1,1] "p2o.pd_op.reshape.0.0" = {0, 0},
       float[1] "helper.constant.0" = {0.5}, float[1] "auto.cast.4" = {0.25}> {
      "p2o.pd_op.conv2d.0.0" = Conv(x, "conv2d_0.w_0")
      "p2o.pd_op.add.0.0" = Add("p2o.pd_op.conv2d.0.0", "p2o.pd_op.reshape.0.0")
      "p2o.pd_op.dropout.0.0" = Mul("p2o.pd_op.add.0.0", "helper.constant.0")
      y = Mul("p2o.pd_op.dropout.0.0", "auto.cast.4")
    })"));
  EXPECT_THAT(result.names(InitializerRole::Parameter), UnorderedElementsAre("conv2d_0.w_0", "p2o.pd_op.reshape.0.0"));
  EXPECT_THAT(result.messages, Not(HasSubstr("warning")));
}

TEST(Paddle, TheStateThatARecurrenceBeginsWithIsNotTrained) {
  Classified result = classify(parsePaddle(R"(
    g (float[2,1,1] x) => (float[2,1,1,1] y)
      <float[1,3,1] "helper.concat.4" = {1,2,3}, float[1,3,1] "helper.concat.5" = {4,5,6},
       float[1,6] "helper.concat.8" = {1,2,3,4,5,7}, float[1,1,1] "helper.slice.12" = {0}, float[1] "linear_0.b_0" = {0}> {
      h = GRU<hidden_size = 1, linear_before_reset = 1>(x, "helper.concat.4", "helper.concat.5", "helper.concat.8", , "helper.slice.12")
      y = Add(h, "linear_0.b_0")
    })"));
  EXPECT_THAT(result.names(InitializerRole::Constant), UnorderedElementsAre("helper.slice.12"));
}

TEST(Paddle, NamesOfThatKindMeanNothingInOtherFiles) {
  Classified result = classify(parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2,2] x) => (float[2,2] y) <float[1] "helper.scale.0" = {0.5}> { y = Mul(x, "helper.scale.0") })"));
  EXPECT_THAT(result.names(InitializerRole::Parameter), UnorderedElementsAre("helper.scale.0"));
}
