//===- TrainWeighLoss.cpp - what the loss of an evaluation is a mean over -===//
//
// The loss over a data set is the mean of its batches' losses by their weights, and rows that fill no batch may be
// evaluated in one that holds them several times: as long as no sample changes what another one computes.
//
//===----------------------------------------------------------------------===//

#include "StepPass.h"
#include "lowtide/Analysis/BatchTracking.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Bindings.h"

namespace lowtide {
#define GEN_PASS_DEF_TRAINWEIGHLOSS
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using namespace lowtide;

/// The sum over samples that the loss is divided by; null where it is not one such quotient.
static Value findDivisor(Value loss, const BatchTracking &tracking) {
  while (auto cast = loss.getDefiningOp<nn::CastOp>())
    loss = cast->getOperand(0);
  auto quotient = loss.getDefiningOp<nn::DivOp>();
  if (!quotient)
    return {};
  const bool isOfSums = llvm::all_of(
      quotient->getOperands(), [&](Value operand) { return tracking.getKind(operand) == BatchTracking::Kind::Sum; });
  return isOfSums ? quotient->getOperand(1) : Value();
}

static void weighLoss(func::FuncOp step) {
  std::string reason;
  FailureOr<BatchTracking> tracking = [&] {
    // Samples that meet are no error of an evaluation: it is made of whole batches alone.
    ScopedDiagnosticHandler listen(step.getContext(), [&](Diagnostic &diagnostic) {
      if (reason.empty())
        reason = diagnostic.str();
      return success();
    });
    return BatchTracking::compute(step);
  }();
  if (succeeded(tracking) && !tracking->getSamples())
    return;
  if (failed(tracking) || !tracking->getStatistics().empty()) {
    step.emitRemark("@") << step.getSymName() << ": samples of a batch are not evaluated apart: "
                         << (reason.empty() ? "statistics are taken over all of them" : StringRef(reason));
    return;
  }
  OpBuilder builder(step.getContext());
  Operation *terminator = step.getBody().back().getTerminator();
  builder.setInsertionPoint(terminator);
  auto type = RankedTensorType::get({}, builder.getF32Type());
  Value weight;
  if (auto loss = train::findResult<train::MetricAttr>(step, "loss"))
    weight = findDivisor(terminator->getOperand(*loss), *tracking);
  if (!weight || weight.getType() != type)
    weight = nn::ConstantOp::create(builder, step.getLoc(), type,
                                    DenseElementsAttr::get(type, APFloat(static_cast<float>(tracking->getSamples()))));
  train::appendResult(step, weight,
                      train::MetricAttr::get(step.getContext(), builder.getStringAttr(train::lossWeightName)));
}

namespace {
struct TrainWeighLoss : StepPass<lowtide::impl::TrainWeighLossBase<TrainWeighLoss>> {
  using StepPass::StepPass;

  void runOnSteps() override {
    if (auto step = getOperation().lookupSymbol<func::FuncOp>(function))
      weighLoss(step);
  }
};
} // namespace
