//===- BindingsTest.cpp - many look-ups and many changes at once ----------===//
//
// An index says what going through all arguments and results says, and what is changed together becomes what it becomes
// one by one.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Dialect/Train/Bindings.h"

#include "lowtide/Dialect/NN/NN.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace lowtide;

namespace {

/// A step in which names are shared by bindings of several kinds, and one binding comes twice.
struct Bindings : testing::Test {
  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;
  func::FuncOp step;

  Bindings() {
    context.loadDialect<nn::NNDialect, train::TrainDialect, func::FuncDialect>();
    module = parseSourceString<ModuleOp>(R"mlir(
      func.func @train(%w: tensor<4xf32> {train.binding = #train.param<"w">}, %x: tensor<4xf32>,
                       %s: tensor<4xf32> {train.binding = #train.state<"w">},
                       %m: tensor<4xf32> {train.binding = #train.state<"w.m">, train.group = "g"},
                       %n: tensor<4xf32> {train.binding = #train.state<"w.m">})
          -> (tensor<4xf32> {train.binding = #train.state<"w.m">}, tensor<4xf32>,
              tensor<4xf32> {train.binding = #train.gradient<"w">},
              tensor<4xf32> {train.binding = #train.param<"w">}) {
        return %m, %x, %s, %w : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
      })mlir",
                                         ParserConfig(&context));
    step = *module->getOps<func::FuncOp>().begin();
  }

  train::StateAttr getState(StringRef name) {
    return train::StateAttr::get(&context, StringAttr::get(&context, name), FloatAttr(), /*fromFile=*/false);
  }

  template <typename Binding> void expectAgreement(const train::BindingIndex &index) {
    for (StringRef name : {"w", "w.m", "grad/w", "v", ""}) {
      EXPECT_EQ(index.findArg<Binding>(name), train::findArg<Binding>(step, name)) << name.str();
      EXPECT_EQ(index.findResult<Binding>(name), train::findResult<Binding>(step, name)) << name.str();
    }
  }
  void expectAgreement(const train::BindingIndex &index) {
    expectAgreement<train::ParamAttr>(index);
    expectAgreement<train::StateAttr>(index);
    expectAgreement<train::GradientAttr>(index);
    expectAgreement<train::MetricAttr>(index);
  }
};

TEST_F(Bindings, AreFoundInAnIndexAsInTheStep) {
  const train::BindingIndex index(step);
  expectAgreement(index);
  EXPECT_EQ(index.findArg<train::StateAttr>("w.m"), 3u);
  EXPECT_EQ(index.findGradient(StringAttr::get(&context, "w")), 2u);
  EXPECT_EQ(index.findGradient(StringAttr::get(&context, "w.m")), std::nullopt);
}

TEST_F(Bindings, KeepTheirNumbersInAnIndexWhileOthersAreAppended) {
  const train::BindingIndex index(step);
  Value more = train::appendArg(step, step.getArgument(0).getType(), getState("v.m"), step.getLoc());
  train::appendResult(step, more, getState("v.m"));
  expectAgreement(index);
  EXPECT_EQ(index.findArg<train::StateAttr>("v.m"), std::nullopt);
  EXPECT_EQ(train::BindingIndex(step).findArg<train::StateAttr>("v.m"), 5u);
  EXPECT_EQ(train::BindingIndex(step).findResult<train::StateAttr>("v.m"), 4u);
}

TEST_F(Bindings, ChangeTogetherAsOneByOne) {
  func::FuncOp other = step.clone();
  module->push_back(other);
  other.setSymName("other");
  const Attribute unit = UnitAttr::get(&context);
  const Type type = step.getArgument(0).getType();

  step.setArgAttr(3, train::bindingAttrName, getState("w.q"));
  step.setArgAttr(1, train::unreachedAttrName, unit);
  step.setArgAttr(1, train::groupAttrName, unit);
  step.removeArgAttr(3, train::groupAttrName);
  step.setResultAttr(1, train::bindingAttrName, getState("w.q"));
  Value more = train::appendArg(step, type, getState("v.m"), step.getLoc());
  train::appendResult(step, more, getState("v.m"));
  step.setArgAttr(5, train::groupAttrName, unit);

  train::SignatureGrowth growth(other);
  growth.setArgAttr(3, train::bindingAttrName, getState("w.q"));
  growth.setArgAttr(1, train::unreachedAttrName, unit);
  growth.setArgAttr(1, train::groupAttrName, unit);
  growth.setArgAttr(3, train::groupAttrName, {});
  growth.setResultAttr(1, train::bindingAttrName, getState("w.q"));
  growth.appendResult(growth.appendArg(type, getState("v.m"), step.getLoc()), getState("v.m"));
  growth.setArgAttr(5, train::groupAttrName, unit);
  EXPECT_EQ(train::getArgBinding(other, 3), getState("w.m"));
  growth.finish();

  EXPECT_EQ(other.getFunctionType(), step.getFunctionType());
  EXPECT_EQ(other.getArgAttrsAttr(), step.getArgAttrsAttr());
  EXPECT_EQ(other.getResAttrsAttr(), step.getResAttrsAttr());
  EXPECT_EQ(train::getArgBinding(other, 3), getState("w.q"));
}

} // namespace
