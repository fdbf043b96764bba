//===- DrawsTest.cpp - random numbers that an exporter drew once instead of twice --===//
//
// What is drawn again, or run again, and what was only computed twice of one draw.
//
//===----------------------------------------------------------------------===//

#include "TestModel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using testing::HasSubstr;
using testing::Not;

/// Number of nodes `op` that the file has once it is read.
static int count(const ModelProto &model, const std::string &op) {
  RecordingContext recording;
  OnnxFile file(recording.context, "model.onnx");
  std::string bytes = model.SerializeAsString();
  EXPECT_TRUE(mlir::succeeded(file.loadBytes(llvm::ArrayRef(bytes.data(), bytes.size())))) << recording.messages;
  const auto &nodes = file.getModel().graph().node();
  return int(std::count_if(nodes.begin(), nodes.end(), [&](const auto &node) { return node.op_type() == op; }));
}

/// Two passes with dropout over the same values, of which the exporter kept one. `users`: how many operations read what
/// is dropped.
static ModelProto makeDraws(int users, const std::string &reader, bool isLayer = true) {
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,2] x) => (float[2,2] y) <float[2,2] "fc.weight" = {1, 2, 3, 4}, float ratio = {0.5}, bool on = {1}> {
      first = Gemm<transB = 1>(x, "fc.weight")
      tanh = Tanh(first)
      getitem = Dropout(tanh, ratio, on)
      linear = )" + std::string(isLayer ? R"(Gemm<transB = 1>(getitem, "fc.weight"))" : "Relu(getitem)") +
                                R"(
      y = Sub(linear, linear)
    })");
  setSignature(model, {"fc.weight"}, "x: USER_INPUT\n\n# outputs\nsub: USER_OUTPUT\n");
  setOperation(model, 0, "first", 1, "linear.default", "%x, %p_fc_weight");
  setOperation(model, 1, "tanh", users, "tanh.default", "%first,");
  setOperation(model, 2, "native_dropout", 1, "native_dropout.default", "%tanh, 0.5, True");
  setOperation(model, 3, "linear", 1, "linear.default", isLayer ? "%getitem, %p_fc_weight" : "%getitem,");
  setOperation(model, 4, "sub", 1, "sub.Tensor", "%linear, %" + reader);
  return model;
}

TEST(Recovery, DrawsAreMadeApart) {
  // No program runs a layer twice on one value.
  ModelProto twice = makeDraws(1, "linear_1");
  EXPECT_THAT(importModel(twice).messages, HasSubstr("they are drawn apart again: linear_1"));
  EXPECT_EQ(count(twice, "Dropout"), 2);
  EXPECT_EQ(count(twice, "Gemm"), 3);
  // Two operations read what is dropped, and the file has one.
  EXPECT_EQ(count(makeDraws(2, "linear_1", false), "Dropout"), 2);
  EXPECT_THAT(importModel(makeDraws(1, "linear_1", false)).messages, HasSubstr("whether of several draws"));
}

TEST(Recovery, OneDrawStaysOne) {
  EXPECT_EQ(count(makeDraws(2, "linear"), "Dropout"), 1);
  EXPECT_THAT(importModel(makeDraws(1, "linear")).messages, Not(HasSubstr("draws")));
  // Two operations on one value: the program has more readers of it than the file.
  ModelProto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,2] x) => (float[2,2] y) <float[2,2] "fc.weight" = {1, 2, 3, 4}, float ratio = {0.5}, bool on = {1}> {
      getitem = Dropout(x, ratio, on)
      linear = Gemm<transB = 1>(getitem, "fc.weight")
      softmax = Softmax(linear)
      y = Mul(softmax, softmax)
    })");
  setSignature(model, {"fc.weight"}, "x: USER_INPUT\n\n# outputs\nmul: USER_OUTPUT\n");
  setOperation(model, 0, "native_dropout", 1, "native_dropout.default", "%x, 0.5, True");
  setOperation(model, 1, "linear", 2, "linear.default", "%getitem, %p_fc_weight");
  setOperation(model, 2, "softmax", 1, "softmax.int", "%linear, -1");
  setOperation(model, 3, "mul", 1, "mul.Tensor", "%softmax, %softmax_1");
  EXPECT_THAT(importModel(model).messages, Not(HasSubstr("draws")));
  EXPECT_EQ(count(model, "Dropout"), 1);
}

