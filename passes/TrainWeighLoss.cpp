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

namespace {

/// Looks for the sum over samples that a loss is divided by.
class DivisorFinder {
public:
  explicit DivisorFinder(const BatchTracking &tracking) : tracking(tracking) {}

  /// Null where the loss is not one such quotient, nor made of quotients of one divisor: factors that no sample
  /// changes, sums of terms (label smoothing adds two), a term that no sample changes.
  Value find(Value loss) {
    if (auto quotient = loss.getDefiningOp<nn::DivOp>()) {
      Value divisor = quotient->getOperand(1);
      if (isSame(divisor))
        return find(quotient->getOperand(0));
      return isSum(quotient->getOperand(0)) && isSum(divisor) ? divisor : Value();
    }
    if (auto product = loss.getDefiningOp<nn::MulOp>()) {
      Value factor = findVaryingFactor(product);
      return factor ? find(factor) : Value();
    }
    Value common;
    if (Operation *op = loss.getDefiningOp(); op && isLinear(op))
      for (Value operand : op->getOperands()) {
        if (isSame(operand))
          continue;
        Value divisor = find(operand);
        if (!divisor || (common && common != divisor))
          return {};
        common = divisor;
      }
    return common;
  }

private:
  /// Whether a value is the sum over samples of what each of them adds.
  bool isSum(Value value) {
    if (tracking.getKind(value) == BatchTracking::Kind::Sum)
      return true;
    if (auto quotient = value.getDefiningOp<nn::DivOp>())
      return isSame(quotient->getOperand(1)) && isSum(quotient->getOperand(0));
    if (auto product = value.getDefiningOp<nn::MulOp>()) {
      Value factor = findVaryingFactor(product);
      return factor && isSum(factor);
    }
    Operation *op = value.getDefiningOp();
    return op && isLinear(op) && llvm::all_of(op->getOperands(), [&](Value operand) { return isSum(operand); });
  }

  /// The factor of a product that samples change, if they do not change the other.
  Value findVaryingFactor(Operation *product) {
    for (unsigned other : {1, 0})
      if (isSame(product->getOperand(other)))
        return product->getOperand(1 - other);
    return {};
  }

  /// Whether an op is linear in its operands together: a sum, a difference, another type.
  bool isLinear(Operation *op) const {
    auto batch = dyn_cast<BatchInterface>(op);
    const SmallVector<std::optional<BatchPosition>> none(op->getNumOperands());
    BatchSplit split(op, tracking.getSamples(), none, /*allSums=*/true);
    return batch && op->getNumOperands() != 0 && succeeded(batch.splitBatch(split)) &&
           llvm::all_of(split.results, [](const auto &result) { return result.kind == BatchSplit::Kind::Sum; });
  }

  /// Whether no sample changes a value.
  bool isSame(Value value) {
    if (auto known = same.find(value); known != same.end())
      return known->second;
    Operation *op = value.getDefiningOp();
    bool isSame = tracking.getKind(value) == BatchTracking::Kind::Outside;
    if (isSame && op)
      isSame = llvm::all_of(op->getOperands(), [&](Value operand) { return this->isSame(operand); });
    return same[value] = isSame;
  }

  const BatchTracking &tracking;
  DenseMap<Value, bool> same;
};

} // namespace

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
    weight = DivisorFinder(*tracking).find(terminator->getOperand(*loss));
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
