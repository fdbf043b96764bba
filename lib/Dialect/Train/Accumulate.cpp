//===- Accumulate.cpp - train.accumulate: syntax and verification *- C++ -*-===//
//
// The loop over parts of a batch, or over the steps of a sequence.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Interfaces/RepeatSyntax.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::train;

/// Lists of operands, in order.
static constexpr StringRef keywords[] = {"slices", "carries"};

RankedTensorType AccumulateOp::getWhole(RankedTensorType part, int64_t rounds) {
  return getWholeOfRounds(part, rounds);
}

RankedTensorType AccumulateOp::getPart(RankedTensorType whole, int64_t rounds) {
  return getPartOfRounds(whole, rounds);
}

NextOp AccumulateOp::getNext() { return cast<NextOp>(getBlock()->getTerminator()); }

const OpFacts &AccumulateOp::getFacts() {
  static const OpFacts facts{OpFamily::Repeat, PrecisionPolicy::Follow, Aliasing::None, BatchRule::Unknown, 0, ""};
  return facts;
}

uint64_t AccumulateOp::getFlops() {
  uint64_t flops = 0;
  for (Operation &op : *getBlock())
    if (auto facts = dyn_cast<FactsInterface>(op))
      flops += facts.getFlops();
  return flops * static_cast<uint64_t>(getRounds());
}

unsigned AccumulateOp::getNumSliced() { return getSliced().size(); }
unsigned AccumulateOp::getNumCarried() { return getCarried().size(); }

void AccumulateOp::build(OpBuilder &builder, OperationState &state, int64_t rounds, ValueRange sliced,
                         ValueRange carried, TypeRange rows, bool reversed) {
  buildRepeat(builder, state, rounds, reversed, {sliced, carried}, rows);
}

ParseResult AccumulateOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseRepeat(parser, result, keywords);
}

void AccumulateOp::print(OpAsmPrinter &p) { printRepeat(p, *this, keywords, {getNumSliced(), getNumCarried()}); }

LogicalResult AccumulateOp::verify() { return verifyRepeat(*this, getRounds(), getNumSliced()); }

LogicalResult AccumulateOp::verifyRegions() {
  return verifyRounds(*this, getRounds(), getNumSliced(), getNumCarried(), NextOp::getOperationName());
}
