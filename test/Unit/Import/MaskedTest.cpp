//===- MaskedTest.cpp - products of weights and masks, layers that read zeros -------===//

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
/// A product of these values, evaluated from the weight and `mask`, which a layer reads.
ModelProto makeMasked(const std::string &mask, const std::string &values = "1, 0, 3, 4, 0, 6") {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,3] x) => (float[2,2] y) <float[2,3] mul = {)" +
                                values + R"(}, float[2] "fc.bias" = {1, 2}> {
      y = Gemm<transB = 1>(x, mul, "fc.bias")
    })");
  setSignature(model, {"fc.weight", "fc.bias"}, "b_mask: BUFFER target='" + mask + "' persistent=True\n");
  setFoldedFrom(model, "mul", "['convert_element_type_default', '" + mask + "', 'fc.weight']");
  setOrigin(model, 0, "fc", "%x, %mul, %p_fc_bias");
  return model;
}
} // namespace

TEST(Masked, TheWeightIsTrainedUnderItsMask) {
  Classified result = classify(makeMasked("fc.mask"));
  EXPECT_THAT(result.names(InitializerRole::Parameter), UnorderedElementsAre("fc.weight", "fc.bias"));
  EXPECT_THAT(result.values["fc.weight"], ElementsAre(1, 0, 3, 4, 0, 6));
  EXPECT_THAT(result.messages, HasSubstr("the file does not tell everything about them: fc.weight"));
  const ::onnx::GraphProto graph = importGraph(makeMasked("fc.mask"));
  EXPECT_TRUE(std::any_of(graph.node().begin(), graph.node().end(), [](const auto &node) {
    return node.op_type() == "Mul" && node.output(0) == "mul" && node.input(0) == "fc.weight";
  }));
}

TEST(Masked, WhatIsNoMaskIsNotTakenApart) {
  // A scale may hold zeros, too; and a mask hides something, and not all.
  for (const ModelProto &model :
       {makeMasked("fc.scale"), makeMasked("fc.mask", "1, 2, 3, 4, 5, 6"), makeMasked("fc.mask", "0, 0, 0, 0, 0, 0")})
    EXPECT_THAT(classify(model).unfolded, Not(testing::Contains(testing::Key("fc.weight"))));
}

TEST(Masked, ALayerOfZerosTrainsNothing) {
  // The first step of a recurrence: `linear(h0, w)` of a buffer of zeros.
  auto make = [](const std::string &weight, const std::string &first) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x) => (float[2,2] y)
      <float[2,2] "u.weight" = {)" +
                                  weight + R"(}, float[2,2] linear = {)" + first + R"(}> {
        h = Add(x, linear)
        y = Gemm<transB = 1>(h, "u.weight")
      })");
    setSignature(model, {"u.weight"}, "b_h0: BUFFER target='h0' persistent=True\n");
    setFoldedFrom(model, "linear", "['expand', 'h0', 'u.weight']");
    setOrigin(model, 0, "", "%x, %linear");
    setOrigin(model, 1, "u", "%h, %p_u_weight");
    return importModel(model);
  };
  EXPECT_EQ(make("1, 2, 3, 4", "0, 0, 0, 0").numErrors, 0u);
  EXPECT_THAT(make("1, 2, 3, 4", "0, 0, 0, 1").messages, HasSubstr("'u.weight' is in the file twice"));
  // Zeros of anything are zeros.
  EXPECT_THAT(make("0, 0, 0, 0", "0, 0, 0, 0").messages, HasSubstr("u.weight"));
}

TEST(Masked, AProductWithZerosTrainsNothing) {
  // The first step of a recurrence: `s * p.sigmoid()` of `s = torch.zeros(…)`.
  auto make = [](const std::string &first, const std::string &from) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x) => (float[2,2] y) <float[2] "net.p" = {1, 2}, float[2,2] mul = {)" +
                                  first + R"(}> {
        h = Add(mul, x)
        y = Mul(h, "net.p")
      })");
    setSignature(model, {"net.p"});
    setFoldedFrom(model, "mul", from);
    setOrigin(model, 0, "net", "%mul, %x");
    setOrigin(model, 1, "net", "%h, %p_net_p");
    return importModel(model);
  };
  const std::string from = "['net.p', 'sigmoid', 'val_2', 'zeros']";
  EXPECT_EQ(make("0, 0, 0, 0", from).messages, "");
  EXPECT_EQ(make("0, 0, 0, 0", from).numErrors, 0u);
  // Other numbers, no zeros of the program's, and a sum that they may be an operand of.
  EXPECT_THAT(make("0, 0, 0, 1", from).messages, HasSubstr("'net.p' is in the file twice"));
  EXPECT_THAT(make("0, 0, 0, 0", "['net.p', 'val_2']").messages, HasSubstr("net.p"));
  EXPECT_THAT(make("0, 0, 0, 0", "['add', 'net.p', 'zeros']").messages, HasSubstr("net.p"));
  EXPECT_THAT(make("0, 0, 0, 0", "['cat', 'net.p', 'zeros']").messages, HasSubstr("net.p"));
}
