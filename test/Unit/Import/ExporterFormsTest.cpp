//===- ExporterFormsTest.cpp - what exporters write for what ONNX has no word for --===//

#include "TestModel.h"

#include "lowtide/Recover/Evidence.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(Distances, WithoutAbsoluteValuesAreSaid) {
  // The exporter writes the root as 1 / (p + 1e-6), which a file that is not folded leaves to be computed.
  auto say = [](const std::string &order, const std::string &root) {
    return importModel(parseModel(R"(
      <ir_version: 8, opset_import: ["" : 17], producer_name: "pytorch">
      g (float[3,2] a, float[3,2] b) => (float[3] y) <int64[1] last = {-1}> {
        d = Sub(a, b)
        p = Constant<value = float {)" +
                                  order + R"(}>()
        power = Pow(d, p)
        sum = ReduceSum<keepdims = 0>(power, last)
        )" + root + R"(
        y = Pow(sum, q)
      })"))
        .messages;
  };
  const std::string computed = R"(e = Constant<value = float {0.000001}>() s = Add(p, e)
                                  one = Constant<value = float {1.0}>() q = Div(one, s))";
  for (const std::string &said :
       {say("1.0", computed), say("3.0", computed), say("1.0", "q = Constant<value = float {1.0}>()")})
    EXPECT_THAT(said, HasSubstr("without their absolute values, which count at these orders: y"));
  // Even orders, and powers that are no distance.
  for (const std::string &silent : {say("2.0", computed), say("3.0", "q = Constant<value = float {0.5}>()"),
                                    say("3.0", "q = Div(p, p)"), say("3.0", "q = Add(p, p)")})
    EXPECT_THAT(silent, Not(HasSubstr("absolute values")));
}

TEST(Pools, OfAllPlacesPickOneElement) {
  auto isPool = [](const std::string &operation, const std::string &modules, const std::string &line) {
    ::onnx::NodeProto node;
    node.set_op_type("ReduceMax");
    for (const auto &[key, value] :
         {std::pair<std::string, std::string>("class_hierarchy", "['M', " + modules + "'aten." + operation + "']"),
          std::pair<std::string, std::string>("stack_trace", "File \"net.py\", line 7, in forward\n    " + line)}) {
      auto *prop = node.add_metadata_props();
      prop->set_key("pkg.torch.onnx." + key);
      prop->set_value(value);
    }
    return isOfMaximumPool(node);
  };
  EXPECT_TRUE(isPool("amax.default", "'torch.nn.modules.pooling.AdaptiveMaxPool2d', ", ""));
  EXPECT_TRUE(isPool("amax.default", "", "h = F.adaptive_max_pool1d(h, 1)"));
  EXPECT_FALSE(isPool("amax.default", "", "h = h.amax((-2, -1), keepdim=True)"));
  EXPECT_FALSE(isPool("amin.default", "", "h = -F.adaptive_max_pool1d(-h, 1)"));
}
