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
