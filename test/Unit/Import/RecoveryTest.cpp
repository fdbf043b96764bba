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

/// A student and its copy, which read the same; the copy is detached. `users`: of the student's result.
static ModelProto makeCopy(int users) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,2] x) => (float[2,2] y)
    <float[2,2] "student.weight" = {1, 2, 3, 4}, float[2,2] "head.weight" = {4, 3, 2, 1}> {
      linear = Gemm<transB = 1>(x, "student.weight")
      linear_1 = Gemm<transB = 1>(linear, "head.weight")
      y = Sub(linear_1, linear)
    })");
  setSignature(model, {"student.weight", "head.weight", "teacher.weight"},
               "x: USER_INPUT\n\n# outputs\nsub: USER_OUTPUT\n");
  setOperation(model, 0, "linear", users, "linear.default", "%x, %p_student_weight");
  setOperation(model, 1, "linear_1", 1, "linear.default", "%linear, %p_head_weight");
  setOperation(model, 2, "sub", 1, "sub.Tensor", "%linear_1, %detach");
  return model;
}

TEST(Recovery, ADetachedCopyIsALayerOfItsOwn) {
  Classified copied = classify(makeCopy(1));
  EXPECT_THAT(copied.names(InitializerRole::Parameter),
              testing::UnorderedElementsAre("student.weight", "head.weight", "teacher.weight"))
      << copied.messages;
  // With another reader, it is the student that is detached.
  EXPECT_EQ(classify(makeCopy(2)).find("teacher.weight"), nullptr);
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
