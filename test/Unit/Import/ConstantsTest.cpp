//===- ConstantsTest.cpp - parameters that are no initializers of the graph ---------===//

#include "TestModel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace lowtide;
using namespace lowtide::test;
using ::onnx::ModelProto;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

namespace {
Classified classifyText(const std::string &graph, ImportOptions options = {}) {
  return classify(parseModel("<ir_version: 8, opset_import: [\"\" : 17]>" + graph), options);
}
} // namespace

TEST(Constants, ListsOfFloatsAreParametersAsTensorsAre) {
  Classified result = classifyText(R"(
    g (float[2,2] x) => (float[2,2] y) {
      w = Constant<value = float[2,2] {1, 2, 3, 5}>()
      b = Constant<value_floats = [0.5, 0.25]>()
      h = MatMul(x, w)
      y = Add(h, b)
    })");
  EXPECT_THAT(result.names(InitializerRole::Parameter), UnorderedElementsAre("w", "b"));
}

TEST(Constants, BiasesByNamesOfConstantNodesAreTrained) {
  // Weights that layers read were trained, and what is added to their products was not.
  Classified result = classifyText(R"(
    g (float[2,2] x) => (float[2,2] y)
      <float[2,2] Constant_0 = {1, 2, 3, 5}, float[2] Constant_1 = {0.5, 0.25}, float[2] Constant_2 = {2, 4}> {
      h = MatMul(x, Constant_0)
      i = Add(h, Constant_1)
      y = Mul(i, Constant_2)
    })");
  EXPECT_THAT(result.names(InitializerRole::Parameter), UnorderedElementsAre("Constant_0", "Constant_1"));
  EXPECT_THAT(result.messages, HasSubstr("seem to come from parameters; they are trained: Constant_1"));
}

TEST(Constants, TensorsOfBranchesAndBodiesAreParameters) {
  Classified result = classifyText(R"(
    g (float[3,2] x, bool c) => (float[2] z) <float[2] h0 = {1, 3}> {
      h, ys = Scan<num_scan_inputs = 1, body = step (float[2] s, float[2] v) => (float[2] t, float[2] u)
                   <float[2] a = {1, 2}> {
        b = Constant<value = float[2] {3, 5}>()
        k = Mul(s, a)
        l = Add(k, b)
        t = Add(l, v)
        u = Identity(t)
      }>(h0, x)
      z = If(c)<then_branch = yes () => (float[2] p) <float[2] w = {7, 5}> { p = Mul(h, w) },
                else_branch = no () => (float[2] q) { q = Identity(h) }>
    })");
  EXPECT_THAT(result.names(InitializerRole::Parameter), UnorderedElementsAre("h0", "a", "b", "w"));
}

TEST(Constants, TensorsOfOneNameInTwoBranchesAreTwo) {
  Classified result = classifyText(R"(
    g (float[2] x, bool c) => (float[2] z) {
      z = If(c)<then_branch = yes () => (float[2] p) <float[2] w = {7, 5}> { p = Mul(x, w) },
                else_branch = no () => (float[2] q) <float[2] w = {1, 2}> { q = Mul(x, w) }>
    })");
  EXPECT_THAT(result.names(InitializerRole::Parameter), UnorderedElementsAre("w@yes", "w@no"));
}

TEST(Constants, FiltersThatCountBinsAreNotTrained) {
  // Detectors take the mean of a distribution over bins by a convolution whose weight is no parameter of the optimizer.
  const std::string text = R"(
    g (float[1,8,1,4] x) => (float[1,1,1,4] y)
      <float[1,8,1,1] "model.23.dfl.conv.weight" = {0,1,2,3,4,5,6,LAST}> {
      s = Softmax<axis = 1>(x)
      y = Conv(s, "model.23.dfl.conv.weight")
    })";
  auto withLast = [&](const std::string &last) { return std::string(text).replace(text.find("LAST"), 4, last); };
  Classified result = classifyText(withLast("7"));
  EXPECT_THAT(result.names(InitializerRole::Constant), UnorderedElementsAre("model.23.dfl.conv.weight"));
  EXPECT_THAT(result.messages, HasSubstr("are not trained: model.23.dfl.conv.weight"));
  ImportOptions options;
  options.selections = {{true, "+*.dfl.conv.weight"}};
  EXPECT_THAT(classifyText(withLast("7"), options).names(InitializerRole::Parameter),
              UnorderedElementsAre("model.23.dfl.conv.weight"));
  // Trained once, it counts no more.
  EXPECT_THAT(classifyText(withLast("7.01")).names(InitializerRole::Parameter),
              UnorderedElementsAre("model.23.dfl.conv.weight"));
}

TEST(Constants, FilesOfScriptedModulesSayNothingByTheirOrder) {
  // torch.jit.script lists tensors as they are used, torch.jit.trace from the last one on.
  auto parameters = [](const std::string &tensors) {
    ModelProto model = parseModel(R"(
      <ir_version: 8, producer_name: "pytorch", opset_import: ["" : 17]>
      g (float[2,2] x) => (float[2,2] y) <)" +
                                  tensors + R"(> {
        h = Gemm<transB = 1>(x, "a.weight", "a.bias")
        y = BatchNormalization(h, "n.weight", "n.bias", "n.running_mean", "n.running_var")
      })");
    return classify(model).names(InitializerRole::Parameter);
  };
  const std::string weight = "float[2] \"n.weight\" = {1, 2}, float[2] \"n.bias\" = {0, 1}",
                    statistics = "float[2] \"n.running_mean\" = {0, 1}, float[2] \"n.running_var\" = {1, 2}",
                    matrix = "float[2,2] \"a.weight\" = {1, 2, 3, 4}", bias = "float[2] \"a.bias\" = {1, 2}";
  auto all = UnorderedElementsAre("n.weight", "n.bias", "a.weight", "a.bias");
  EXPECT_THAT(parameters(matrix + ", " + bias + ", " + weight + ", " + statistics), all);
  EXPECT_THAT(parameters(matrix + ", " + bias + ", " + statistics + ", " + weight), all);
  EXPECT_THAT(parameters(statistics + ", " + weight + ", " + bias + ", " + matrix), all);
}

TEST(Classification, ANamedNumberFillsNoPlaceOfABias) {
  // `self.b = nn.ParameterList([nn.Parameter(torch.tensor(0.0))])`, which the program adds.
  auto find = [](const std::string &producer, const std::string &name) {
    ModelProto model = parseModel(R"(
      <ir_version: 8, opset_import: ["" : 17]>
      g (float[2,3] x) => (float[2,2] y) <float[3,2] "net.fc.weight" = {1, 2, 3, 4, 5, 6}, float )" +
                                  name + R"( = {0}> {
        h = MatMul(x, "net.fc.weight")
        y = Add(h, )" + name + R"()
      })");
    model.set_producer_name(producer);
    return classify(model).names(InitializerRole::Parameter);
  };
  EXPECT_THAT(find("pytorch", "\"net.b.0\""), testing::UnorderedElementsAre("net.fc.weight", "net.b.0"));
  EXPECT_THAT(find("pytorch", "\"onnx::Add_3\""), ElementsAre("net.fc.weight"));
  EXPECT_THAT(find("jax2onnx", "\"dot.bias_0\""), ElementsAre("net.fc.weight"));
}
