//===- LowerScans.cpp - scans become loops of the step --------------------===//
//
// The body moves; what a scan reads is read from outside.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/Train/LowerScans.h"
#include "lowtide/Dialect/NN/Scan.h"
#include "lowtide/Dialect/Train/Train.h"

using namespace mlir;
using namespace lowtide;

static void lower(nn::ScanOp scan) {
  OpBuilder builder(scan);
  nn::NextOp next = scan.getNext();
  auto loop = train::AccumulateOp::create(builder, scan.getLoc(), scan.getRounds(), scan.getSliced(), scan.getCarried(),
                                          TypeRange(next.getRows()), scan.getReversed());
  Block *body = scan.getBlock();
  for (auto [argument, value] :
       llvm::zip_equal(body->getArguments().take_back(scan.getCaptured().size()), scan.getCaptured()))
    argument.replaceAllUsesWith(value);
  body->eraseArguments(scan.getNumSliced() + scan.getNumCarried(), scan.getCaptured().size());
  builder.setInsertionPoint(next);
  train::NextOp::create(builder, next.getLoc(), next.getCarried(), next.getRows());
  next.erase();
  loop.getBody().takeBody(scan.getBody());
  scan->replaceAllUsesWith(loop->getResults());
  scan->erase();
}

unsigned train::lowerScans(func::FuncOp step) {
  SmallVector<nn::ScanOp> scans;
  step.walk([&](nn::ScanOp scan) { scans.push_back(scan); }); // inner ones first
  llvm::for_each(scans, lower);
  return scans.size();
}
