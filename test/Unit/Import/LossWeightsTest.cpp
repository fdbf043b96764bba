//===- LossWeightsTest.cpp - what only weighs losses --------------------------------===//
//
// Weights of classes and terms are not trained, whether or not a program lists them among its parameters.
//
//===----------------------------------------------------------------------===//

#include "TestModel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using testing::ElementsAre;
using testing::HasSubstr;

/// Losses of elements by `weight`, and what becomes of them; `ids` are labels. `isNoted`: the program lists the weight
/// as a parameter.
static Classified classifyLoss(const std::string &body, bool isNoted = false) {
  ModelProto model = parseModel(R"(
    <ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
    g (float[4,2] x, float[4,3] t, int64[4] ids) => (float loss)
    <float[2,3] "fc.weight" = {1, 2, 3, 4, 5, 6}, float[3] "loss.weight" = {1, 2, 0.5}> {
      h = MatMul(x, "fc.weight")
      )" + body + "}");
  if (isNoted)
    setSignature(model, {"fc.weight", "loss.weight"});
  return classify(model);
}

TEST(Classification, WhatOnlyWeighsLossesIsNotTrained) {
  const std::string logarithm = "p = Sigmoid(h) l = Log(p) e = Mul(t, l) ";
  for (std::string body : {
           // BCEWithLogitsLoss(weight=...), a mean of squares by channel, a focal loss with a factor for each class
           logarithm + R"(n = Neg(e) m = Mul("loss.weight", n) loss = ReduceMean <keepdims = 0> (m))",
           std::string(R"(d = Sub(h, t) e = Mul(d, d) m = Mul(e, "loss.weight") loss = ReduceSum <keepdims = 0> (m))"),
           std::string(R"(e = SoftmaxCrossEntropyLoss <reduction = "none"> (h, ids) c = Gather("loss.weight", ids)
             m = Mul(c, e) s = ReduceSum <keepdims = 0> (m) b = ReduceSum <keepdims = 0> (c) loss = Div(s, b))"),
           // cross_entropy(weight=...); rows that labels name, as the current exporter reads them
           std::string(R"(loss = SoftmaxCrossEntropyLoss (h, ids, "loss.weight"))"),
           std::string(R"(e = SoftmaxCrossEntropyLoss <reduction = "none"> (h, ids) one = Constant <value_ints = [1]> ()
             i = Unsqueeze(ids, one) c = GatherND("loss.weight", i) m = Mul(c, e) loss = ReduceMean <keepdims = 0> (m))"),
           // A difference that the exporter wrote twice
           std::string(R"(d = Sub(h, t) q = Sub(h, t) e = Mul(d, q) m = Mul(e, "loss.weight")
             loss = ReduceMean <keepdims = 0> (m))"),
           // BCEWithLogitsLoss(pos_weight=...): (1 + (w - 1) t) log p
           R"(one = Constant <value = float {1}> () )" + logarithm + R"(v = Sub("loss.weight", one) u = Mul(v, t)
             k = Add(u, one) m = Mul(k, l) n = Neg(m) loss = ReduceMean <keepdims = 0> (n))",
           // A pinball loss of quantiles: w relu(t - h) + (1 - w) relu(h - t)
           std::string(R"(one = Constant <value = float {1}> () d = Sub(t, h) a = Relu(d) e = Neg(d) b = Relu(e)
             v = Sub(one, "loss.weight") m = Mul("loss.weight", a) n = Mul(v, b) k = Add(m, n)
             loss = ReduceMean <keepdims = 0> (k))"),
       }) {
    for (bool isNoted : {false, true}) {
      Classified result = classifyLoss(body, isNoted);
      EXPECT_THAT(result.names(InitializerRole::Parameter), ElementsAre("fc.weight")) << body << result.messages;
      // The operator has an operand for weights of classes, which without notes are no guess.
      const bool isSaid = isNoted || body.find("ids, \"loss.weight\"") == std::string::npos;
      if (isSaid)
        EXPECT_THAT(result.messages, HasSubstr("'loss.weight' only weighs losses")) << body;
    }
  }
  for (
      std::string body : {
          // What a layer makes, a penalty that holds it, a function of it, and a loss that goes on
          std::string(R"(m = Mul(h, "loss.weight") loss = ReduceMean <keepdims = 0> (m))"),
          logarithm +
              R"(m = Mul(e, "loss.weight") q = Mul("loss.weight", "loss.weight") r = Add(m, q) loss = ReduceMean <keepdims = 0> (r))",
          logarithm + R"(w = Exp("loss.weight") m = Mul(e, w) loss = ReduceMean <keepdims = 0> (m))",
          logarithm + R"(m = Mul(e, "loss.weight") s = Softmax(m) loss = ReduceMean <keepdims = 0> (s))",
          // What is added to the loss as well, what a layer's result is added to, and a layer before a distance
          logarithm + R"(m = Mul(e, "loss.weight") r = Add(m, "loss.weight") loss = ReduceMean <keepdims = 0> (r))",
          logarithm + R"(v = Add(h, "loss.weight") m = Mul(v, l) loss = ReduceMean <keepdims = 0> (m))",
          std::string(
              R"(r = Relu(h) m = Mul(r, "loss.weight") d = Sub(m, t) a = Abs(d) loss = ReduceMean <keepdims = 0> (a))"),
          std::string(R"(r = Relu(h) m = Mul(r, "loss.weight") loss = ReduceMean <keepdims = 0> (m))"),
      })
    for (bool isNoted : {false, true})
      EXPECT_THAT(classifyLoss(body, isNoted).names(InitializerRole::Parameter),
                  testing::UnorderedElementsAre("fc.weight", "loss.weight"))
          << body;
}