TEST(Recovery, WhatIsJoinedTwiceIsOfOneDraw) {
  // `cat` and `cat_1` join the same values. Results are numbered: after them comes the second dropout of the program,
  // or the third one, and one is gone.
  auto make = [](const std::string &number) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x, float[2,2] z) => (float[2,2] y)
        <float[2,2] "fc.weight" = {1, 2, 3, 4}, float[4,2] "out.weight" = {1, 2, 3, 4, 5, 6, 7, 8}, float ratio = {0.5},
         bool on = {1}> {
        getitem = Dropout(x, ratio, on)
        linear = Gemm<transB = 1>(getitem, "fc.weight")
        cat = Concat<axis = 1>(linear, z)
        mul = Mul(cat, cat)
        later = Dropout(mul, ratio, on)
        y = MatMul(later, "out.weight")
      })");
    setSignature(model, {"fc.weight", "out.weight"},
                 "x: USER_INPUT\nz: USER_INPUT\n\n# outputs\nmatmul: USER_OUTPUT\n");
    setOperation(model, 0, "native_dropout", 1, "native_dropout.default", "%x, 0.5, True");
    setOperation(model, 1, "linear", 1, "linear.default", "%getitem, %p_fc_weight");
    setOperation(model, 2, "cat", 1, "cat.default", "%slice_1, %z");
    setOperation(model, 3, "mul", 1, "mul.Tensor", "%cat, %cat_1");
    setOperation(model, 4, "native_dropout_" + number, 1, "native_dropout.default", "%mul, 0.5, True");
    return model;
  };
  ModelProto joined = make("1");
  EXPECT_THAT(importModel(joined).messages, Not(HasSubstr("draws")));
  EXPECT_EQ(count(joined, "Dropout"), 2);
  ModelProto drawn = make("2");
  EXPECT_THAT(importModel(drawn).messages, HasSubstr("they are drawn apart again: cat_1"));
  EXPECT_EQ(count(drawn, "Dropout"), 3);
}

TEST(Recovery, ABatchNormThatRunsTwiceUpdatesTwice) {
  auto make = [](const std::string &operation, const std::string &reader) {
    ModelProto model = parseModel(R"(
      <ir_version: 10, opset_import: ["" : 20]>
      g (float[2,2] x) => (float[2,2] y)
      <float[2] "n.weight" = {1, 2}, float[2] "n.bias" = {3, 4}, float[2] "n.running_mean" = {5, 6},
       float[2] "n.running_var" = {7, 8}> {
        getitem = BatchNormalization(x, "n.weight", "n.bias", "n.running_mean", "n.running_var")
        y = Mul(getitem, getitem)
      })");
    setSignature(model, {"n.weight", "n.bias"},
                 "b_n_running_mean: BUFFER target='n.running_mean' persistent=True\n"
                 "b_n_running_var: BUFFER target='n.running_var' persistent=True\n"
                 "x: USER_INPUT\n\n# outputs\nmul: USER_OUTPUT\n");
    setOperation(model, 0, "norm", 3, operation,
                 "%x, %p_n_weight, %p_n_bias, %b_n_running_mean, %b_n_running_var, True, 0.1, 1e-05");
    setOperation(model, 1, "mul", 1, "mul.Tensor", "%getitem, %" + reader);
    return model;
  };
  EXPECT_EQ(count(make("_native_batch_norm_legit_functional.default", "getitem_3"), "BatchNormalization"), 2);
  EXPECT_EQ(count(make("_native_batch_norm_legit_functional.default", "getitem"), "BatchNormalization"), 1);
  // A norm that keeps its statistics updates nothing.
  EXPECT_EQ(count(make("_native_batch_norm_legit_no_training.default", "getitem_3"), "BatchNormalization"), 1);
}
