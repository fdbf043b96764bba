//===- BlockPlacesTest.cpp - the order of ops while some move --------------===//

#include "lowtide/Analysis/BlockPlaces.h"

#include "lowtide/Dialect/NN/NN.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace lowtide;

/// Whatever moves, in one place many times in a row too, the order is the block's own.
TEST(BlockPlaces, AnswersAsTheBlockDoes) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  std::vector<Operation *> ops;
  auto one = DenseElementsAttr::get(RankedTensorType::get({}, builder.getF32Type()), 1.0f);
  for (int i = 0; i < 50; ++i)
    ops.push_back(nn::ConstantOp::create(builder, builder.getUnknownLoc(), one));
  BlockPlaces places(*module->getBody());
  std::mt19937 random(1);
  auto pick = [&](size_t count) { return ops[random() % count]; };
  Operation *last = ops[0];
  for (int move = 0; move < 3000; ++move) {
    // A hundred moves go anywhere, a hundred to one op, and a hundred to what moved before, where gaps halve.
    Operation *const to[] = {pick(ops.size()), ops[0], last};
    Operation *place = to[move / 100 % 3], *op = pick(ops.size());
    if (op == place)
      continue;
    random() % 2 ? places.moveBefore(op, place) : places.moveAfter(op, place);
    last = op;
    for (int question = 0; question < 20; ++question) {
      Operation *left = question ? pick(ops.size()) : op, *right = pick(ops.size());
      ASSERT_EQ(places.isBefore(left, right), left != right && left->isBeforeInBlock(right)) << move;
    }
  }
}
