//===- ValueEquivalenceTest.cpp - the check around exact passes -----------===//
//
// A pass that says "(exact)" and swaps the operands of a subtraction is caught; one that says nothing may.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Analysis/ValueEquivalence.h"
#include "lowtide/Dialect/NN/NN.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace lowtide;

namespace {

/// Swaps the operands of every op that has two.
template <bool saysExact> struct SwapOperands : PassWrapper<SwapOperands<saysExact>, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SwapOperands)
  StringRef getArgument() const final { return saysExact ? "test-swap-exact" : "test-swap"; }
  StringRef getDescription() const final { return saysExact ? "swap operands (exact)" : "swap operands (real-equal)"; }
  void runOnOperation() final {
    this->getOperation()->walk([](Operation *op) {
      if (op->getNumOperands() == 2) {
        Value first = op->getOperand(0);
        op->setOperand(0, op->getOperand(1));
        op->setOperand(1, first);
      }
    });
  }
};

/// Takes one of two steps away.
struct TakeEval : PassWrapper<TakeEval, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TakeEval)
  StringRef getArgument() const final { return "test-take-exact"; }
  StringRef getDescription() const final { return "takes a step away (exact)"; }
  void runOnOperation() final { getOperation().lookupSymbol("eval")->erase(); }
};

template <typename Rewrite> bool isCaught(std::vector<std::string> &messages) {
  PassRegistration<Rewrite>();
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<nn::NNDialect, func::FuncDialect>();
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &d) { messages.push_back(d.str()); });
  auto module = parseSourceString<ModuleOp>(R"mlir(
    func.func @train(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %0 = nn.sub %x, %y : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    func.func @eval(%x: tensor<4xf32>) -> tensor<4xf32> {
      return %x : tensor<4xf32>
    })mlir",
                                            &context);
  PassManager passes(&context);
  passes.addPass(std::make_unique<Rewrite>());
  bool violated = false;
  addEquivalenceChecks(passes, violated);
  EXPECT_TRUE(succeeded(passes.run(*module)));
  return violated;
}

TEST(ValueEquivalence, CatchesAnInexactPass) {
  std::vector<std::string> messages;
  EXPECT_TRUE(isCaught<SwapOperands<true>>(messages));
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0], "test-swap-exact changed the value of 0 : i64 in @train, which it must not");
}

TEST(ValueEquivalence, MissesAStep) {
  std::vector<std::string> messages;
  EXPECT_TRUE(isCaught<TakeEval>(messages));
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0], "test-take-exact took @eval away, which it must not");
}

TEST(ValueEquivalence, LetsOthersChangeValues) {
  std::vector<std::string> messages;
  EXPECT_FALSE(isCaught<SwapOperands<false>>(messages));
  EXPECT_TRUE(messages.empty());
}

} // namespace
