//===- MathExpansion.cpp - f32 functions as polynomials ---------*- C++ -*-===//
//
// Replaces `math` ops on f32 by arithmetic that vectorizes; f64 stays with the
// math library.
//
//===----------------------------------------------------------------------===//

#include "MachineCode.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

void codegen::expandMath(ModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  auto chosen = [](StringRef name) {
    return llvm::is_contained(
        {"math.exp", "math.log", "math.tanh", "math.erf", "math.log1p", "math.expm1", "math.sin", "math.cos"}, name);
  };
  populateMathPolynomialApproximationPatterns(patterns, chosen);
  (void)applyPatternsGreedily(module, std::move(patterns));
}
