//===- TrainAccumulate.cpp - a step in micro-batches ------------*- C++ -*-===//
//
// Asks where samples are counted, and puts what counts them into loops.
//
//===----------------------------------------------------------------------===//

#include "BatchLoops.h"
#include "StepPass.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Interfaces/ExportNames.h"
#include "lowtide/Support/DiagnosticFigures.h"
#include "lowtide/Support/Failure.h"

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_TRAINACCUMULATE
#include "Passes.h.inc"
} // namespace lowtide

namespace {

struct TrainAccumulate : StepPass<lowtide::impl::TrainAccumulateBase<TrainAccumulate>> {
  using StepPass::StepPass;

  /// Of the batch.
  int64_t parts = 1;

  LogicalResult checkParts(func::FuncOp step, int64_t samples) {
    if (samples % parts == 0)
      return success();
    InFlightDiagnostic error = step.emitError("@") << step.getSymName() << ": a batch of " << samples
                                                   << " samples does not fall into " << parts << " equal parts";
    int64_t below = std::min<int64_t>(samples, parts), above = parts;
    while (below > 1 && samples % below)
      --below;
    while (above < samples && samples % above)
      ++above;
    above = std::min(above, samples);
    Diagnostic &note = error.attachNote() << "--micro-batches=" << below;
    if (above != below)
      note << " or " << above;
    note << " would divide it";
    if (parts < samples)
      note << ", or a batch of " << (samples / parts + 1) * parts;
    setFailure(getOperation(), FailureKind::Usage);
    return error;
  }

  void warnAboutStatistics(func::FuncOp step, const BatchTracking &tracking) {
    ArrayRef<Operation *> ops = tracking.getStatistics();
    // Gradients are sums; what only converts statistics is no layer.
    size_t forward = llvm::count_if(ops, [&](Operation *op) {
      return op->getNumResults() > 1 && tracking.getKind(op->getResult(1)) != BatchTracking::Kind::Sum;
    });
    if (!forward)
      return;
    InFlightDiagnostic warning = step.emitWarning("@");
    warning << step.getSymName() << ": batch norm (" << forward << (forward == 1 ? " layer" : " layers")
            << ") takes its statistics over each part of " << tracking.getSamples() / parts << " samples, not over all "
            << tracking.getSamples() << ", and updates its running statistics " << parts
            << " times a step: losses differ from those of the whole batch";
    attachFigures(warning, {{"batch_norm_layers", forward}});
  }

  LogicalResult accumulate(func::FuncOp step) {
    // First, since sizes of one are taken for samples where the batch is one.
    const int64_t samples = train::countSamples(step);
    if (samples && failed(checkParts(step, samples)))
      return failure();
    FailureOr<BatchTracking> tracking = BatchTracking::compute(step);
    if (failed(tracking)) {
      setFailure(getOperation(), FailureKind::Unsupported);
      return failure();
    }
    if (!samples) {
      setFailure(getOperation(), FailureKind::Usage);
      return step.emitError("@") << step.getSymName()
                                 << " has no batch array that counts samples: there is nothing to divide";
    }
    warnAboutStatistics(step, *tracking);
    FailureOr<BatchLoopFacts> facts = buildBatchLoops(step, *tracking, parts);
    if (failed(facts)) {
      setFailure(getOperation(), FailureKind::Unsupported);
      return failure();
    }
    numLoops += facts->loops;
    numSums += facts->sums;
    InFlightDiagnostic remark = step.emitRemark("@")
                                << step.getSymName() << ": " << parts << " parts of " << samples / parts << " samples, "
                                << facts->sums << " sums of " << facts->sumBytes << " bytes, rows of "
                                << facts->rowBytes << " bytes";
    if (facts->loops > 1)
      remark << ", " << facts->loops << " loops (" << facts->repeatedOps << " ops recomputed)";
    return success();
  }

  /// A counter of a state's updates goes on by one for each part.
  void countParts() {
    auto saved = getOperation()->getAttrOfType<ArrayAttr>("onnx.saved");
    if (!saved)
      return;
    SmallVector<Attribute> entries;
    for (auto entry : saved.getAsRange<DictionaryAttr>()) {
      NamedAttrList fields(entry);
      if (auto updates = entry.getAs<IntegerAttr>("updates"))
        fields.set("updates", IntegerAttr::get(updates.getType(), updates.getInt() * parts));
      entries.push_back(fields.getDictionary(&getContext()));
    }
    getOperation()->setAttr("onnx.saved", ArrayAttr::get(&getContext(), entries));
  }

  void runOnSteps() override {
    if (failed(checkOption(getOperation(), "micro-batches", microBatches)) ||
        StringRef(microBatches).getAsInteger(10, parts))
      return signalPassFailure();
    if (parts == 1)
      return;
    for (auto step : getOperation().getOps<func::FuncOp>())
      if (!isExportEntry(step.getSymName()) && failed(accumulate(step)))
        return signalPassFailure();
    countParts();
  }
};

} // namespace
