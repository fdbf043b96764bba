//===- RecoveryTest.cpp - what a program did that its file does not hold -----------===//
//
// Each rule: a file in which it acts, and one in which it must not.
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
using testing::HasSubstr;
using testing::Not;

/// What PyTorch's current exporter notes: the operation's result, how many read it, and what it reads.
static void setOperation(ModelProto &model, int index, const std::string &result, int users,
                         const std::string &operation, const std::string &operands) {
  setNote(model, index, "pkg.torch.onnx.name_scopes", "['', 'op']");
  setNote(model, index, "pkg.torch.onnx.class_hierarchy", "['M', 'aten." + operation + "']");
  setNote(model, index, "pkg.torch.onnx.fx_node",
          "%" + result + " : [num_users=" + std::to_string(users) + "] = call_function[target=torch.ops.aten." +
              operation + "](args = (" + operands + "), kwargs = {})");
}

TEST(Recovery, APartOfAParameterMayHaveLostTheRest) {
  auto make = [](const std::string &output) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2] x) => (float[2] y) <float select_1 = {0.5}> {
        y = Mul(x, select_1)
      })");
    setSignature(model, {"s"}, "x: USER_INPUT\n\n# outputs\n" + output + ": USER_OUTPUT\n");
    setFoldedFrom(model, "select_1", "['s', 'val_7']");
    setOperation(model, 0, "mul", 1, "mul.Tensor", "%x, %select_1");
    return classify(model).messages;
  };
  EXPECT_THAT(make("add_1"), HasSubstr("took s apart and dropped operations"));
  EXPECT_THAT(make("mul"), Not(HasSubstr("apart")));
}
