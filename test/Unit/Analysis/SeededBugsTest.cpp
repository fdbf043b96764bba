//===- SeededBugsTest.cpp - wrong rewrites are told from right ones -------===//
//
// Steps with recomputation, and bugs that a pass could make in them, as edits of their text. The check around
// exact passes must accept the rewrites that are right and reject every bug.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Analysis/ValueEquivalence.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Train.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace lowtide;

namespace {

const char *const step = R"mlir(
func.func @train(%x: tensor<4x8xf32> {train.binding = #train.batch<"x">},
                 %w: tensor<8x8xf32> {train.binding = #train.param<"w">},
                 %v: tensor<8x8xf32> {train.binding = #train.param<"v">},
                 %lr: tensor<f32> {train.binding = #train.scalar<"lr">})
    -> (tensor<8x8xf32> {train.binding = #train.param<"w">}, tensor<8x8xf32> {train.binding = #train.param<"v">},
        tensor<f32> {train.binding = #train.metric<"loss">}) {
  %h = nn.dot %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %a = nn.kernel loop (%p = %h) : (tensor<4x8xf32>) -> (tensor<4x8xf32>) {
    %c = nn.constant dense<2.0> : tensor<4x8xf32>
    %t = nn.tanh %p : tensor<4x8xf32>
    %s = nn.mul %t, %c : tensor<4x8xf32>
    nn.yield %s : tensor<4x8xf32>
  }
  %y = nn.dot %a, %v : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %loss = nn.kernel row (%p = %y) : (tensor<4x8xf32>) -> (tensor<f32>) {
    %s = nn.reduce_sum %p dims = [0, 1] : tensor<4x8xf32> -> tensor<f32>
    nn.yield %s : tensor<f32>
  }
  %dy:2 = nn.kernel loop (%p = %y, %q = %h) : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
    %e = nn.exp %p : tensor<4x8xf32>
    %m = nn.sub %e, %q : tensor<4x8xf32>
    nn.yield %e, %m : tensor<4x8xf32>, tensor<4x8xf32>
  }
  %x1 = train.remat %x after(%dy#0) : tensor<4x8xf32>, tensor<4x8xf32>
  %h1 = nn.dot %x1, %w {train.recomputed} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %a1 = nn.kernel loop (%p = %h1) attributes {train.recomputed} : (tensor<4x8xf32>) -> (tensor<4x8xf32>) {
    %c = nn.constant dense<2.0> : tensor<4x8xf32>
    %t = nn.tanh %p : tensor<4x8xf32>
    %s = nn.mul %t, %c : tensor<4x8xf32>
    nn.yield %s : tensor<4x8xf32>
  }
  %dv = nn.dot %a1, %dy#0 {transpose_a} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %da = nn.dot %dy#1, %v {transpose_b} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %dw = nn.dot %x, %da {transpose_a} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %w1 = nn.kernel loop (%p = %w, %g = %dw) : (tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<8x8xf32>) {
    %s = nn.sub %p, %g : tensor<8x8xf32>
    nn.yield %s : tensor<8x8xf32>
  }
  %v1 = nn.kernel loop (%p = %v, %g = %dv) : (tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<8x8xf32>) {
    %s = nn.sub %p, %g : tensor<8x8xf32>
    nn.yield %s : tensor<8x8xf32>
  }
  return %w1, %v1, %loss : tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>
}
)mlir";

/// Random numbers that are drawn again, a loop over parts of the batch, and a kernel that runs again in the loop.
const char *const loopStep = R"mlir(
func.func @train(%x: tensor<4x8xf32> {train.binding = #train.batch<"x">},
                 %z: tensor<4x8xf32> {train.binding = #train.batch<"z">},
                 %w: tensor<8x8xf32> {train.binding = #train.param<"w">},
                 %seed: tensor<i64> {train.binding = #train.scalar<"seed">},
                 %step: tensor<i64> {train.binding = #train.scalar<"step">},
                 %row: tensor<i64> {train.binding = #train.scalar<"row">})
    -> (tensor<8x8xf32> {train.binding = #train.param<"w">}, tensor<f32> {train.binding = #train.metric<"loss">}) {
  %u = nn.random_uniform %seed, %step, %row op = 1 batch_dim = 0 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<4x8xf32>
  %k = nn.mul %x, %u : tensor<4x8xf32>
  %y = nn.dot %k, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %none = nn.constant dense<0.0> : tensor<f32>
  %sum = train.accumulate 2 slices(%part = %y, %other = %z) carries(%before = %none) : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>) -> tensor<f32> {
    %t = nn.tanh %part : tensor<2x8xf32>
    %t1 = nn.tanh %part {train.recomputed} : tensor<2x8xf32>
    %p = nn.mul %t1, %other : tensor<2x8xf32>
    %s = nn.reduce_sum %p dims = [0, 1] : tensor<2x8xf32> -> tensor<f32>
    %next = nn.add %before, %s : tensor<f32>
    train.next carries(%next : tensor<f32>)
  }
  %u1 = nn.random_uniform %seed, %step, %row op = 1 batch_dim = 0 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<4x8xf32>
  %k1 = nn.mul %x, %u1 : tensor<4x8xf32>
  %dw = nn.dot %k1, %y {transpose_a} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %w1 = nn.sub %w, %dw : tensor<8x8xf32>
  return %w1, %sum : tensor<8x8xf32>, tensor<f32>
}
)mlir";

/// Replaces occurrence number `which` (from 1) of `from` by `to`.
struct Edit {
  const char *what, *from, *to;
  unsigned which = 1;
};

const Edit bugs[] = {
    {"recomputes from the wrong operand", "train.remat %x after", "train.remat %dy#1 after"},
    {"recomputes from another cotangent's bytes", "nn.dot %x1, %w", "nn.dot %dy#0, %w"},
    {"recomputes with another weight", "nn.dot %x1, %w {", "nn.dot %x1, %v {"},
    {"recomputes with the updated weight", "nn.dot %x1, %w {", "nn.dot %x1, %wnew {"},
    {"recomputes with another constant", "dense<2.0>", "dense<2.5>", 2},
    {"recomputes another function", "nn.tanh", "nn.exp", 2},
    {"recomputes half of a kernel", "nn.yield %s : tensor<4x8xf32>", "nn.yield %t : tensor<4x8xf32>", 2},
    {"recomputes with an operation too many", "nn.mul %t, %c", "nn.mul %s0, %c", 2},
    {"recomputes with exchanged operands of a product", "nn.mul %t, %c", "nn.mul %c, %t", 2},
    {"reads the first computation's input instead of its result", "nn.dot %a1, %dy#0", "nn.dot %h1, %dy#0"},
    {"changes the first computation's constant", "dense<2.0>", "dense<1.0>"},
    {"changes the first computation's function", "nn.tanh", "nn.exp"},
    {"multiplies by another weight", "nn.dot %a, %v", "nn.dot %a, %w"},
    {"skips an activation", "nn.dot %a, %v", "nn.dot %h, %v"},
    {"reads the wrong result of two", "nn.dot %a1, %dy#0", "nn.dot %a1, %dy#1"},
    {"exchanges two results", "nn.yield %e, %m", "nn.yield %m, %e"},
    {"returns one result twice", "nn.yield %e, %m", "nn.yield %e, %e"},
    {"subtracts the other way round", "nn.sub %e, %q", "nn.sub %q, %e"},
    {"adds instead of subtracting", "nn.sub %e, %q", "nn.add %e, %q"},
    {"exchanges a kernel's operands", "(%p = %y, %q = %h)", "(%p = %h, %q = %y)"},
    {"gives a kernel one operand twice", "(%p = %y, %q = %h)", "(%p = %y, %q = %y)"},
    {"loses a transposition", "%a1, %dy#0 {transpose_a}", "%t1, %dy#0"},
    {"transposes the wrong weight", "%dy#1, %v {transpose_b}", "%dy#1, %w {transpose_b}"},
    {"does not transpose a weight", "%dy#1, %v {transpose_b}", "%dy#1, %v"},
    {"makes a gradient of the wrong cotangent", "nn.dot %x, %da {transpose_a}", "nn.dot %x, %dy#0 {transpose_a}"},
    {"makes a gradient of the wrong activation", "nn.dot %x, %da {transpose_a}", "nn.dot %h, %da {transpose_a}"},
    {"updates with the other gradient", "%g = %dw", "%g = %dv"},
    {"updates the other parameter", "(%p = %w, %g", "(%p = %v, %g"},
    {"updates twice", "(%p = %v, %g = %dv)", "(%p = %w1, %g = %dv)"},
    {"updates with the parameter as gradient", "%g = %dv", "%g = %v"},
    {"ascends", "nn.sub %p, %g", "nn.add %p, %g"},
    {"exchanges the updates", "return %w1, %v1", "return %v1, %w1"},
    {"drops an update", "return %w1, %v1", "return %w, %v1"},
    {"returns a gradient", "return %w1, %v1", "return %w1, %dv"},
    {"sums what is not the loss", "row (%p = %y)", "row (%p = %a)"},
    {"takes another reduction", "nn.reduce_sum %p", "nn.reduce_max %p"},
};

const Edit loopBugs[] = {
    {"draws other numbers again", "op = 1", "op = 2", 2},
    {"draws again with the step as seed", "%seed, %step, %row", "%step, %step, %row", 2},
    {"draws again from the first row", "%seed, %step, %row", "%seed, %step, %seed", 2},
    {"draws again in another step", "%seed, %step, %row", "%seed, %row, %row", 2},
    {"draws another mask at first", "op = 1", "op = 2"},
    {"keeps what was not dropped", "nn.dot %k1, %y", "nn.dot %x, %y"},
    {"divides another array into parts", "%part = %y", "%part = %x"},
    {"exchanges the parts", "%part = %y, %other = %z", "%part = %z, %other = %y"},
    {"begins with another sum", "dense<0.0>", "dense<1.0>"},
    {"forgets the sum so far", "nn.add %before, %s", "nn.add %s, %s"},
    {"hands on the last part alone", "carries(%next :", "carries(%s :"},
    {"recomputes another function in the loop", "nn.tanh", "nn.exp", 2},
    {"recomputes from another part", "nn.tanh %part", "nn.tanh %other", 2},
};

const Edit rightLoopRewrites[] = {
    {"keeps the value of the loop", "nn.mul %t1, %other", "nn.mul %t, %other"},
    {"keeps the random numbers", "nn.mul %x, %u1", "nn.mul %x, %u"},
    {"keeps what was dropped", "nn.dot %k1, %y", "nn.dot %k, %y"},
};

const Edit rightRewrites[] = {
    {"keeps the value instead", "nn.dot %a1, %dy#0", "nn.dot %a, %dy#0"},
    {"waits for another cotangent", "after(%dy#0)", "after(%dy#1)"},
    {"recomputes without an anchor", "nn.dot %x1, %w {", "nn.dot %x, %w {"},
    {"recomputes from the middle", "(%p = %h1) attributes", "(%p = %h) attributes"},
    {"marks nothing", "(%p = %h1) attributes {train.recomputed}", "(%p = %h1)"},
};

class SeededBugs : public testing::Test {
protected:
  SeededBugs() : context(MLIRContext::Threading::DISABLED) {
    context.loadDialect<nn::NNDialect, func::FuncDialect, train::TrainDialect>();
  }

  std::string edit(std::string text, const Edit &edit) {
    // Some edits need a value that the step does not have.
    if (StringRef(edit.to).contains("%wnew"))
      insertBefore(text, "  %h1 = ", "  %wnew = nn.neg %w : tensor<8x8xf32>\n");
    if (StringRef(edit.to).contains("%s0"))
      insertBefore(text, "    %s = nn.mul %t, %c", "    %s0 = nn.tanh %t : tensor<4x8xf32>\n", 2);
    if (StringRef(edit.to).contains("%t1"))
      insertBefore(text, "  %dv = ", "  %t1 = nn.reshape %a1 : tensor<4x8xf32> -> tensor<8x4xf32>\n");
    size_t at = 0;
    for (unsigned i = 0; i < edit.which; ++i)
      at = text.find(edit.from, at + (i ? 1 : 0));
    EXPECT_NE(at, std::string::npos) << edit.what;
    if (at != std::string::npos)
      text.replace(at, StringRef(edit.from).size(), edit.to);
    if (StringRef(edit.to).contains("%t1")) {
      size_t line = text.find("%dv = "), type = text.find("tensor<4x8xf32>", line);
      text.replace(type, 15, "tensor<8x4xf32>");
    }
    return text;
  }

  static void insertBefore(std::string &text, const char *mark, const char *line, unsigned which = 1) {
    size_t at = 0;
    for (unsigned i = 0; i < which; ++i)
      at = text.find(mark, at + (i ? 1 : 0));
    ASSERT_NE(at, std::string::npos) << mark;
    text.insert(at, line);
  }

  /// Whether the check lets the edited step pass for the original; nothing if it is no valid step.
  std::optional<bool> accepts(const char *original, const std::string &text) {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &d) { said = d.str(); });
    auto before = parseSourceString<ModuleOp>(original, &context), after = parseSourceString<ModuleOp>(text, &context);
    if (!before || !after)
      return std::nullopt;
    func::FuncOp first = *before->getOps<func::FuncOp>().begin(), second = *after->getOps<func::FuncOp>().begin();
    return succeeded(compareFingerprints(fingerprintStep(first), fingerprintStep(second), second, "the rewrite"));
  }

  void expectAll(const char *original, ArrayRef<Edit> edits, bool accepted) {
    for (const Edit &each : edits) {
      std::optional<bool> found = accepts(original, edit(original, each));
      ASSERT_TRUE(found.has_value()) << each.what << ": " << said;
      EXPECT_EQ(*found, accepted) << each.what << ": " << said;
    }
  }

  MLIRContext context;
  std::string said;
};

TEST_F(SeededBugs, AreRejected) {
  EXPECT_GE(std::size(bugs), 30u);
  expectAll(step, bugs, false);
}

TEST_F(SeededBugs, OfRandomNumbersAndLoopsAreRejected) { expectAll(loopStep, loopBugs, false); }

TEST_F(SeededBugs, RightRewritesAreAccepted) {
  expectAll(step, rightRewrites, true);
  expectAll(loopStep, rightLoopRewrites, true);
}

} // namespace
