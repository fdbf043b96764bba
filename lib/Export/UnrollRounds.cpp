//===- UnrollRounds.cpp - loops written out -----------------------*- C++ -*-===//
//
// Other runtimes see a step in micro-batches as one straight graph: their memory is theirs to plan.
//
//===----------------------------------------------------------------------===//

#include "UnrollRounds.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "lowtide/Interfaces/RepeatSyntax.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

static void unroll(RepeatInterface loop) {
  OpBuilder builder(loop);
  Block &body = loop->getRegion(0).front();
  Operation *next = body.getTerminator();
  const unsigned sliced = loop.getNumSliced(), carried = loop.getNumCarried();
  SmallVector<Value> handed(loop->getOperands().drop_front(sliced));
  SmallVector<SmallVector<Expr>> rows(next->getNumOperands() - carried);
  for (int64_t round = 0; round < loop.getRounds(); ++round) {
    IRMapping mapping;
    for (unsigned i = 0; i < sliced; ++i) {
      auto part = cast<RankedTensorType>(body.getArgument(i).getType());
      SmallVector<int64_t> starts(part.getRank(), 0);
      starts[0] = (isReversed(loop) ? loop.getRounds() - 1 - round : round) * part.getDimSize(0);
      mapping.map(body.getArgument(i),
                  nn::slice(Expr(builder, loop.getLoc(), loop->getOperand(i)), starts, part.getShape()).get());
    }
    mapping.map(body.getArguments().drop_front(sliced), handed);
    for (Operation &op : body.without_terminator())
      builder.clone(op, mapping);
    for (auto [i, value] : llvm::enumerate(next->getOperands())) {
      Value made = mapping.lookupOrDefault(value);
      if (i < carried)
        handed[i] = made;
      else
        rows[i - carried].push_back(Expr(builder, loop.getLoc(), made));
    }
  }
  for (SmallVector<Expr> &parts : rows) {
    if (isReversed(loop))
      std::reverse(parts.begin(), parts.end());
    handed.push_back(nn::concat(parts, 0));
  }
  loop->replaceAllUsesWith(handed);
  loop->erase();
}

void lowtide::unrollRounds(func::FuncOp step, int64_t maxRounds) {
  SmallVector<RepeatInterface> loops;
  step.walk([&](RepeatInterface loop) { // inner ones first
    if (loop.getRounds() <= maxRounds)
      loops.push_back(loop);
  });
  llvm::for_each(loops, unroll);
}