TEST(Classification, WhatIsAloneInALossIsTrained) {
  // The temperature of entropies in soft actor-critic: its loss is linear in it, and holds no other parameter.
  for (bool isNoted : {false, true}) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20], producer_name: "pytorch">
      g (float[4] p) => (float loss)
      <float[4] "temperature.weight" = {0.5, 0.25, 1, 2}> {
        l = Log(p) m = Mul("temperature.weight", l) loss = ReduceMean <keepdims = 0> (m)
      })");
    if (isNoted)
      setSignature(model, {"temperature.weight"});
    EXPECT_THAT(classify(model).names(InitializerRole::Parameter), ElementsAre("temperature.weight"));
  }
}

TEST(Classification, AFactorOfWhatIsDetachedIsTrained) {
  // `-(log_alpha * (log_prob + target).detach()).mean()` next to the actor's loss: the term is there to train it.
  auto find = [](const std::string &operand, bool isInFile) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20], producer_name: "pytorch">
      g (float[4,2] x) => (float loss) <float[2,3] "actor.weight" = {1, 2, 3, 4, 5, 6}, float log_alpha = {0}> {
        h = MatMul(x, "actor.weight")
        p = Sigmoid(h)
        l = Log(p)
        detach = Identity(l)
        m = Mul(log_alpha, )" + std::string(isInFile ? "detach" : "l") +
                                  R"()
        s = Sub(l, m)
        loss = ReduceMean <keepdims = 0> (s)
      })");
    setSignature(model, {"actor.weight", "log_alpha"});
    if (isInFile)
      setOperation(model, 3, "detach", 1, "detach.default", "%l");
    setOperation(model, 4, "m", 1, "mul.Tensor", "%p_log_alpha, " + operand);
    return classify(model).names(InitializerRole::Parameter);
  };
  EXPECT_THAT(find("%detach", true), testing::UnorderedElementsAre("actor.weight", "log_alpha"));
  EXPECT_THAT(find("%detach_1", false), testing::UnorderedElementsAre("actor.weight", "log_alpha"));
  EXPECT_THAT(find("%l", false), ElementsAre("actor.weight"));
}
